"""`rootsd bridge` as clients start it: a process with pipes and hardly any environment."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from rootsd.host.accept import Acceptor
from rootsd.host.folders import run_folder
from rootsd.host.sockets import Listener, listen
from rootsd.publish.session import serve_session
from support.publishing import FakeSource, Notes, root

HANG_GUARD_S = 20
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "rootsd", "bridge", *flags]


def environment(**more: str) -> dict[str, str]:
    """What both SDKs hand to a stdio server, and the folder of this test."""
    names = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "ROOTSD_DIR")
    return {name: os.environ[name] for name in names if name in os.environ} | more


@contextmanager
def bridge(*flags: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command(*flags), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**more), cwd="/"
    )
    with process:
        yield process
        process.kill()


def run(data: bytes, *flags: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*flags),
        input=data,
        capture_output=True,
        env=environment(**more),
        cwd="/",
        timeout=HANG_GUARD_S,
        check=False,
    )


def pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout


def faults(output: bytes) -> list[tuple[Any, int]]:
    answers = [json.loads(line) for line in output.splitlines()]
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


@contextmanager
def daemon(converse: Callable[[socket.socket], None]) -> Iterator[Listener]:
    """A listener whose connections are given to `converse`, one after another."""
    with listen(run_folder().mcp_socket) as listener:
        listener.socket.settimeout(HANG_GUARD_S)

        def serve() -> None:
            connection, _ = listener.socket.accept()
            with connection:
                connection.settimeout(HANG_GUARD_S)
                converse(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener
        thread.join(HANG_GUARD_S)
        assert not thread.is_alive()


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def test_bytes_pass_unchanged_both_ways_and_the_end_is_drained() -> None:
    data = os.urandom(3_000_000) + b"\n"
    with daemon(echo):
        done = run(data)
    assert done.stdout == data
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_client_that_leaves_without_a_word_meets_no_error() -> None:
    done = run(b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_answer_after_the_half_close_still_arrives() -> None:
    def answer_at_the_end(connection: socket.socket) -> None:
        asked = b""
        while data := connection.recv(65536):
            asked += data
        assert asked == PING
        connection.sendall(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')

    with daemon(answer_at_the_end):
        done = run(PING)
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert done.returncode == 0


def test_a_client_that_does_not_read_neither_loses_nor_stops_what_it_sends() -> None:
    taken = threading.Event()

    def flood(connection: socket.socket) -> None:
        sender = threading.Thread(target=lambda: connection.sendall(b"x" * 5_000_000 + b"\n"))
        sender.start()
        left = len(PING) + 2_000_000
        while left:
            left -= len(connection.recv(65536))
        taken.set()
        sender.join(HANG_GUARD_S)

    with daemon(flood), bridge() as process:
        stdin, stdout = pipes(process)
        stdin.write(PING)
        stdin.flush()
        stdin.write(b"y" * 2_000_000)
        stdin.flush()
        assert taken.wait(HANG_GUARD_S)
        assert len(stdout.readline()) == 5_000_001
        stdin.close()
        process.wait(HANG_GUARD_S)


def test_without_a_daemon_every_request_is_answered_with_the_command_to_type() -> None:
    lines = [
        b'{"jsonrpc":"2.0","id":0,"method":"initialize"}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b"not json",
        b'[{"jsonrpc":"2.0","id":"a","method":"ping"}]',
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    ]
    done = run(b"\n".join(lines))
    assert done.returncode == 69
    assert faults(done.stdout) == [(0, -32603), ("a", -32603), (2, -32603)]
    first = json.loads(done.stdout.splitlines()[0])["error"]
    assert first["message"] == "rootsd is not running; try: rootsd up"
    assert first["data"] == {"reason": "unreachable", "remedy": "rootsd up"}
    assert b"rootsd up" in done.stderr


def test_without_a_daemon_an_answer_comes_before_the_client_ends() -> None:
    with bridge() as process:
        stdin, stdout = pipes(process)
        for half in (PING[:10], PING[10:]):
            stdin.write(half)
            stdin.flush()
        assert faults(stdout.readline()) == [(1, -32603)]
        stdin.close()
        assert process.wait(HANG_GUARD_S) == 69


def test_a_bad_environment_is_an_answer_too() -> None:
    done = run(PING, ROOTSD_DIR="relative")
    assert done.returncode == 78
    assert "ROOTSD_DIR" in json.loads(done.stdout)["error"]["message"]


def test_a_daemon_that_vanishes_leaves_no_request_without_an_answer() -> None:
    def vanish(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        for _ in range(3):
            lines.readline()
        connection.sendall(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')

    asked = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n for n in range(3))
    with daemon(vanish), bridge() as process:
        stdin, stdout = pipes(process)
        stdin.write(asked)
        stdin.flush()
        assert json.loads(stdout.readline()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert faults(stdout.read()) == [(0, -32603), (2, -32603)]
        assert process.wait(HANG_GUARD_S) == 69


def test_a_daemon_that_vanishes_between_requests_ends_the_bridge() -> None:
    def answer_once(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')

    with daemon(answer_once), bridge() as process:
        stdin, stdout = pipes(process)
        stdin.write(PING)
        stdin.flush()
        assert len(stdout.read().splitlines()) == 1
        assert process.wait(HANG_GUARD_S) == 69


def test_a_client_that_closes_its_end_ends_the_bridge_without_a_traceback() -> None:
    with daemon(echo), bridge() as process:
        stdin, stdout = pipes(process)
        stdout.close()
        stdin.write(PING)
        stdin.flush()
        assert process.wait(HANG_GUARD_S) == 0
        assert process.stderr
        assert process.stderr.read() == b""


def test_the_name_of_the_client_is_told_and_the_reply_is_kept_from_it() -> None:
    heard: list[Any] = []

    def greet(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        heard.append(json.loads(lines.readline()))
        for byte in b'{"jsonrpc":"2.0","id":"rootsd-bridge","result":{}}\n':
            connection.sendall(bytes([byte]))
        connection.sendall(lines.readline())

    with daemon(greet):
        done = run(PING, "--client", "my editor")
    assert heard[0]["method"] == "rootsd/hello"
    assert heard[0]["params"] == {"version": 1, "client": "my editor"}
    assert done.stdout == PING


def test_a_daemon_that_knows_no_hello_is_spoken_to_all_the_same() -> None:
    def refuse(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        lines.readline()
        error = b'{"jsonrpc":"2.0","id":"rootsd-bridge","error":{"code":-32601,"message":"?"}}\n'
        connection.sendall(error + b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        assert lines.readline() == PING

    with daemon(refuse):
        done = run(PING, "--client=x")
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert done.returncode == 0


@pytest.mark.parametrize("flags", [["--nonsense"], ["--client"], ["word"], ["--only", "x"]])
def test_flags_it_does_not_have_are_refused(flags: list[str]) -> None:
    done = run(PING, *flags)
    assert done.returncode == 2
    assert b"usage: rootsd bridge" in done.stderr


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    with daemon(echo), bridge() as process:
        stdin, stdout = pipes(process)
        stdin.write(PING)
        stdin.flush()
        assert stdout.readline() == PING
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_GUARD_S) == 130
        assert process.stderr
        assert process.stderr.read() == b""


@pytest.mark.needs("linux")
def test_it_is_small_and_loads_nothing_but_the_standard_library() -> None:
    with daemon(echo), bridge() as process:
        stdin, stdout = pipes(process)
        stdin.write(PING)
        stdin.flush()
        assert stdout.readline() == PING
        status = Path(f"/proc/{process.pid}/status").read_text()
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    assert int(found[1]) <= 15 * 1024
    assert "pydantic" not in mapped
    assert "_asyncio" not in mapped


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@contextmanager
def published(portal: BlockingPortal, source: FakeSource) -> Iterator[None]:
    """Publishing over a real socket, in another thread."""

    async def handle(stream: Any, _: object) -> None:  # noqa: ANN401
        await serve_session(stream, source, witness=Notes())

    with listen(run_folder().mcp_socket) as listener:
        serving = portal.start_task_soon(Acceptor(listener.socket, handle).serve)
        yield
        serving.cancel()


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_an_sdk_client_works_through_it_in_every_mode(
    mode: str, portal: BlockingPortal
) -> None:
    source = FakeSource(root("/src/api"))
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", "--client", "a test"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"]},
        cwd="/",
    )
    with published(portal, source), anyio.fail_after(HANG_GUARD_S):
        async with Client(parameters, mode=mode) as client:
            listed = await client.call_tool("list_roots", {})
            assert listed.structured_content["roots"][0]["name"] == "api"
            assert len((await client.list_resources()).resources) == 2
