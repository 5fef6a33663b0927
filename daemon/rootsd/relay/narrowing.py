"""Which of the approved folders one server is told of: what its client has open, or all. Pure.

A client's own roots can take away and never add: what lies outside of every approved root is
nothing that a server is told of, it is only made known to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from rootsd.core.paths import contains, text_of
from rootsd.relay.roots import Folder


class ClientRoots(Enum):
    """What the roots of the client are good for."""

    AUTO = "auto"
    """Where they are of use they narrow; else the working directory does, if a root holds it."""
    NARROW = "narrow"
    """They narrow; where they are of no use nothing is left."""
    OVERRIDE = "override"
    """They are not even asked for."""


class Access(Enum):
    """Which roots a server may be told of that could write in any."""

    WRITABLE = "writable"
    ADVISORY = "advisory"
    """Those too that are meant to be read alone: the user trusts the server to heed advice."""


class Narrowing:
    """The rule for one relay. `here` is the working directory, canonical; None where it is gone.

    `theirs` are the client's folders, canonical; None as long as it has said nothing of use.
    """

    def __init__(self, use: ClientRoots, access: Access, here: bytes | None) -> None:
        self.use = use
        self.theirs: tuple[bytes, ...] | None = None
        self._access = access
        self._here = here

    def apply(self, approved: Iterable[Folder]) -> tuple[Folder, ...]:
        """The folders for the server; the one that holds the working directory comes first."""
        fit = [each for each in approved if each.writable or self._access is Access.ADVISORY]
        here = self._innermost(fit)
        if self.use is not ClientRoots.OVERRIDE:
            if self.theirs is not None:
                return tuple(dict.fromkeys(self._shared(fit, self.theirs)))
            if self.use is ClientRoots.NARROW:
                return ()
            if here is not None:
                return (here,)
        return tuple(sorted(fit, key=lambda each: each is not here))

    def outside(self, approved: Iterable[Folder]) -> tuple[bytes, ...]:
        """The client's folders that have nothing in common with any approved one."""
        known = [each.path for each in approved]
        return tuple(
            path
            for path in self.theirs or ()
            if not any(contains(path, each) or contains(each, path) for each in known)
        )

    def _innermost(self, folders: Iterable[Folder]) -> Folder | None:
        if self._here is None:
            return None
        around = [each for each in folders if contains(each.path, self._here)]
        return max(around, key=lambda each: len(each.path), default=None)

    def _shared(self, fit: list[Folder], theirs: Iterable[bytes]) -> Iterator[Folder]:
        for path in theirs:
            around = [each for each in fit if contains(each.path, path)]
            if around:
                root = max(around, key=lambda each: len(each.path))
                below = text_of(path[len(root.path) :])
                yield root._replace(path=path, name=root.name + below)
            else:
                yield from (each for each in fit if contains(path, each.path))
