"""In the helper: the last commit of a repository, see rootsd.host.helper.describing."""

from __future__ import annotations

import json

from rootsd.host.vcs.describe import last_commit


def answer(question: bytes) -> bytes:
    """The path of a repository in, JSON out."""
    return json.dumps(last_commit(question)).encode()
