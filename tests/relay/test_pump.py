"""Real relays in front of real processes: what passes, what ends when, and what is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from rootsd.core.errors import ErrorCode
from support.bridges import HANG_GUARD_S, environment, notice, request
from support.publishing import FakeSource, root
from support.relays import SCRIPTED, command, hasty, is_gone, relay, started
from support.serving import published
from support.sizes import Sizes

API, WEB = root("/src/api"), root("/src/web")


def test_a_server_has_the_approved_roots_at_the_first_call_and_every_change_at_the_next() -> None:
    with published(FakeSource(API, WEB)) as roots, relay() as client:
        client.shake_hands()
        assert client.call(1, "allowed", "/src/web/x") is True
        assert client.call(2, "allowed", "/src/docs") is False
        for number, approved in enumerate([(API,), (API, WEB)], start=3):
            roots.set(*approved)
            assert client.hear()["params"]["data"] == len(approved)
            assert client.call(number, "allowed", "/src/web/x") is (WEB in approved)
        assert client.leave() == 0


def test_a_server_that_reads_no_roots_has_them_in_its_command_and_is_started_again() -> None:
    flags = ("--env", "ROOTS={roots}")
    with (
        published(FakeSource(API, WEB)) as roots,
        relay("--deaf", "-d={roots}", flags=flags) as client,
    ):
        client.shake_hands()
        first = client.call(1, "started")
        assert first["words"][1:] == ["-d=/src/api", "-d=/src/web"]
        assert first["roots"] == "/src/api:/src/web"
        roots.set(API)
        assert client.hear()["method"] == "notifications/tools/list_changed"
        second = client.call(2, "started")
        assert second["words"][1:] == ["-d=/src/api"]
        assert not psutil.pid_exists(first["pid"])
        assert client.leave() == 0


def test_a_server_that_ends_for_want_of_roots_comes_back_with_them() -> None:
    with published(FakeSource(API)) as roots, relay("--deaf", "--picky", "{root}") as client:
        client.shake_hands()
        assert client.call(1, "echo", 7) == 7
        roots.set()
        client.start_call(2, "hang")  # until it is ended, or refused by the relay
        client.answer()
        client.start_call(3, "hang")
        assert "no folder is approved" in client.answer()["error"]["message"]
        roots.set(WEB)
        assert client.hear()["method"] == "notifications/tools/list_changed"
        assert client.call(4, "started")["words"][-1] == "/src/web"
        assert client.leave() == 0


def test_without_a_daemon_nothing_is_approved_and_the_user_is_told() -> None:
    with relay() as client:
        client.shake_hands()
        assert client.call(1, "allowed", "/src/api") is False
        assert client.call(2, "echo", {"a": 1}) == {"a": 1}
        assert client.leave() == 0
        assert b"rootsd up" in client.complaints()


@pytest.mark.parametrize("status", [0, 3, 255])
def test_it_ends_as_the_server_does_and_answers_what_is_open(status: int) -> None:
    with relay() as client:
        client.shake_hands()
        client.call(1, "echo")
        client.start_call(2, "hang")
        client.start_call(3, "exit", status)
        answers = {(each := client.answer())["id"]: each["error"]["code"] for _ in range(2)}
        assert answers == {2: -32603, 3: -32603}
        assert client.process.wait(HANG_GUARD_S) == status


def test_a_server_that_is_killed_is_told_as_shells_do() -> None:
    with relay() as client:
        client.shake_hands()
        server = client.server()
        client.start_call(1, "hang")
        server.kill()
        assert client.answer()["error"]["data"]["reason"] == ErrorCode.FAILED
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_go_to_the_server(number: signal.Signals) -> None:
    with relay() as client:
        client.shake_hands()
        server = client.server()
        client.process.send_signal(number)
        assert client.process.wait(HANG_GUARD_S) in (128 + number, 1)  # 1: Python's own on SIGINT
        assert is_gone(server)


@pytest.mark.needs("linux")
def test_a_relay_that_is_killed_leaves_no_server_behind() -> None:
    with relay("--stubborn") as client:
        client.shake_hands()
        server = client.server()
        client.process.kill()
        assert is_gone(server)


def test_a_client_that_is_gone_takes_even_a_stubborn_server_with_it() -> None:
    with started(hasty(*SCRIPTED, "--stubborn")) as client:
        client.shake_hands()
        server, child = client.server(), psutil.Process(client.call(1, "spawn"))
        client.stdout.close()
        client.stdin.close()
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGKILL
        assert is_gone(server)
        assert is_gone(child)


def test_a_client_that_says_no_more_gets_the_answers_that_it_waits_for() -> None:
    with started(hasty(*SCRIPTED)) as client:
        client.shake_hands()
        client.start_call(1, "flood", 300)
        client.stdin.close()
        assert client.answer()["id"] == 1
        client.process.wait(HANG_GUARD_S)


def test_what_the_server_says_on_stderr_is_not_touched() -> None:
    with published(FakeSource(API)), relay() as client:
        client.shake_hands()
        client.start_call(1, "exit", 0)
        client.process.wait(HANG_GUARD_S)
        assert client.complaints() == b"bye\n"


@pytest.mark.parametrize(
    ("server", "status"),
    [("/not/there", 127), ("not-there", 127), ("/", 126), ("\x1b[31m", 127)],
)
def test_a_server_that_cannot_be_started_is_told_of_as_by_shells(
    server: str, status: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    said.write_bytes(request(1, "initialize", {}) + request(2, "tools/list"))
    with said.open("rb") as client:
        done = subprocess.run(
            command(server),
            stdin=client,
            capture_output=True,
            env=environment(),
            timeout=HANG_GUARD_S,
            check=False,
        )
    assert done.returncode == status
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["id"], "error" in each) for each in answers] == [(1, True), (2, True)]
    assert b"cannot be started" in done.stderr
    assert b"\x1b" not in done.stderr


def test_what_is_no_json_passes_as_it_is() -> None:
    data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(300_000)
    done = subprocess.run(
        command("cat"), input=data, capture_output=True, env=environment(), timeout=HANG_GUARD_S,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, data)
    assert b"does not speak JSON" in done.stderr


def test_a_last_line_may_lack_its_newline() -> None:
    done = subprocess.run(
        command(*SCRIPTED), input=request(1, "ping").strip(), capture_output=True,
        env=environment(), timeout=HANG_GUARD_S, check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["id"]) == (0, 1)


def test_long_lines_pass_both_ways(sizes: Sizes) -> None:
    size = sizes.pick(test=4 << 20, check=60 << 20, soak=60 << 20)
    with published(FakeSource(API)), relay() as client:
        client.shake_hands()
        assert len(client.call(1, "echo", "x" * size)) == size
        assert len(client.call(2, "big", size)) == size


def test_full_pipes_in_both_directions_are_no_standstill(sizes: Sizes) -> None:
    """The client writes and reads as fast as it can, and the server floods it."""
    calls = sizes.pick(test=60, check=600, soak=6000)
    with published(FakeSource(API)), relay() as client:
        client.shake_hands()

        def write() -> None:
            for number in range(calls):
                client.start_call(f"{number}-flood", "flood", 200)
                client.start_call(f"{number}-echo", "echo", "x" * 100_000)

        writer = threading.Thread(target=write)
        writer.start()
        ids = [client.answer()["id"] for _ in range(2 * calls)]
        writer.join(HANG_GUARD_S)
        assert ids == [f"{n}-{what}" for n in range(calls) for what in ("flood", "echo")]
        assert client.leave() == 0


def test_a_thousand_calls_in_flight_are_all_answered() -> None:
    with published(FakeSource(API)), relay() as client:
        client.shake_hands()
        client.say(
            *(request(n, "tools/call", {"name": "echo", "arguments": n}) for n in range(1000))
        )
        assert [client.answer()["result"] for _ in range(1000)] == list(range(1000))


def test_a_file_for_standard_output_does(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            command(*SCRIPTED), input=request(1, "ping"), stdout=out, env=environment(),
            timeout=HANG_GUARD_S, check=True,
        )  # fmt: skip
    assert json.loads((tmp_path / "out").read_bytes())["id"] == 1


def test_nothing_is_said_to_a_server_that_was_not_said_to_the_relay() -> None:
    """No probe of our own: in front of `cat`, each line comes back as it went."""
    with published(FakeSource(API)):
        lines = notice("notifications/initialized") + notice("notifications/x")
        done = subprocess.run(
            command("cat"), input=lines, capture_output=True, env=environment(),
            timeout=HANG_GUARD_S, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, lines)
