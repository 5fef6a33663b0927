"""Publish on the real socket from another thread, for programs and blocking code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import start_blocking_portal

from rootsd.mcp.connection import serve_session
from rootsd.net.acceptor import Acceptor, MarkActive
from rootsd.net.listener import listen
from rootsd.places.runtime_dir import find_runtime_dir
from support.mcp_harness import FakeSource, no_wait
from support.recorded_session import RecordedObserver


class ThreadedPublisher:
    """A served source. `set` replaces its roots from this thread."""

    def __init__(self, source: FakeSource, call: Any) -> None:  # noqa: ANN401
        self._source = source
        self._call = call

    def set(self, *roots: Any) -> None:  # noqa: ANN401
        self._call(self._source.publish, *roots)


@contextmanager
def published(source: FakeSource) -> Iterator[ThreadedPublisher]:
    """Serve `source` where clients expect it."""

    async def handle(stream: Any, _: object, heard: MarkActive) -> None:  # noqa: ANN401
        heard()
        await serve_session(
            stream, source, observer=RecordedObserver(), mark_active=heard, await_turn=no_wait
        )

    with start_blocking_portal() as portal, listen(find_runtime_dir().mcp_socket) as listener:
        serving = portal.start_task_soon(Acceptor(listener.socket, handle).serve)
        try:
            yield ThreadedPublisher(source, portal.call)
        finally:
            serving.cancel()
