"""A bridge process: bytes stay whole, in order, and bounded, even if daemons are lost."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest

from rootsd.service import start_record
from support.bridges import (
    HANG_GUARD_S,
    META_2026,
    PING,
    Daemon,
    answer_pings,
    bridge,
    daemons,
    echo,
    faults,
    notice,
    reply,
    request,
    run,
)
from support.unread_errors import NEEDS_A_READER, ROOTSD, UnreadErrors, started_unread

PONG = reply(1, {})


def test_lines_pass_unchanged_both_ways_to_the_end() -> None:
    lines = [os.urandom(30_000).replace(b"\n", b"\r") for _ in range(100)]
    data = b"\n".join(lines)  # without the last newline
    with daemons(echo):
        done = run(data)
    assert done.stdout == data + b"\n"
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_client_that_leaves_without_a_request_exits_successfully() -> None:
    done = run(b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_answer_after_the_half_close_still_arrives() -> None:
    def answer_at_the_end(daemon: Daemon) -> None:
        assert daemon.rest() == PING
        daemon.say(PONG)

    with daemons(answer_at_the_end):
        done = run(PING)
    assert (done.stdout, done.returncode) == (PONG, 0)


def test_a_client_that_takes_no_answer_of_the_bridge_itself_is_not_read() -> None:
    meta = {**META_2026, "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    line = request("x" * 50_000, "tools/call", {"name": "x", "_meta": meta})
    with daemons(echo), bridge() as client:
        client.say(PING)
        client.hear()
        unsent = client.say_what_fits(line * 200)
        assert len(unsent) > 2 << 20
        rest = threading.Thread(target=client.say, args=(unsent,))
        rest.start()
        assert {client.hear()["result"]["resultType"] for _ in range(200)} == {"input_required"}
        rest.join()


def test_a_client_that_does_not_read_can_still_send_and_loses_nothing() -> None:
    said, taken = threading.Event(), threading.Event()
    many = [b"y" * 9_999 + b"\n"] * 200

    def flood(daemon: Daemon) -> None:
        assert daemon.line() == PING
        daemon.say(b"x" * 5_000_000 + b"\n")
        said.set()
        for line in many:
            assert daemon.line() == line
        taken.set()
        daemon.say(PONG)
        assert daemon.rest() == b""

    with daemons(flood), bridge() as client:
        client.say(PING)
        assert said.wait(HANG_GUARD_S)
        client.say(*many)
        assert taken.wait(HANG_GUARD_S)
        assert len(client.stdout.readline()) == 5_000_001
        assert client.stdout.readline() == PONG
        assert client.leave() == 0


def test_an_endless_line_is_refused_and_the_session_continues() -> None:
    with daemons(answer_pings), bridge() as client:
        assert client.ask(1, "ping")["result"] == {}
        client.say(b"x" * 1_200_000)
        assert client.hear()["error"]["code"] == -32600
        client.say(b"x" * 1_200_000, b"\n")
        assert client.ask(2, "ping")["result"] == {}
        assert client.leave() == 0


def test_a_client_that_only_closes_its_end_ends_the_bridge_without_a_traceback() -> None:
    with daemons(echo), bridge() as client:
        client.say(PING)
        assert client.stdout.readline() == PING
        client.stdout.close()  # its input stays open, and nothing comes any more
        assert client.process.wait(HANG_GUARD_S) == 0
        assert client.complaints() == b""


def test_a_client_that_never_reads_anything_ends_the_bridge() -> None:
    with bridge() as client:
        client.stdout.close()
        assert client.process.wait(HANG_GUARD_S) == 0


def test_a_bridge_goes_on_if_nobody_reads_its_messages() -> None:
    """Each kind of standard error that takes no message: test_stdio.py."""
    with started_unread(UnreadErrors.FULL_PIPE, (*ROOTSD, "bridge")) as client:
        for number in range(2):  # without a daemon, it has something to say
            answer = client.ask(number, "ping")
            assert answer["error"]["data"]["remedy"] == "rootsd up"
        assert client.leave() == 69


@pytest.mark.parametrize("kind", [UnreadErrors.NO_READER, UnreadErrors.CLOSED])
def test_wrong_arguments_have_their_status_if_nobody_reads_why(kind: UnreadErrors) -> None:
    for verb in ("bridge", "run", "confine"):
        with started_unread(kind, (*ROOTSD, verb, "--nonsense")) as client:
            client.stdin.close()
            assert client.process.wait(HANG_GUARD_S) == 2


def test_this_test_detects_messages_that_must_be_read() -> None:
    with started_unread(UnreadErrors.NO_READER, (*NEEDS_A_READER, "bridge")) as client:
        client.say(PING)
        assert client.stdout.readline() == b""
    for verb in ("bridge", "run", "confine"):
        line = (*NEEDS_A_READER, verb, "--nonsense")
        with started_unread(UnreadErrors.NO_READER, line) as client:
            client.stdin.close()
            assert client.process.wait(HANG_GUARD_S) != 2


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    with daemons(echo), bridge() as client:
        client.say(PING)
        assert client.stdout.readline() == PING
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(HANG_GUARD_S) == 130
        assert client.complaints() == b""


@pytest.mark.needs("linux")
def test_it_is_small_and_loads_nothing_but_the_standard_library() -> None:
    with daemons(echo), bridge() as client:
        client.say(PING)
        assert client.stdout.readline() == PING
        status = Path(f"/proc/{client.process.pid}/status").read_text()
        mapped = Path(f"/proc/{client.process.pid}/maps").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    assert int(found[1]) <= 15 * 1024
    assert "pydantic" not in mapped
    assert "_asyncio" not in mapped


def test_without_a_daemon_every_request_gets_an_error_with_a_command() -> None:
    lines = [
        request(0, "initialize"),
        notice("notifications/initialized"),
        b"not json\n",
        b"[" + request("a", "ping").strip() + b"]\n",
        request(2, "tools/list").strip(),
    ]
    done = run(b"".join(lines))
    assert done.returncode == 69
    assert faults(done.stdout) == [(0, -32603), ("a", -32603), (2, -32603)]
    first = json.loads(done.stdout.splitlines()[0])["error"]
    assert first["message"] == "the daemon is not running; try: rootsd up"
    assert first["data"] == {"reason": "unreachable", "remedy": "rootsd up"}
    assert done.stderr.count(b"rootsd up") == 1


def test_a_client_that_got_errors_is_served_once_a_daemon_runs() -> None:
    with bridge() as client:
        client.say(PING[:10])
        client.say(PING[10:])
        assert client.hear()["error"]["code"] == -32603
        with daemons(answer_pings):
            assert client.ask(1, "ping")["result"] == {}
            assert client.leave() == 0


def test_a_bad_environment_is_reported_as_an_answer() -> None:
    done = run(PING, ROOTSD_DIR="relative")
    assert done.returncode == 78
    assert "ROOTSD_DIR" in json.loads(done.stdout)["error"]["message"]


def test_the_reason_of_a_failed_start_is_reported(rootsd_dir: Path) -> None:
    start_record.record_start()
    (rootsd_dir / "config").mkdir()
    (rootsd_dir / "config" / "config.toml").write_text("[roots\n")
    done = run(PING)
    assert done.returncode == 78
    assert "config.toml, line 1" in json.loads(done.stdout)["error"]["message"]


def test_after_down_no_daemon_is_started(rootsd_dir: Path) -> None:
    start_record.record_start()
    start_record.mark_stopped()
    done = run(PING)
    assert "stopped by rootsd down; try: rootsd up" in json.loads(done.stdout)["error"]["message"]
    assert done.returncode == 69
    assert not (rootsd_dir / "state" / "log").exists()
