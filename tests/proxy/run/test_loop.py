"""Real `rootsd run` processes with real servers: what passes, and when everything ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import psutil
import pytest

from rootsd.core.errors import ErrorCode
from support.bridges import HANG_GUARD_S, INITIALIZE, environment, notice, request
from support.mcp_harness import FakeSource, root
from support.polling import until
from support.run_proxy import SCRIPTED, command, impatient_command, is_gone, run_proxy, started
from support.sizes import Sizes
from support.threaded_publisher import published
from support.unread_errors import NEEDS_A_READER, ROOTSD, UnreadErrors, started_unread

API = root("/src/api")


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """A folder with the folders `api` and `web`."""
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_server_has_the_approved_roots_at_the_first_call_and_every_change_at_the_next(
    src: Path,
) -> None:
    api, web = root(f"{src}/api"), root(f"{src}/web")
    with published(FakeSource(api, web)) as roots, run_proxy() as client:
        client.shake_hands()
        assert client.call(1, "allowed", f"{src}/web/x") is True
        assert client.call(2, "allowed", f"{src}/docs") is False
        for number, approved in enumerate([(api,), (api, web)], start=3):
            roots.set(*approved)
            assert client.hear()["params"]["data"] == len(approved)
            assert client.call(number, "allowed", f"{src}/web/x") is (web in approved)
        assert client.leave() == 0


def test_a_server_that_reads_no_roots_has_them_in_its_command_and_is_started_again(
    src: Path,
) -> None:
    """A root that a joined value cannot hold is left out there, and reported once."""
    bad = src / "x:"
    (bad / "etc").mkdir(parents=True)
    api, web, sly = root(f"{src}/api"), root(f"{src}/web"), root(f"{bad}/etc", name="sly")
    flags = ("--env", "ROOTS={roots}")
    with (
        published(FakeSource(api, web)) as roots,
        run_proxy("--deaf", "-d={roots}", flags=flags) as client,
    ):
        client.shake_hands()
        first = client.call(1, "started")
        assert first["words"][1:] == [f"-d={src}/api", f"-d={src}/web"]
        assert first["roots"] == f"{src}/api:{src}/web"
        for approved in ((api, sly), (sly,), (api, sly)):
            roots.set(*approved)
            expected = "/api" if api in approved else "no-approved-roots"
            until(lambda: client.call(1, "started")["roots"].endswith(expected))  # noqa: B023
        assert client.call(2, "started")["words"][1:] == [f"-d={src}/api", f"-d={bad}/etc"]
        assert not psutil.pid_exists(first["pid"])
        assert client.leave() == 0
        assert client.complaints().count(b"is left out") == 1


def test_a_server_that_exits_without_roots_is_started_when_there_are_some(src: Path) -> None:
    api, web = root(f"{src}/api"), root(f"{src}/web")
    with published(FakeSource(api)) as roots, run_proxy("--deaf", "--picky", "{root}") as client:
        client.shake_hands()
        assert client.call(1, "echo", 7) == 7
        roots.set()
        numbers = count(2)

        def is_refused() -> bool:
            client.start_call(next(numbers), "echo")
            error = client.answer().get("error", {"message": ""})
            return "no folder is approved" in error["message"]

        until(is_refused)
        roots.set(web)
        assert client.hear()["method"] == "notifications/tools/list_changed"
        assert client.call(next(numbers), "started")["words"][-1] == f"{src}/web"
        assert client.leave() == 0


def test_without_a_daemon_nothing_is_approved_and_an_error_is_printed() -> None:
    with run_proxy() as client:
        client.shake_hands()
        assert client.call(1, "allowed", "/src/api") is False
        assert client.call(2, "echo", {"a": 1}) == {"a": 1}
        assert client.leave() == 0
        assert b"rootsd up" in client.complaints()


def test_it_exits_with_the_servers_status_and_answers_open_requests() -> None:
    with run_proxy() as client:
        client.shake_hands()
        client.call(1, "echo")
        client.start_call(2, "hang")
        client.start_call(3, "exit", 255)
        answers = {(each := client.answer())["id"]: each["error"]["code"] for _ in range(2)}
        assert answers == {2: -32603, 3: -32603}
        assert client.process.wait(HANG_GUARD_S) == 255


def test_a_killed_server_gives_the_exit_status_of_shells() -> None:
    with run_proxy() as client:
        client.shake_hands()
        server = client.server()
        client.start_call(1, "hang")
        server.kill()
        assert client.answer()["error"]["data"]["reason"] == ErrorCode.FAILED
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGKILL


# A server that says which signals it gets, and ignores them and the end of its input. It writes
# without a buffer, because a signal may come while it says the first line.
HEARS_SIGNALS = """
import os, signal
def say(what):
    os.write(1, b'{"jsonrpc":"2.0","method":"x","params":{"n":%d}}\\n' % what)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda number, _: say(number))
