"""Which folders of a session's scope one server is told of. Pure.

The daemon narrows the approved set to the scope of the session. A client's own roots can narrow it
further and never add: a client's folder outside every approved root is only made known to the
user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from rootsd.core.paths import contains, text_of
from rootsd.relay.roots import Folder

_GIT = b".git"


class ClientRoots(Enum):
    """What the roots of the client are good for."""

    AUTO = "auto"
    """Where they are of use they narrow the scope; else the server is told of the whole scope."""
    NARROW = "narrow"
    """They narrow the scope; where they are of no use nothing is left."""
    NOTE = "note"
    """They narrow nothing; those that are not approved are made known to the user."""
    OVERRIDE = "override"
    """They are not asked for."""

    @property
    def narrows(self) -> bool:
        """Whether they take anything away."""
        return self in (ClientRoots.AUTO, ClientRoots.NARROW)


class Access(Enum):
    """Which roots a server may be told of that could write in any."""

    WRITABLE = "writable"
    ADVISORY = "advisory"
    """Those too that are meant to be read alone: the user trusts the server to heed advice."""


class Narrowing:
    """The rule for one relay. `here` is the working directory, canonical; None where it is gone.

    `theirs` are the client's folders, canonical; None as long as the client said nothing of use.
    """

    def __init__(self, use: ClientRoots, access: Access, here: bytes | None) -> None:
        self.use = use
        self.theirs: tuple[bytes, ...] | None = None
        self._access = access
        self._here = here

    def heed(self, theirs: tuple[bytes, ...]) -> None:
        """Take in the folders that the client has open now. A client that had folders of use and
        has none any more opens nothing by that."""
        if theirs or self.theirs is not None:
            self.theirs = theirs

    def apply(self, approved: Iterable[Folder]) -> tuple[Folder, ...]:
        """Return the folders for the server, the one that holds the working directory first."""
        fit = [each for each in approved if each.writable or self._access is Access.ADVISORY]
        if self.use.narrows:
            if self.theirs is not None:
                return tuple(dict.fromkeys(self._shared(fit, self.theirs)))
            if self.use is ClientRoots.NARROW:
                return ()
        here = self._innermost(fit)
        return tuple(sorted(fit, key=lambda each: each is not here))

    def outside(self, approved: Iterable[Folder]) -> tuple[bytes, ...]:
        """Return the client's folders that have nothing in common with any approved one."""
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
                below = path[len(root.path) :]
                if not _is_in_git(below):
                    yield root._replace(path=path, name=root.name + text_of(below))
            else:
                yield from (each for each in fit if contains(path, each.path))


def _is_in_git(below: bytes) -> bool:
    """Return whether a path below a root lies in a `.git`, in any case of letters."""
    return any(part.lower() == _GIT for part in below.split(b"/"))
