"""Listen on the two sockets, and bind them again if their files disappear.

A logout removes the runtime folder, and so may a cleanup. Open connections survive that, but no
client finds the daemon any more. So the daemon makes the files again, in the same folder or in the
next one where clients look.
"""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

import anyio
from msgspec import Struct

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.files.private_files import NotPrivate, ensure_private_folder
from rootsd.net.acceptor import Acceptor, ConnectionHandler
from rootsd.net.listener import listen, watch_socket_names
from rootsd.net.socket_activation import CONTROL, MCP, inherited_listeners
from rootsd.places import runtime_dir
from rootsd.places.runtime_dir import RuntimeDir

log = logging.getLogger(__name__)


class RunFolderClaim(Struct, frozen=True):
    """The runtime folder, our lock on it, and the record to write into further locks."""

    folder: RuntimeDir
    lock: DaemonLock
    record: LockRecord


def fallback_folders() -> list[bytes]:
    """Make the folders for the sockets if the runtime folder disappears, and return their paths.

    Confinement would not let the daemon make them later.
    """
    usable = []
    for folder in runtime_dir.find_runtime_dirs()[1:]:
        with suppress(NotPrivate):
            ensure_private_folder(Path(os.fsdecode(folder.path)))
            usable.append(folder.path)
    return usable


class SocketListeners:
    """The two listening sockets: in the folder of `claim`, or inherited from the supervisor.

    It is a context manager that closes them. Raises NotPrivate and BadHandover.
    """

    def __init__(
        self, claim: RunFolderClaim, *, control: ConnectionHandler, mcp: ConnectionHandler
    ) -> None:
        folder = claim.folder
        self._record = claim.record
        self._locks = [claim.lock]
        given = inherited_listeners()
        with ExitStack() as undo:
            self._control = given.get(CONTROL) or listen(folder.control_socket)
            undo.enter_context(self._control)
            self._mcp = given.get(MCP) or listen(folder.mcp_socket)
            undo.pop_all()
        self.control = Acceptor(self._control.socket, control)
        self.mcp = Acceptor(self._mcp.socket, mcp)

    @property
    def control_path(self) -> bytes:
        """Return the path where the command line finds the daemon now."""
        return self._control.path

    @property
    def folder(self) -> RuntimeDir:
        """Return the runtime folder that has the sockets now."""
        return RuntimeDir(os.path.dirname(os.path.dirname(self._control.path)))

    async def serve(self) -> None:
        """Serve both sockets.

        Return when clients cannot find them any more and no other folder is usable. Open
        connections end then.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self.control.serve)
            group.start_soon(self.mcp.serve)
            while True:
                with closing(watch_socket_names((self._control.path, self._mcp.path))) as watch:
                    while self._control.has_name() and self._mcp.has_name():
                        await watch.wait()
                if not await self._move():
                    break
            group.cancel_scope.cancel()

    async def _move(self) -> bool:
        log.warning("the socket files were removed")
        for folder in runtime_dir.find_runtime_dirs():
            try:
                await self._move_to(folder)
            except RootsdError as error:
                log.warning("%s", error)
            else:
                where = safe_label(folder.path, limit=None)
                log.warning("listening on new socket files in %s", where)
                return True
        return False

    async def _move_to(self, folder: RuntimeDir) -> None:
        place = Path(os.fsdecode(folder.path))
        with ExitStack() as undo:
            if not any(lock.is_on(place) for lock in self._locks):
                self._locks.append(undo.enter_context(DaemonLock.acquire(place, self._record)))
                undo.callback(self._locks.pop)
            control = undo.enter_context(listen(folder.control_socket))
            mcp = undo.enter_context(listen(folder.mcp_socket))
            undo.pop_all()
        with closing(self._control), closing(self._mcp):
            self._control, self._mcp = control, mcp
            await self.control.move_to(control.socket)
            await self.mcp.move_to(mcp.socket)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._mcp.close()
        self._control.close()
        for lock in self._locks[1:]:
            lock.release()
