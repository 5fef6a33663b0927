"""Listen on the two sockets, and bind them anew when their names disappear.

The runtime folder goes at a logout, and people tidy up; connections live on without a name, but
nobody finds the daemon any more. So a name that is gone is made anew, or elsewhere, where clients
look next.
"""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.system import runtime_dir
from rootsd.system.ipc.acceptor import Acceptor, ConnectionHandler
from rootsd.system.ipc.listener import listen, watch_socket_names
from rootsd.system.ipc.socket_activation import CONTROL, MCP, inherited_listeners
from rootsd.system.lock import DaemonLock, LockRecord
from rootsd.system.private_files import NotPrivate, ensure_private_folder
from rootsd.system.runtime_dir import RuntimeDir

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunFolderClaim:
    """The runtime folder, our lock on it, and what is to be written into locks on further ones."""

    folder: RuntimeDir
    lock: DaemonLock
    record: LockRecord


def fallback_folders() -> list[bytes]:
    """Where the sockets can go if the runtime folder does; made now, as long as we may."""
    usable = []
    for folder in runtime_dir.find_runtime_dirs()[1:]:
        with suppress(NotPrivate):
            ensure_private_folder(Path(os.fsdecode(folder.path)))
            usable.append(folder.path)
    return usable


class SocketListeners:
    """Listens in the folder of `claim`, or on what the supervisor handed over.

    A context manager: at its end nobody is listened to. Raises NotPrivate and BadHandover.
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
        """Where the command line finds the daemon now."""
        return self._control.path

    async def serve(self) -> None:
        """Serve both sockets. Returns when clients cannot find them any more, and there is no
        place for others; connections end then."""
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
        log.warning("the sockets have lost their names")
        for folder in runtime_dir.find_runtime_dirs():
            try:
                await self._move_to(folder)
            except RootsdError as error:
                log.warning("%s", error)
            else:
                where = safe_label(folder.path, limit=None)
                log.warning("they have new ones, in %s", where)
                return True
        return False

    async def _move_to(self, folder: RuntimeDir) -> None:
        place = Path(os.fsdecode(folder.path))
        with ExitStack() as undo:
            if not any(lock.is_of(place) for lock in self._locks):
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mcp.close()
        self._control.close()
        for lock in self._locks[1:]:
            lock.release()
