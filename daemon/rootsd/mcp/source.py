"""The interfaces that connections use to get roots and to record what clients received.

This module does not import the MCP SDK, so the daemon can use these types before the first MCP
connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from rootsd.core.model import PublishedSet, SessionKey
from rootsd.core.paths import bytes_of
from rootsd.core.scope import SessionStart, root_containing
from rootsd.core.throttle import TokenBucket


def requests_per_process() -> TokenBucket:
    """Return the limit on requests for folders by one process, over all its connections."""
    return TokenBucket(burst=5, per_second=1 / 12)


_OPEN_FOLDER = "the MCP client has this folder open"


NO_NAME = "a client without a name"
"""The name of a client that gives itself none."""


async def propose_open_folder(
    source: RootsSource,
    current: Callable[[], Awaitable[PublishedSet]],
    path: str,
    client: str,
    process: str,
) -> None:
    """Propose to the user a folder that a client has open, unless it is in the `current` roots.

    The client gets no answer. Raises Busy after too many requests, and the errors of `current`.
    """
    if path.startswith("/") and "\0" not in path:
        canonical = await source.canonical(bytes_of(path))
        if root_containing(await current(), canonical) is None:
            source.request(canonical, client, _OPEN_FOLDER, None, process)


class RootRequestHandle(Protocol):
    """A client's request for a folder.

    It reports only that the user denied this request after it was made. An approved folder
    appears in the published set.
    """

    @property
    def is_denied(self) -> bool:
        """Whether the user has denied the request."""
        ...

    async def wait_denied(self) -> None:
        """Wait until the user denies the request. This may never return."""
        ...


class RootsSource(Protocol):
    """The source of all roots. The daemon's ledger implements it; tests use a fake."""

    async def current(self) -> PublishedSet:
        """Return the published set, with its roots verified at this moment. Raises RootsdError.

        Make every answer to a client from this set and never from an earlier one, because a root
        may have been replaced on disk a moment ago.
        """
        ...

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the revision is greater than `revision`, and return the newest set.

        The set is not verified: use it to detect changes, never for an answer. Revisions may be
        skipped.
        """
        ...

    async def canonical(self, path: bytes) -> bytes:
        """Return the absolute `path` with symbolic links and `..` resolved.

        Components that do not exist stay as they are. `path` holds no NUL.
        """
        ...

    async def visible(self, path: bytes) -> bytes:
        """Return the same as `canonical`, as the client sees it.

        For a client behind a wall, no link is followed that it does not see.
        """
        ...

    async def session_start(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins now in `folder` (canonical).

        Raises ValueError if the start cannot be found.
        """
        ...

    def request(
        self, path: bytes, client: str, reason: str, session: SessionKey | None, process: str
    ) -> RootRequestHandle:
        """Propose the folder at `path` (canonical) to the user on behalf of a client.

        `session` is the session that needs the folder, or None if the client only has it open.
        `process` is the process that the daemon saw; `client` is only the client's word.
        All texts are safe to show. The call returns at once and in the same way for every path, so
        that a client learns nothing about the folder. Raises Busy after too many requests.
        """
        ...
