"""Publishing over the real socket from another thread, for programs and blocking code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import start_blocking_portal

from rootsd.host.folders import run_folder
from rootsd.host.ipc.accept import Acceptor, Heard
from rootsd.host.ipc.sockets import listen
from rootsd.publish.session import serve_session
from support.publishing import FakeSource, Notes


class Published:
    """A source that is served; `set` replaces its roots from this thread."""

    def __init__(self, source: FakeSource, call: Any) -> None:  # noqa: ANN401
        self._source = source
        self._call = call

    def set(self, *roots: Any) -> None:  # noqa: ANN401
        self._call(self._source.publish, *roots)


@contextmanager
def published(source: FakeSource) -> Iterator[Published]:
    """Serve `source` where clients look."""

    async def handle(stream: Any, _: object, heard: Heard) -> None:  # noqa: ANN401
        heard()
        await serve_session(stream, source, witness=Notes())

    with start_blocking_portal() as portal, listen(run_folder().mcp_socket) as listener:
        serving = portal.start_task_soon(Acceptor(listener.socket, handle).serve)
        try:
            yield Published(source, portal.call)
        finally:
            serving.cancel()
