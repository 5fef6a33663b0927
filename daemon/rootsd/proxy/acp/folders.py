"""Ask the daemon which folders a session may have, and the disk where paths lead."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rootsd.core.access import Access
from rootsd.core.paths import bytes_of
from rootsd.link import rpc, sandbox
from rootsd.link.connect import Sandboxed, connect_to_daemon
from rootsd.net.root_question import TIMEOUT_S
from rootsd.proxy.run.roots import RootFolder, parse_daemon_roots
from rootsd.wall.session.view_feed import answered, ask
from rootsd.wire.feed import FEED_VERSION
from rootsd.wire.hello import HELLO_METHOD, Hello, hello_params
from rootsd.wire.requested_scope import RequestedScope


class ApprovedFolders:
    """The folders that the sessions of one agent may have, and what only the wall hides in them.

    `scope` is what the flags ask for. A scope that narrows is the set of each session. Otherwise,
    a session gets the workspace of its own folder.
    """

    def __init__(self, client: str, scope: RequestedScope) -> None:
        self._client = client
        self._scope = scope
        self.narrows = scope.narrows

    def approved(self) -> tuple[RootFolder, ...]:
        """Return all folders in the scope, as verified now. Raises RootsdError."""
        return self._ask(self._scope)

    def together_with(self, folder: bytes) -> tuple[RootFolder, ...]:
        """Return the folders of a session in an approved `folder`. Raises RootsdError."""
        if self._scope.narrows:
            return self._ask(self._scope)
        return self._ask(RequestedScope(workspace=os.fsdecode(folder)))

    def folder(self, path: str) -> bytes | None:
        """Return the real path of a folder, or None if there is none."""
        real = self.place(path)
        return real if real is not None and os.path.isdir(real) else None

    def place(self, path: str) -> bytes | None:
        """Return where a path leads, or None if no file can be there.

        None also if that depends on the reader: the disk follows a link before `..`, and some
        programs remove `..` and the name before it first.
        """
        try:
            given = bytes_of(path)
            real = os.path.realpath(given)
            return real if os.path.realpath(os.path.normpath(given)) == real else None
        except (OSError, ValueError):  # UnicodeEncodeError among them
            return None

    def _ask(self, scope: RequestedScope) -> tuple[RootFolder, ...]:
        greeting = hello_params(Hello(client=self._client, scope=scope))
        try:
            followed = answered(ask({"version": FEED_VERSION, "part": "roots", "hello": greeting}))
        except Sandboxed:
            return _ask_as_mcp_client(greeting)
        except rpc.DaemonGone:
            if not sandbox.in_sandbox():
                raise
            return _ask_as_mcp_client(greeting)
        followed.feed.close()
        return tuple(
            RootFolder(root.path, root.name, root.access is Access.READ_WRITE, root.denied)
            for root in followed.roots
        )


def _ask_as_mcp_client(greeting: Mapping[str, Any]) -> tuple[RootFolder, ...]:
    """Return the roots on the socket that a sandbox shows: those that need no wall of rootsd."""
    with connect_to_daemon(TIMEOUT_S) as channel:
        channel.settimeout(TIMEOUT_S)
        rpc.ask(channel, HELLO_METHOD, greeting)
        return parse_daemon_roots(rpc.ask(channel, "roots/list", {}))
