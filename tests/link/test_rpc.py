"""One request over a socket: results, errors, notifications, and every fault of a peer."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.errors import DaemonUnreachable, ErrorCode
from rootsd.link import rpc, sandbox
from rootsd.link.connect import ControlSocketHidden

REPLY = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}\n'


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], socket.socket]]:
    """Makes a channel whose other end takes one line, says these bytes and hangs up."""
    open_ends: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def make(answer: bytes) -> socket.socket:
        ours, theirs = socket.socketpair()

        def serve() -> None:
            with theirs, theirs.makefile("rb") as lines:
                lines.readline()
                theirs.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        open_ends.append(ours)
        return ours

    yield make
    for end in open_ends:
        end.close()
    for thread in threads:
        thread.join(30)


def test_a_request_is_one_line_of_json_rpc() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(REPLY)
        assert rpc.ask(ours, "check", {"path": "/\udcff\n"}) == {"a": 1}
        line = theirs.recv(1 << 16)
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "check",
        "params": {"path": "/\udcff\n"},
    }


def test_progress_is_passed_on_in_order_before_the_result_and_the_rest_is_dropped(
    answering: Callable[[bytes], socket.socket],
) -> None:
    notices = b"".join(
        b'{"jsonrpc":"2.0","method":"working","params":{}}\n'
        b'{"jsonrpc":"2.0","method":"progress","params":{"n":%d}}\n' % n
        for n in range(3)
    )
    seen: list[dict[str, Any]] = []
    assert rpc.ask(answering(notices + REPLY), "scan", {}, seen.append) == {"a": 1}
    assert seen == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert rpc.ask(answering(notices + REPLY), "scan", {}) == {"a": 1}


def test_an_error_keeps_code_remedy_and_choices(
    answering: Callable[[bytes], socket.socket],
) -> None:
    error = {
        "code": -32000,
        "message": "api fits two",
        "data": {
            "code": "ambiguous",
            "remedy": "rootsd ls",
            "typed": "api",
            "choices": ["a/api", "b/api"],
        },
    }
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n"
    with pytest.raises(rpc.DaemonError) as caught:
        rpc.ask(answering(line), "decide", {})
    assert caught.value.code is ErrorCode.AMBIGUOUS
    assert (caught.value.message, caught.value.remedy) == ("api fits two", "rootsd ls")
    assert (caught.value.typed, caught.value.choices) == ("api", ("a/api", "b/api"))


@pytest.mark.parametrize(
    "error",
    [
        b'{"code":-32603,"message":"broken"}',
        b'{"code":1,"message":"broken","data":[]}',
        b'{"code":1,"message":"broken","data":{"code":"a word of tomorrow","choices":"?"}}',
    ],
)
def test_an_error_of_another_form_is_a_plain_failure(
    answering: Callable[[bytes], socket.socket], error: bytes
) -> None:
    line = b'{"jsonrpc":"2.0","id":null,"error":%s}\n' % error
    with pytest.raises(rpc.DaemonError, match="broken") as caught:
        rpc.ask(answering(line), "status", {})
    assert caught.value.code is ErrorCode.FAILED
    assert caught.value.choices == ()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\n",
        b"[]\n",
        b'{"id":1,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":1,"result":[]}\n',
        b'{"jsonrpc":"2.0","id":1}\n',
        b'{"jsonrpc":"2.0","method":"progress","params":[]}\n',
        b"\xff\n",
    ],
)
def test_a_peer_with_another_protocol_is_an_error(
    answering: Callable[[bytes], socket.socket], answer: bytes
) -> None:
    with pytest.raises(DaemonUnreachable, match="protocol") as caught:
        rpc.ask(answering(answer), "status", {})
    assert caught.value.remedy == "rootsd down && rootsd up"


@pytest.mark.parametrize("answer", [b"", b'{"jsonrpc":"2.0","id":1,"result":{}}'])
def test_an_incomplete_response_is_an_error(
    answering: Callable[[bytes], socket.socket], answer: bytes
) -> None:
    with pytest.raises(DaemonUnreachable, match="hung up"):
        rpc.ask(answering(answer), "status", {})


def test_a_daemon_that_is_silent_or_closes_before_the_request_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.01)
        with pytest.raises(DaemonUnreachable, match="does not answer"):
            rpc.ask(ours, "status", {})
        theirs.close()
        with pytest.raises(DaemonUnreachable, match="hung up"):
            rpc.ask(ours, "status", {})


def test_without_a_daemon_and_with_a_stale_socket_the_next_command_is_named(
    rootsd_dir: Path,
) -> None:
    with pytest.raises(DaemonUnreachable, match="the daemon is not running") as caught:
        rpc.connect_control()
    assert caught.value.remedy == "rootsd up"
    path = rootsd_dir / "run" / "ctl" / "control.sock"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(DaemonUnreachable, match="the daemon is not running"):
        rpc.connect_control()


def test_a_sandbox_that_hides_the_control_socket_is_named(rootsd_dir: Path) -> None:
    (rootsd_dir / "run" / "pub").mkdir(parents=True)
    with pytest.raises(rpc.DaemonGone, match="not running"):
        rpc.connect_control()
    (rootsd_dir / "run" / "pub" / "mcp.sock").touch()
    with pytest.raises(ControlSocketHidden, match="sandbox that hides") as hidden:
        rpc.connect_control()
    assert hidden.value.code is ErrorCode.REFUSED
    assert "outside of the sandbox" in hidden.value.remedy
    (rootsd_dir / "run" / "ctl").mkdir()  # a daemon has run, and has ended
    with pytest.raises(rpc.DaemonGone, match="not running"):
        rpc.connect_control()


def test_inside_the_wall_the_error_says_to_decide_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOTSD_CONFINED", "1")
    with pytest.raises(ControlSocketHidden, match="inside the wall") as hidden:
        rpc.connect_control()
    assert hidden.value.code is ErrorCode.REFUSED
    assert "outside the wall" in hidden.value.remedy
    monkeypatch.setenv("ROOTSD_CONFINED", "")
    with pytest.raises(rpc.DaemonGone, match="not running"):
        rpc.connect_control()


def test_in_a_sandbox_the_error_does_not_recommend_another_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "in_sandbox", lambda: True)
    with pytest.raises(rpc.DaemonGone, match="runs in a sandbox") as absent:
        rpc.connect_control()
    assert "rootsd up" not in absent.value.remedy
