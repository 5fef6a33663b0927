"""Bridges and daemons of different versions, as after an upgrade."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rootsd.link.connect import connect
from rootsd.places.runtime_dir import find_runtime_dir
from support.bridges import HANG_GUARD_S, Daemon, bridge, daemons
from support.mcp_harness import FakeSource, root
from support.threaded_publisher import published

REFUSAL = (
    b'{"jsonrpc":"2.0","id":"rootsd-bridge-1","error":{"code":-32602,"message":"this hello cannot'
    b' be used","data":{"reason":"unknown: colour","version":1}}}\n'
)
SOURCE = (root("/src/api"), root("/src/docs"), root("/src/web", tags=("work",)), root("/src/x"))


@contextmanager
def bridge_lines(*lines: bytes) -> Iterator[list[dict[str, Any]]]:
    """Return the answers of the current daemon to these lines."""
    with published(FakeSource(*SOURCE)), connect(find_runtime_dir().mcp_socket) as connection:
        connection.settimeout(HANG_GUARD_S)
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answers:
            yield [json.loads(line) for line in answers]


def test_a_new_bridge_reports_what_an_old_daemon_ignores() -> None:
    def old(daemon: Daemon) -> None:
        daemon.hear()
        daemon.say(REFUSAL)
        assert daemon.rest() == b""

    with daemons(old), bridge("--only", "api") as client:
        error = client.ask(1, "roots/list")["error"]
        assert "unknown: colour" in error["message"]
        assert error["data"]["remedy"] == "rootsd up"
        assert client.leave() == 7


@pytest.mark.parametrize(
    ("params", "welcomed"),
    [
        ({"version": 2, "scope": {"names": ["api"]}}, True),
        ({"version": 2, "colour": "red"}, False),
    ],
)
def test_a_newer_bridge_is_obeyed_completely_or_refused(
    params: dict[str, Any], welcomed: bool
) -> None:
    hello = {"jsonrpc": "2.0", "id": "h", "method": "rootsd/hello", "params": params}
    with bridge_lines(json.dumps(hello).encode() + b"\n") as [answer]:
        assert ("result" in answer) == welcomed
