"""The interfaces that connections use to get roots and to record what clients received.

Free of the MCP SDK, so that the daemon can name the type before its first MCP connection.
"""

from __future__ import annotations

from typing import Protocol

from rootsd.core.model import PublishedSet, SessionKey
from rootsd.core.scope import Scope, SessionStart
from rootsd.core.throttle import TokenBucket


def requests_per_process() -> TokenBucket:
    """How often it may ask for a folder, over all its connections."""
    return TokenBucket(burst=5, per_second=1 / 12)


class RootRequestHandle(Protocol):
    """A client's request for a folder. It tells of one answer of the user, a no to this request
    that came after it, and of nothing else; an approval shows in the published set."""

    @property
    def is_denied(self) -> bool:
        """Whether the user has said no."""
        ...

    async def denial(self) -> None:
        """Wait until the user says no; in most cases for ever."""
        ...


class RootsSource(Protocol):
    """The one supplier of roots; the daemon's ledger implements it, tests a fake."""

    async def current(self) -> PublishedSet:
        """The set whose roots were verified at this moment. Raises RootsdError.

        Every answer to a client is made from this and never from a set kept earlier: a root may
        have been replaced on disk a moment ago.
        """
        ...

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the revision is greater than `revision`; missed steps do not matter. The set
        is not verified: it serves to tell that there is news, and to no answer."""
        ...

    async def canonical(self, path: bytes) -> bytes:
        """The absolute `path` as it is on the disk, symlinks followed and `..` resolved; what does
        not exist stays as it was written. `path` holds no NUL."""
        ...

    async def starting_in(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins now with its working directory in `folder`
        (canonical). Raises ValueError where that cannot be told."""
        ...

    def request(
        self, path: bytes, asker: str, reason: str, session: SessionKey | None
    ) -> RootRequestHandle:
        """Let the user know that a client wants the folder at `path` (canonical) for a root, for
        `session`; None where the client only has it open.

        Returns at once and alike, whatever lies there; all texts are safe to show. Raises Busy
        where too much was asked for of late.
        """
        ...


class SessionObserver(Protocol):
    """Who keeps account of one session; all texts are safe to show."""

    def named(self, name: str) -> None:
        """What the client calls itself; told at most once."""
        ...

    def scoped(self, scope: Scope) -> None:
        """What the connection sees of the set from now on: the scope that it asked for, or the
        focus; told before it is given a root, and again where the focus changes for it."""
        ...

    def roots_reported(self, roots: int, names: tuple[str, ...]) -> None:
        """How many roots a relay has told its server of, and the first names; it may have been
        given more."""
        ...

    def roots_sent(self, published: PublishedSet) -> None:
        """The set that an answer is made from, the scope still to apply; told for each answer."""
        ...
