"""Looks at one folder and says what project it is, or why nothing can be seen there."""

from __future__ import annotations

import os
import stat

from rootsd.core.inputs import Observation, Sighted, Unreachable, Unsafe, Vanished
from rootsd.core.model import Identity, LapseReason, ProjectKind
from rootsd.core.paths import ancestors
from rootsd.host.disk.identity import Absence, absence, identify
from rootsd.host.disk.markers import repository_kind
from rootsd.host.disk.reader import names_in
from rootsd.host.vcs.complete import state_of, what_is_missing
from rootsd.host.vcs.stages import Complete, Nothing, Pending


def probe(
    path: bytes, within: bytes | None = None, filesystem: bytes | None = None
) -> Observation:
    """One folder, looked at now, whether or not a parent holds it.

    A folder without any marker is seen as a plain project: it was named by a person. One that is
    still being made is seen as incomplete where its state is not final. `within` and `filesystem`
    are as for `absence`. Raises nothing.
    """
    try:
        identity = identify(path)
    except OSError:
        return absent(path, within, filesystem)
    kind = repository_kind(names_in(path)) or ProjectKind.PROJECT
    return sighted(path, kind, identity)


def sighted(path: bytes, kind: ProjectKind, identity: Identity) -> Sighted:
    """A folder known to be there, with how far along it is."""
    match state_of(path, kind):
        case Complete(kind=found, main_checkout=main):
            lacking = what_is_missing(path, found, None)
            return Sighted(path, found, identity, lacking, main)
        case Pending(kind=found, stage=stage, main_checkout=main):
            lacking = what_is_missing(path, found, stage)
            return Sighted(path, found, identity, lacking, main)
        case Nothing():
            return Sighted(path, ProjectKind.PROJECT, identity)


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