say(os.getpid())
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_go_to_the_server_and_end_a_proxy_whose_server_goes_on(
    number: signal.Signals,
) -> None:
    with started(impatient_command(sys.executable, "-c", HEARS_SIGNALS)) as client:
        server = client.hear()["params"]["n"]
        for each in (signal.SIGUSR1, number):  # the first one ends nothing
            client.process.send_signal(each)
            assert client.hear()["params"]["n"] == each
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGKILL  # its input stays open
        assert is_gone(server)


IN_A_DELETED_FOLDER = 'cd "$0" && rmdir "$0" && exec "$@"'


def test_in_a_deleted_folder_the_client_gets_the_reason(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    rootsd = str(Path(sys.executable).with_name("rootsd"))
    line = ["sh", "-c", IN_A_DELETED_FOLDER, f"{tmp_path}/gone", rootsd, "run", "--", "cat"]
    with started(line) as client:
        client.say(notice("x"), b"[" + request("b", "ping").strip() + b"]\n")
        (answer,) = json.loads(client.stdout.readline())
        assert answer["id"] == "b"
        assert "the working directory is gone" in answer["error"]["message"]
        assert client.process.wait(HANG_GUARD_S) == 2
        assert b"try: cd" in client.complaints()


def test_a_proxy_that_cannot_start_does_not_wait_for_ever() -> None:
    with started(command("cat", flags=("--nonsense",))) as client:
        assert client.process.wait(HANG_GUARD_S) == 2  # the client is there, but silent


@pytest.mark.needs("linux")
def test_a_killed_proxy_leaves_no_server_behind() -> None:
    with run_proxy("--stubborn") as client:
        client.shake_hands()
        server = client.server()
        client.process.kill()
        assert is_gone(server)


# A run proxy that is killed once its server runs, and before it can filter anything.
KILLED_EARLY = (
    "from rootsd.proxy.run import assembly, main; import os, sys;"
    " assembly.run_proxy = lambda *_: ("
    "print(open(sys.argv[1]).read(), flush=True), os.kill(os.getpid(), 9));"
    " main.main(sys.argv[2:])"
)


@pytest.mark.needs("linux")
def test_a_proxy_that_is_killed_while_it_loads_leaves_no_server_behind(tmp_path: Path) -> None:
    running = tmp_path / "running"
    os.mkfifo(running)
    server = ("sh", "-c", f"echo $$ >{running}; exec sleep 1000")
    line = [sys.executable, "-c", KILLED_EARLY, str(running), "--", *server]
    with started(line) as client:
        number = int(client.stdout.readline())
        assert client.process.wait(HANG_GUARD_S) == -signal.SIGKILL
        assert is_gone(number)


def test_a_stubborn_server_ends_when_its_client_is_gone() -> None:
    with started(impatient_command(*SCRIPTED, "--stubborn")) as client:
        client.shake_hands()
        server, child = client.server(), psutil.Process(client.call(1, "spawn"))
        client.stdout.close()
        client.stdin.close()
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGKILL
        assert is_gone(server)
        assert is_gone(child)


@pytest.mark.parametrize("call", [("hang", None), ("babble", "roots/list")])
def test_end_of_input_ends_a_proxy_whose_server_hangs_or_floods(call: tuple[str, object]) -> None:
    with published(FakeSource(API)), started(impatient_command(*SCRIPTED)) as client:
        client.shake_hands()
        server = client.server()
        client.start_call(1, *call)
        client.stdin.close()
        while client.stdout.readline():
            continue
        client.process.wait(HANG_GUARD_S)
        assert is_gone(server)


def test_a_closed_client_ends_a_proxy_whose_server_floods() -> None:
    with published(FakeSource(API)), started(impatient_command(*SCRIPTED)) as client:
        client.shake_hands()
        server = client.server()
        client.start_call(1, "babble", "ping")
        client.hear()
        client.stdout.close()
        client.process.wait(HANG_GUARD_S)
        assert is_gone(server)


def test_a_server_that_requests_roots_without_reading_is_ended(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"{number}").mkdir()
    many = [root(f"{tmp_path}/{number}") for number in range(500)]
    with published(FakeSource(*many)), started(impatient_command(*SCRIPTED)) as client:
        client.shake_hands()
        client.call(0, "echo")
        proxy = psutil.Process(client.process.pid)
        client.start_call(1, "babble", "roots/list")
        most = proxy.memory_info().rss
        while not select.select([client.stdout], [], [], 0.05)[0]:
            most = max(most, proxy.memory_info().rss)
        error = client.answer()
        assert (error["id"], error["error"]["code"]) == (1, -32603)
        assert "reads no answer" in error["error"]["message"]
        assert client.process.wait(HANG_GUARD_S) == 128 + signal.SIGTERM
        assert most < 80e6
        assert b"reads no answer" in client.complaints()


def test_open_requests_are_answered_after_end_of_input() -> None:
    with started(impatient_command(*SCRIPTED)) as client:
        client.shake_hands()
        client.start_call(1, "flood", 300)
        client.stdin.close()
        assert client.answer()["id"] == 1
        client.process.wait(HANG_GUARD_S)


def test_the_servers_stderr_is_not_touched() -> None:
    # Without the flag, `run` says that it found no configuration beside this fake daemon.
    with published(FakeSource(API)), run_proxy(flags=("--no-confine",)) as client:
        client.shake_hands()
        client.start_call(1, "exit", 0)
        assert client.process.wait(HANG_GUARD_S) == 0
        assert client.complaints() == b"bye\n"


def test_a_session_goes_on_if_nobody_reads_its_messages() -> None:
    """Each kind of standard error that takes no message: test_stdio.py."""
    line = (*ROOTSD, "run", "--", *SCRIPTED)
    with published(FakeSource(API)), started_unread(UnreadErrors.NO_READER, line) as client:
        client.shake_hands()
        for number in range(5):
            client.say(b"not JSON\n")
            assert client.call(number, "echo", "x") == "x"
        assert client.leave() == 0


def test_this_test_detects_a_session_whose_messages_must_be_read() -> None:
    line = (*NEEDS_A_READER, "run", "--", *SCRIPTED)
    with published(FakeSource(API)), started_unread(UnreadErrors.NO_READER, line) as client:
        client.say(b"not JSON\n")
        assert client.process.wait(HANG_GUARD_S) != 0


@pytest.mark.parametrize(
    ("printed", "label"),
    [
        ("starting\\n\\nset API_TOKEN first\\n", "starting set API_TOKEN first"),
        ("\\033[31mno token\\033[0m\\n", "\\u{1b}[31mno token\\u{1b}[0m"),
        ('{"error": "no token"}\\n', '{"error": "no token"}'),
    ],
)
def test_text_of_a_server_that_ends_is_its_reason(printed: str, label: str) -> None:
    server = ("sh", "-c", f"printf '{printed}'; exit 3")
    with started(command(*server)) as client:
        error = client.ask(1, "initialize", INITIALIZE)["error"]["message"]
        assert error.startswith(f"the server has ended with status 3 after it printed: {label};")
        assert client.process.wait(HANG_GUARD_S) == 3
        said = client.complaints().decode()
        assert "set API_TOKEN first" in said or label in said
        assert "\x1b" not in said


def test_much_text_of_a_server_is_cut() -> None:
    server = ("sh", "-c", "yes 'set API_TOKEN first' | head -n 10000; exit 3")
    with started(command(*server)) as client:
        error = client.ask(1, "initialize", INITIALIZE)["error"]["message"]
        assert 200 < len(error) < 400
        client.process.wait(HANG_GUARD_S)
        assert len(client.complaints()) < 2_000


def test_a_server_never_gets_a_socket_of_its_proxy_as_standard_error() -> None:
    look = "import os; print(os.path.realpath('/proc/self/fd/2'))"
    line = (*ROOTSD, "run", "--", sys.executable, "-c", look)
    with started_unread(UnreadErrors.CLOSED, line) as client:
        error = client.ask(1, "initialize")["error"]["message"]
        assert "/dev/null" in error


def test_a_failed_start_gives_the_exit_status_of_shells(tmp_path: Path) -> None:
    """Other reasons why a program does not start are in test_process.py."""
    said = tmp_path / "said"
    said.write_bytes(request(1, "initialize", {}) + request(2, "tools/list"))
    with said.open("rb") as client:
        done = subprocess.run(
            command("\x1b[31m"),
            stdin=client,
            capture_output=True,
            env=environment(),
            timeout=HANG_GUARD_S,
            check=False,
        )
    assert done.returncode == 127
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["id"], "error" in each) for each in answers] == [(1, True), (2, True)]
    assert b"cannot be started" in done.stderr
    assert b"\x1b" not in done.stderr


