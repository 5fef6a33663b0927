"""The hello of a bridge to daemons that support it, do not know it, or refuse it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.bridges import PING, Daemon, bridge, daemons, fault, reply, run

PONG = reply(1, {})


def test_the_hello_names_the_client_and_its_answer_is_hidden() -> None:
    def greet(daemon: Daemon) -> None:
        heard = daemon.hear()
        assert heard["method"] == "rootsd/hello"
        assert heard["params"] == {"version": 1, "client": "my editor"}
        assert daemon.line() == PING
        for byte in reply(heard["id"], {}) + PONG:
            daemon.say(bytes([byte]))

    with daemons(greet):
        done = run(PING, "--client", "my editor")
    assert done.stdout == PONG


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda id_: fault(id_, -32601), "it is too old"),
        (lambda id_: fault(id_, -32602, "no", {"reason": "unknown: colour"}), "unknown: colour"),
    ],
)
def test_a_daemon_that_ignores_the_scope_ends_the_session_before_any_request(
    answer: Callable[[object], bytes], reason: str
) -> None:
    def refuse(daemon: Daemon) -> None:
        hello = daemon.hear()
        assert hello["params"]["scope"] == {"names": ["api"]}
        daemon.say(answer(hello["id"]), reply(1, {"roots": ["everything"]}))
        assert daemon.rest() == b""

    with daemons(refuse), bridge("--only", "api") as client:
        first = client.ask(1, "roots/list")
        assert reason in first["error"]["message"]
        assert first["error"]["data"]["remedy"] == "rootsd up"
        assert client.ask(2, "roots/list")["error"]["message"] == first["error"]["message"]
        assert client.leave() == 7
