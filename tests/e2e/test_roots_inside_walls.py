"""On the MCP socket, a program behind the wall learns about the roots of its wall alone.

A static wall refuses the socket.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.person import Resident
from support.polling import until

pytestmark = [pytest.mark.needs("wall")]

NAMES = ("alpha", "beta", "gamma")
_HANG_GUARD_S = 60
_FRONT = """
import sys
from rootsd.wall.kernel import cell
from rootsd.wall.session import main
LEAK
sys.exit(main.main(sys.argv[1:]))
"""
_NO_NAME = "cell.become_waiter = lambda: None"
# Connects in one of several ways. Then it sends each line of its input, and prints the answer.
_PEER = r"""
import ctypes, os, socket, sys
path, way = sys.argv[1:]
libc = ctypes.CDLL(None)
connection = socket.socket(socket.AF_UNIX)
def connect():
    connection.connect(path)
def go_on_in_a_child():
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
match way:
    case "a child that ends":
        if os.fork() == 0:
            connect()
            os._exit(0)
        os.wait()
    case "a long line of processes":
        line = 'f() { [ $n = 0 ] && exec "$0" "$@"; n=$((n - 1)); (f "$@"); return $?; }; f "$@"'
        os.environ["n"] = "300"
        os.execv("/bin/sh", ["sh", "-c", line, *sys.orig_argv[:-1], "itself"])
    case "a pid namespace":
        assert libc.unshare(0x30000000) == 0
        go_on_in_a_child()
        connect()
    case "the name of a waiter":
        libc.prctl(15, b"rootsd-wall", 0, 0, 0)
        go_on_in_a_child()
        connect()
    case "the name of nothing":
        libc.prctl(15, b"systemd", 0, 0, 0)
        connect()
    case _:
        connect()
for line in sys.stdin:
    if way == "each line anew":
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connect()
                break
            except OSError:
                continue
    with connection.makefile("rw") as lines:
        lines.write(line)
        lines.flush()
        while '"id":' not in (answer := lines.readline()):
            print(answer, end="", flush=True)
        print(answer, end="", flush=True)
os._exit(0)
"""
WAYS = (
    "itself", "a child that ends", "a long line of processes", "a pid namespace",
    "the name of a waiter", "the name of nothing",
)  # fmt: skip
_HIDING = {"a child that ends", "a long line of processes"}
_UNTIL_2025 = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person who has approved three projects, with one daemon for all tests."""
    person = Resident(tmp_path_factory.mktemp("person"))
    for name in NAMES:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    for name in NAMES:
        person.rootsd("approve", name)
    yield person
    person.run("down")