def test_a_server_that_waits_for_its_roots_and_is_not_found_ends_the_proxy(src: Path) -> None:
    api = root(f"{src}/api")
    with published(FakeSource(api)), started(command("/no/server"), cwd=f"{src}/api") as client:
        assert client.process.wait(HANG_GUARD_S) == 127  # its input is still open
        assert b"cannot be started" in client.complaints()


def test_a_client_that_takes_no_refusal_is_not_read() -> None:
    """Otherwise the refusals would fill the memory. None is lost."""
    line = request("x" * 50_000, "tools/call", {"inputResponses": 0})
    with run_proxy() as client:
        unsent = client.say_what_fits(line * 200)
        assert len(unsent) > 2 << 20
        rest = threading.Thread(target=client.say, args=(unsent,))
        rest.start()
        assert {client.hear()["error"]["code"] for _ in range(200)} == {-32602}
        rest.join()
        assert client.leave() == 0


def test_only_the_clients_valid_lines_reach_the_server() -> None:
    """No probe of our own: in front of `cat`, each line comes back as it went."""
    noise = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xef\xbb\xbf{}\n" * 3_000
    lines = notice("notifications/initialized") + notice("notifications/x")
    with published(FakeSource(API)):
        done = subprocess.run(
            command("cat"), input=noise + lines, capture_output=True, env=environment(),
            timeout=HANG_GUARD_S, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, lines)
    assert 1 <= done.stderr.count(b"a line of the client was dropped") < 10


