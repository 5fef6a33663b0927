"""Bridges and daemons of different versions, as an upgrade leaves them beside each other.

The lines of rootsd 0.1.0 are as they were on the wire; what comes later has to go on with them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rootsd.system.ipc.connect import connect
from rootsd.system.runtime_dir import find_runtime_dir
from support.bridges import HANG_GUARD_S, Daemon, bridge, daemons, reply
from support.publishing import FakeSource, root
from support.serving import published

HELLO_0_1_0 = (
    b'{"jsonrpc":"2.0","id":"rootsd-bridge-1","method":"rootsd/hello","params":{"version":1,'
    b'"client":"an editor","only":["api"],"tags":["work"],"cwd":"/src/docs/lib","any_uri":true}}\n'
)
NAME_ONLY_0_1_0 = (
    b'{"jsonrpc":"2.0","id":"rootsd-bridge-1","method":"rootsd/hello","params":{"version":1,'
    b'"client":"an editor"}}\n'
)
WELCOME_0_1_0 = (
    b'{"jsonrpc":"2.0","id":"rootsd-bridge-1","result":{"version":1,"rootsd":"0.1.0"}}\n'
)
REFUSAL_0_1_0 = (
    b'{"jsonrpc":"2.0","id":"rootsd-bridge-1","error":{"code":-32602,"message":"this hello cannot'
    b' be used","data":{"reason":"unknown: colour","version":1}}}\n'
)
ROOTS = b'{"jsonrpc":"2.0","id":2,"method":"roots/list"}\n'
SOURCE = (root("/src/api"), root("/src/docs"), root("/src/web", tags=("work",)), root("/src/x"))


@contextmanager
def old_bridge(*lines: bytes) -> Iterator[list[dict[str, Any]]]:
    """What a daemon of today says to these lines."""
    with published(FakeSource(*SOURCE)), connect(find_runtime_dir().mcp_socket) as connection:
        connection.settimeout(HANG_GUARD_S)
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answers:
            yield [json.loads(line) for line in answers]


def test_an_old_bridge_narrows_a_new_daemon() -> None:
    with old_bridge(HELLO_0_1_0, ROOTS) as (welcome, listing):
        assert welcome["id"] == "rootsd-bridge-1"
        assert welcome["result"]["version"] >= 1
        assert [each["name"] for each in listing["result"]["roots"]] == ["api", "docs", "web"]


def test_an_old_bridge_that_only_gives_a_name_is_told_everything() -> None:
    with old_bridge(NAME_ONLY_0_1_0, ROOTS) as (welcome, listing):
        assert "result" in welcome
        assert len(listing["result"]["roots"]) == 4


def test_a_new_bridge_is_narrowed_by_an_old_daemon() -> None:
    def old(daemon: Daemon) -> None:
        asked = daemon.hear()
        assert (asked["id"], asked["method"]) == ("rootsd-bridge-1", "rootsd/hello")
        params = asked["params"]
        # 0.1.0 refuses any field but these, so that nothing it does not know can be ignored.
        assert params.keys() <= {"version", "client", "only", "tags", "cwd", "any_uri"}
        daemon.say(WELCOME_0_1_0)
        daemon.say(reply(daemon.hear()["id"], {"roots": []}))

    with daemons(old), bridge("--client", "x", "--only", "api", "--only", "cwd") as client:
        assert client.ask(1, "roots/list")["result"] == {"roots": []}
        assert client.leave() == 0


def test_a_new_bridge_says_what_an_old_daemon_does_not_heed() -> None:
    def old(daemon: Daemon) -> None:
        daemon.hear()
        daemon.say(REFUSAL_0_1_0)
        assert daemon.rest() == b""

    with daemons(old), bridge("--only", "api") as client:
        error = client.ask(1, "roots/list")["error"]
        assert "unknown: colour" in error["message"]
        assert error["data"]["remedy"] == "rootsd up"
        assert client.leave() == 7


@pytest.mark.parametrize(
    ("params", "welcomed"),
    [({"version": 2, "only": ["api"]}, True), ({"version": 2, "colour": "red"}, False)],
)
def test_a_newer_bridge_is_followed_in_all_it_says_or_refused(
    params: dict[str, Any], welcomed: bool
) -> None:
    hello = {"jsonrpc": "2.0", "id": "h", "method": "rootsd/hello", "params": params}
    with old_bridge(json.dumps(hello).encode() + b"\n") as [answer]:
        assert ("result" in answer) == welcomed
