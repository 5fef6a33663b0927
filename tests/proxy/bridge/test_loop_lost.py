"""The loss of a daemon: what the next daemon is asked, and what the client sees."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from rootsd.places.runtime_dir import find_runtime_dir
from support.bridges import (
    HANG_GUARD_S,
    INITIALIZE,
    Converse,
    Daemon,
    answer_pings,
    bridge,
    daemons,
    fault,
    notice,
    reply,
    request,
    shake_hands,
)

PONG = reply(1, {})
URI = "roots://approved"


def vanish_with(*answers: bytes, after: int) -> Callable[[Daemon], None]:
    """Return a conversation: read `after` lines, send `answers`, and hang up."""

    def converse(daemon: Daemon) -> None:
        for _ in range(after):
            daemon.line()
        daemon.say(*answers)

    return converse


def test_safe_requests_are_replayed_and_the_others_fail() -> None:
    asked = [
        request(0, "ping"),
        request(1, "tools/list"),
        request(2, "tools/call", {"name": "from_the_future"}),
        request("3", "resources/read", {"uri": URI}),
        request(4, "unheard/of"),
    ]

    def answer_the_rest(daemon: Daemon) -> None:
        assert [daemon.line(), daemon.line()] == [asked[0], asked[3]]
        daemon.say(reply("3", {"contents": []}), reply(0, {}))
        assert daemon.rest() == b""

    with daemons(vanish_with(reply(1, {}), after=5), answer_the_rest), bridge() as client:
        client.say(*asked)
        answers = [client.hear() for _ in asked]
        assert client.leave() == 0
        assert client.stdout.read() == b""
    codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers}
    assert codes == {0: None, 1: None, 2: -32603, "3": None, 4: -32603}
    failed = next(answer["error"] for answer in answers if answer["id"] == 4)
    assert failed["message"] == "rootsd was restarted before it answered; try: ask again"


def test_a_partial_answer_of_a_lost_daemon_is_dropped() -> None:
    half = reply(1, {"of": "the first"})[:-5]
    with daemons(vanish_with(half, after=1), answer_pings), bridge() as client:
        assert client.ask(1, "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert client.leave() == 0


def test_a_request_that_crashes_every_daemon_is_given_up() -> None:
    dying = vanish_with(after=1)
    with daemons(dying, dying, dying, answer_pings), bridge() as client:
        assert client.ask(1, "ping")["error"]["code"] == -32603
        assert client.ask(2, "ping")["result"] == {}
        assert client.leave() == 0


def test_a_daemon_without_the_agreed_protocol_version_ends_the_session() -> None:
    def older(daemon: Daemon) -> None:
        daemon.say(reply(daemon.hear()["id"], {"protocolVersion": "2024-11-05"}))
        assert daemon.rest() == b""

    with daemons(shake_hands, older), bridge() as client:
        client.ask(0, "initialize", INITIALIZE)
        client.say(notice("notifications/initialized"))
        answer = client.ask(1, "ping")
        assert "does not speak the MCP version" in answer["error"]["message"]
        assert client.leave() == 69


def test_requests_wait_for_a_daemon_that_comes_back() -> None:
    """Nobody listens for a while: the socket is closed, not only the connection."""
    with bridge() as client:
        with daemons(vanish_with(PONG, after=1)):
            assert client.ask(1, "ping")["result"] == {}
        assert not os.path.exists(find_runtime_dir().mcp_socket)
        client.say(request(2, "ping"))
        with daemons(answer_pings):
            assert client.hear()["id"] == 2
            assert client.leave() == 0


def test_a_client_that_leaves_does_not_wait_for_a_daemon_that_never_accepts() -> None:
    """The socket of the second one is there, as a supervisor holds it, and nobody behind it."""
    with bridge() as client, daemons(vanish_with(PONG, after=1)):
        assert client.ask(1, "ping")["result"] == {}
        assert client.leave() == 0


def narrow(daemon: Daemon) -> None:
    for _ in ("hello", "initialize"):
        daemon.say(reply(daemon.hear()["id"], {"protocolVersion": "2025-11-25"}))


@pytest.mark.parametrize(
    ("flags", "first", "method"),
    [((), shake_hands, "initialize"), (("--only", "api"), narrow, "rootsd/hello")],
)
def test_a_client_that_leaves_does_not_wait_for_a_daemon_that_never_answers(
    flags: tuple[str, ...], first: Converse, method: str
) -> None:
    asked = threading.Event()

    def hang(daemon: Daemon) -> None:
        assert daemon.hear()["method"] == method
        asked.set()
        daemon.rest()

    with bridge(*flags) as client, daemons(first, hang):
        client.ask(0, "initialize", INITIALIZE)
        if not flags:
            client.say(notice("notifications/initialized"))
        assert asked.wait(HANG_GUARD_S)
        assert client.leave() == 0


WITH_ROOTS = {**INITIALIZE, "capabilities": {"roots": {}}}


def test_a_call_that_is_held_at_the_end_of_input_reaches_the_same_daemon() -> None:
    call = request(1, "tools/call", {"name": "list_roots"})

    def answer_the_call(daemon: Daemon) -> None:
        shake_hands(daemon)
        assert daemon.line() == call
        daemon.say(PONG)
        assert daemon.rest() == b""

    with daemons(answer_the_call), bridge() as client:
        client.ask(0, "initialize", WITH_ROOTS)
        client.say(notice("notifications/initialized"), call)
        assert client.hear()["method"] == "roots/list"
        client.stdin.close()
        assert client.answer()["id"] == 1
        assert client.leave() == 0


def test_a_call_that_is_held_when_the_session_ends_is_answered() -> None:
    is_held = threading.Event()

    def vanish(daemon: Daemon) -> None:
        narrow(daemon)
        assert is_held.wait(HANG_GUARD_S)

    def refuse(daemon: Daemon) -> None:
        daemon.say(fault(daemon.hear()["id"], -32602))
        assert daemon.rest() == b""

    with daemons(vanish, refuse), bridge("--only", "api") as client:
        client.ask(0, "initialize", WITH_ROOTS)
        call = request(1, "tools/call", {"name": "list_roots"})
        client.say(notice("notifications/initialized"), call)
        assert client.hear()["method"] == "roots/list"
        is_held.set()
        assert "cannot narrow this session" in client.answer()["error"]["message"]
        assert client.leave() == 7


def test_a_client_that_closed_both_pipes_gets_nothing() -> None:
    asked = threading.Event()

    def hang(daemon: Daemon) -> None:
        daemon.line()
        asked.set()
        daemon.rest()

    with bridge() as client, daemons(hang):
        client.say(request(1, "ping"))
        assert asked.wait(HANG_GUARD_S)
        client.stdout.close()
        assert client.leave() == 0