def test_a_last_line_may_lack_its_newline_and_a_file_for_standard_output_does(
    tmp_path: Path,
) -> None:
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            command(*SCRIPTED), input=request(1, "ping").strip(), stdout=out, env=environment(),
            timeout=HANG_GUARD_S, check=True,
        )  # fmt: skip
    assert json.loads((tmp_path / "out").read_bytes())["id"] == 1


def test_long_lines_pass_both_ways(sizes: Sizes) -> None:
    size = sizes.pick(test=2 << 20, check=60 << 20, soak=60 << 20)
    with published(FakeSource(API)), run_proxy() as client:
        client.shake_hands()
        assert len(client.call(1, "echo", "x" * size)) == size
        assert len(client.call(2, "big", size)) == size


def test_full_pipes_in_both_directions_do_not_deadlock(sizes: Sizes) -> None:
    """The client writes and reads as fast as it can, and the server floods it."""
    calls = sizes.pick(test=30, check=600, soak=1_800)
    with published(FakeSource(API)), run_proxy() as client:
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
    with published(FakeSource(API)), run_proxy() as client:
        client.shake_hands()
        client.say(
            *(request(n, "tools/call", {"name": "echo", "arguments": n}) for n in range(1000))
        )
        assert [client.answer()["result"] for _ in range(1000)] == list(range(1000))
