"""A word for a directory, by which somebody who was shown it can say which one was meant."""

from __future__ import annotations

import hashlib

from rootsd.core.model import Identity

_LETTERS = 32


def mark_of(identity: Identity | None) -> str:
    """The word: another directory has another one, and so has this one once its owner, or where
    its `.git` leads, is another. Empty for what has no identity, such as a URI."""
    if identity is None:
        return ""
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:_LETTERS]
