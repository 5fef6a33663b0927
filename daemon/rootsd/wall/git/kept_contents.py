"""Keep the content that tool files had before a session, so that a person can see what changed.

A wall's folder has each content in `changes/contents`. Its name is the digest in the fact about
the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from rootsd.disk.reader import read_small
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.tool_files import digest, digest_of
from rootsd.wall.git.wall_folders import names_in

_CONTENTS = b"/changes/contents/"
_MAX_KEPT_BYTES, _MAX_KEPT_IN_ALL = 1 << 20, 64 << 20


def keep_contents(folder: bytes, facts: Iterable[Fact]) -> None:
    """Keep what the files of these facts have now, in the folder of a wall. Raises OSError."""
    left = _MAX_KEPT_IN_ALL
    for fact in facts:
        place = _place(folder, fact)
        if place is None or os.path.exists(place) or left < 0:
            continue
        content = read_content(fact.path)
        # A program that has the root already may have changed the file since.
        if content is not None and digest(content) == digest_of(fact.value):
            os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
            with open(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                left -= file.write(content)


def kept_content(folder: bytes, fact: Fact) -> bytes | None:
    """Return the content that a fact is about, or None if it was not kept."""
    place = _place(folder, fact)
    return None if place is None else read_content(place)


def forget_contents(folder: bytes) -> None:
    """Remove all that is kept in the folder of a wall."""
    for name in names_in(folder + _CONTENTS):
        with suppress(OSError):
            os.unlink(folder + _CONTENTS + name)


def read_content(path: bytes) -> bytes | None:
    """Return the content of a regular file; None if there is none, or if it is large."""
    content = read_small(path, _MAX_KEPT_BYTES + 1)
    return None if content is None or len(content) > _MAX_KEPT_BYTES else content


def _place(folder: bytes, fact: Fact) -> bytes | None:
    digest = digest_of(fact.value) if fact.kind is FactKind.TOOL_FILE else b""
    return folder + _CONTENTS + digest if digest else None
