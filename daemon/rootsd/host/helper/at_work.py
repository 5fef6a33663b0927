"""Which of these folders is somebody at work on? Both ends of the question."""

from __future__ import annotations

from collections.abc import Collection

from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper, NoAnswer, NoHelper
from rootsd.host.processes import worked_on

_SECONDS = 5.0


def ask_worked_on(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Those of `folders` that a process of ours is making (host.processes).

    Without a helper none, and quiet times alone decide; where it could not tell this time, all.
    """
    try:
        return _split(helper.ask(Duty.AT_WORK, b"\0".join(folders), _SECONDS))
    except NoHelper:
        return frozenset()
    except NoAnswer:
        return frozenset(folders)


def answer(question: bytes) -> bytes:
    """In the helper: NUL-separated paths in and out."""
    return b"\0".join(worked_on(_split(question)))


def _split(joined: bytes) -> frozenset[bytes]:
    return frozenset(joined.split(b"\0")) if joined else frozenset()
