"""Looks at one folder and says what project it is, or why nothing can be seen there."""

from __future__ import annotations

import os
import stat

from rootsd.core.inputs import Observation, Sighted, Unreachable, Unsafe, Vanished
from rootsd.core.model import Identity, LapseReason, ProjectKind
from rootsd.core.paths import ancestors
from rootsd.host.disk.identity import Absence, absence
from rootsd.host.disk.markers import repository_kind
from rootsd.host.vcs.complete import state_of, what_is_missing
from rootsd.host.vcs.look import Look
from rootsd.host.vcs.stages import Complete, Nothing, Pending


def probe(
    path: bytes, within: bytes | None = None, filesystem: bytes | None = None
) -> Observation:
    """One folder, looked at now, whether or not a parent holds it.

    A folder without any marker is seen as a plain project: it was named by a person. One that is
    still being made is seen as incomplete where its state is not final. `within` and `filesystem`
    are as for `absence`. Raises nothing.
    """
    with Look(path) as look:
        try:
            identity = look.identity()
        except OSError:
            return absent(path, within, filesystem)
        return _sighted(look, identity)


def _sighted(look: Look, identity: Identity) -> Sighted:
    kind = repository_kind(look.names()) or ProjectKind.PROJECT
    match state_of(look, kind):
        case Complete(kind=found, main_checkout=main):
            lacking = what_is_missing(look, found, None)
            return Sighted(look.path, found, identity, lacking, main)
        case Pending(kind=found, stage=stage, main_checkout=main):
            lacking = what_is_missing(look, found, stage)
            return Sighted(look.path, found, identity, lacking, main)
        case Nothing():
            return Sighted(look.path, ProjectKind.PROJECT, identity)


def absent(path: bytes, within: bytes | None, filesystem: bytes | None) -> Observation:
    """What a folder that could not be identified is: gone, out of reach, or behind a link.

    One that is there and cannot be opened is out of reach.
    """
    if absence(path, within, filesystem) is Absence.GONE:
        return vanished(path)
    if any(map(os.path.islink, ancestors(path))):
        return Unsafe(path, LapseReason.RETARGETED)
    return Unreachable(path)


def vanished(path: bytes) -> Vanished:
    """The end of a folder that is gone; a link or a file in its place has replaced it."""
    try:
        replaced = not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        replaced = False
    return Vanished(path, LapseReason.REPLACED if replaced else None)
