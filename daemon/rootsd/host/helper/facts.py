"""In the helper: the facts of projects, see rootsd.host.helper.describing."""

from __future__ import annotations

import json

from rootsd.core.model import ProjectKind
from rootsd.host.disk.facts import facts_of


def answer(question: bytes) -> bytes:
    """Kind and path of each project, NUL-separated, in; a JSON list out."""
    parts = question.split(b"\0")
    projects = zip(parts[::2], parts[1::2], strict=True)
    facts = [facts_of(path, ProjectKind(kind.decode())) for kind, path in projects]
    return json.dumps(facts).encode()
