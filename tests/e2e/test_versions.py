"""Bridges and daemons of different versions, as after an upgrade.

The lines of rootsd 0.1.0 are the original ones. Later versions must keep working with them.
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
from support.mcp_harness import FakeSource, root
from support.release_files import recorded
from support.threaded_publisher import published

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
    """Return the answers of the current daemon to these lines."""
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


def test_an_old_bridge_that_only_sends_a_name_gets_everything() -> None:
    with old_bridge(NAME_ONLY_0_1_0, ROOTS) as (welcome, listing):
        assert "result" in welcome
        assert len(listing["result"]["roots"]) == 4


def test_an_old_daemon_narrows_a_new_bridge() -> None:
    def old(daemon: Daemon) -> None:
        asked = daemon.hear()
        assert (asked["id"], asked["method"]) == ("rootsd-bridge-1", "rootsd/hello")
        params = asked["params"]
        # 0.1.0 refuses all other fields, so that it never ignores an unknown one.
        assert params.keys() <= {"version", "client", "only", "tags", "cwd", "any_uri"}
        daemon.say(WELCOME_0_1_0)
        daemon.say(reply(daemon.hear()["id"], {"roots": []}))

    with daemons(old), bridge("--client", "x", "--only", "api", "--only", "cwd") as client:
        assert client.ask(1, "roots/list")["result"] == {"roots": []}
        assert client.leave() == 0


def test_a_new_bridge_reports_what_an_old_daemon_ignores() -> None:
    def old(daemon: Daemon) -> None:
        daemon.hear()
        daemon.say(REFUSAL_0_1_0)
        assert daemon.rest() == b""

    with daemons(old), bridge("--only", "api") as client:
        error = client.ask(1, "roots/list")["error"]
        assert "unknown: colour" in error["message"]
        assert error["data"]["remedy"] == "rootsd up"
        assert client.leave() == 7


def _results(answers: list[dict[str, Any]]) -> dict[object, dict[str, Any]]:
    return {each["id"]: each["result"] for each in answers if "result" in each}


@pytest.mark.parametrize("name", ["bridge", "run"])
def test_the_recorded_lines_of_a_live_proxy_get_the_same_kind_of_answers(name: str) -> None:
    lines = recorded(name, "proxy")
    before = _results([json.loads(line) for line in recorded(name, "daemon")])
    with old_bridge(*lines) as answers:
        now = _results(answers)
    assert now.keys() == before.keys()
    # `list_roots` has no structured answer any more, which needs a restart of the client.
    for id_, result in before.items():
        assert result.keys() - {"structuredContent"} <= now[id_].keys()


def test_a_recorded_bridge_is_narrowed_as_its_hello_says() -> None:
    with old_bridge(*recorded("bridge", "proxy"), ROOTS) as answers:
        [listing] = [each["result"]["roots"] for each in answers if "roots" in each["result"]]
    assert [each["name"] for each in listing] == ["web"]  # the only root with the tag


@pytest.mark.parametrize(
    ("params", "welcomed"),
    [({"version": 2, "only": ["api"]}, True), ({"version": 2, "colour": "red"}, False)],
)
def test_a_newer_bridge_is_obeyed_completely_or_refused(
    params: dict[str, Any], welcomed: bool
) -> None:
    hello = {"jsonrpc": "2.0", "id": "h", "method": "rootsd/hello", "params": params}
    with old_bridge(json.dumps(hello).encode() + b"\n") as [answer]:
        assert ("result" in answer) == welcomed