class Inside:
    """A client of the MCP socket. Behind a wall, it is a program with these flags."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self._number = 0
        self.ask("initialize", _UNTIL_2025)

    def begin(self, method: str, params: object = None) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def result(self) -> Any:  # noqa: ANN401
        """Return the next result. Notifications before it are ignored."""
        assert self._process.stdout is not None
        while "id" not in (answer := json.loads(self._process.stdout.readline())):
            continue
        assert "result" in answer, answer
        return answer["result"]

    def ask(self, method: str, params: object = None) -> Any:  # noqa: ANN401
        """Send a request, and return the result."""
        self.begin(method, params)
        return self.result()

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool, and return its text."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return json.dumps(result)

    def names(self) -> list[str]:
        """Return the names of the roots."""
        return [root["name"] for root in self.ask("roots/list")["roots"]]


@contextmanager
def _client(
    person: Resident, way: str, flags: tuple[str, ...] | None, leak: str = ""
) -> Iterator[Inside]:
    socket = Path(person.environment()["ROOTSD_DIR"]) / "run" / "pub" / "mcp.sock"
    program = [sys.executable, "-I", "-S", "-c", _PEER, str(socket), way]
    front = [] if flags is None else [sys.executable, "-c", _FRONT.replace("LEAK", leak), *flags]
    with subprocess.Popen(
        [*front, *(["--"] if front else []), *program], text=True, cwd=person.parent,
        env=person.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield Inside(process)
        finally:
            process.kill()


def _everything_said(client: Inside) -> str:
    """Return all that the socket says about roots."""
    said = [json.dumps(client.ask("roots/list")), client.call("list_roots")]
    said += [client.call("list_roots", query=name) for name in NAMES]
    said.append(json.dumps(client.ask("resources/list")))
    said.append(json.dumps(client.ask("resources/read", {"uri": "roots://approved"})))
    completion = {
        "ref": {"type": "ref/resource", "uri": "roots://root/{+name}"},
        "argument": {"name": "name", "value": ""},
    }
    said.append(json.dumps(client.ask("completion/complete", completion)))
    return "".join(said)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_inside_learns_of_its_own_roots_only(person: Resident, way: str) -> None:
    with _client(person, way, ("--only", "alpha")) as client:
        said = _everything_said(client)
        assert not [name for name in ("beta", "gamma") if f"/{name}" in said], said
        # Whoever hides may be seen before its parent has ended.
        assert client.names() in ([["alpha"], []] if way in _HIDING else [["alpha"]])


def test_no_root_outside_the_wall_is_resolved_and_a_request_tells_nothing_about_it(
    person: Resident,
) -> None:
    with _client(person, "itself", ("--only", "alpha")) as client:
        assert '"inside": true' in client.call("resolve_root", name="alpha")
        assert '"inside": false' in client.call("resolve_root", name="beta")
        path = str(person.parent / "beta" / "README")
        assert '"inside": false' in client.call("resolve_root", path=path)
        for name in ("gamma", "nothing"):
            path = str(person.parent / name)
            said = client.call("request_root", path=path, reason="to look", wait_seconds=0)
            assert '"approved": false' in said, said


def test_the_report_of_a_session_has_its_own_requests_alone(person: Resident) -> None:
    folder = str(person.clone("delta"))
    inside = ("--only", "alpha")
    with (
        _client(person, "itself", inside) as asking,
        _client(person, "itself", inside) as silent,
        _client(person, "itself", None) as outside,
    ):
        asking.call("request_root", path=folder, reason="from inside", wait_seconds=0)
        until(lambda: "from inside" in person.rootsd("log"))
        outside.call("request_root", path=folder, reason="from outside", wait_seconds=0)
        until(lambda: "from outside" in person.rootsd("log"))
    until(lambda: {asking.pid, silent.pid} <= _requests_in_reports(person).keys())
    requests = _requests_in_reports(person)
    assert requests[asking.pid] == [f'{folder}: "from inside"']
    assert requests[silent.pid] == []


def _requests_in_reports(person: Resident) -> dict[int, list[str]]:
    """Return the requests in each report, by the process of its session."""
    ids = [item["id"] for item in person.items("sessions", "--report")]
    reports = [item for id_ in ids for item in person.items("sessions", "--report", id_)]
    return {
        report["pid"]: [each["what"] for each in report["log"] if each["verb"] == "requested"]
        for report in reports
    }


def test_a_program_outside_learns_of_all_roots(person: Resident) -> None:
    with _client(person, "itself", None) as client:
        assert client.names() == [*NAMES]


def test_control_a_wall_that_cannot_be_recognized_is_found(person: Resident) -> None:
    with _client(person, "itself", ("--only", "alpha"), leak=_NO_NAME) as client:
        assert client.names() == [*NAMES]


def test_changes_of_the_wall_reach_the_program(person: Resident) -> None:
    with _client(person, "itself", ("--only", "alpha", "--only", "beta")) as client:
        assert client.names() == ["alpha", "beta"]
        assert "Since your last call" not in client.call("list_roots")
        person.rootsd("deny", "beta")
        assert client.names() == ["alpha"]
        said = client.call("list_roots")
        assert "removed beta. If a removed folder is approved again, its shells need: cd" in said
        assert "removed" not in client.call("list_roots"), "it is said once"
        with _client(person, "itself", ("--only", "alpha", "--only", "gamma")) as silent:
            person.rootsd("deny", "gamma")
            assert "removed gamma. If" in silent.call("resolve_root", name="alpha"), "the first"
            person.rootsd("approve", "gamma")
            assert "added gamma." in silent.call("list_roots")
        person.rootsd("approve", "beta")
        assert client.names() == ["alpha", "beta"]


def test_after_a_restart_of_the_daemon_the_wall_is_the_same(person: Resident) -> None:
    """The program's connection comes before that of its warden."""
    with _client(person, "each line anew", ("--only", "alpha")) as client:
        assert client.names() == ["alpha"]
        person.run("down")
        client.begin("roots/list")
        person.rootsd("up")
        assert [root["name"] for root in client.result()["roots"]] == ["alpha"]
