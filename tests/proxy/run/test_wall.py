"""`rootsd run --confine`: at each call, the kernel and the server agree about the roots."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import psutil
import pytest

from rootsd.cli.answers.control_client import call
from rootsd.wire.daemon import SessionsQuery, SessionView
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import ProjectsQuery
from support.bridges import notice
from support.confirmed_orders import call_confirmed
from support.person import Person, Resident
from support.polling import until
from support.run_proxy import RunProxyClient, is_gone, started
from support.wall_kills import programs_behind_wall

SERVER = """
import json, os, subprocess, sys
asked, roots = 0, []
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s"}}
        send({"id": message["id"], "result": result})
    elif method in ("notifications/initialized", "notifications/roots/list_changed"):
        asked += 1
        send({"id": f"roots-{asked}", "method": "roots/list"})
    elif method == "tools/call" and message["params"]["name"] == "watch":
        send({"id": message["id"], "result": {}})  # and read no more
        while os.path.exists(message["params"]["arguments"]):
            pass
        send({"method": "notifications/gone"})
    elif method == "tools/call" and message["params"]["name"] == "make a sandbox":
        status = subprocess.run(["unshare", "-Um", "true"], stderr=subprocess.DEVNULL).returncode
        send({"id": message["id"], "result": {"status": status}})
    elif method == "tools/call" and message["params"]["name"] == "append":
        try:
            open(message["params"]["arguments"], "a").close()
            send({"id": message["id"], "result": "appended"})
        except OSError:
            send({"id": message["id"], "result": "refused"})
    elif method == "tools/call":
        path = message["params"]["arguments"]
        try:
            said = os.listdir(path) if os.path.isdir(path) else open(path).read()
        except OSError:
            said = "refused"
        send({"id": message["id"], "result": {"said": said, "roots": roots}})
    elif "result" in message:
        roots = [root["uri"].rpartition("/")[2] for root in message["result"]["roots"]]
"""
ROUNDS = 2
_HANG_GUARD_S = 120
NAMES = ("alpha", "beta")


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person with one daemon for all tests of this file."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    for name in NAMES:
        (person.clone(name) / "NOTE").write_text(name)
    person.rootsd("up", str(person.parent))
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    """Return a person who has approved alpha, and has done nothing else."""
    monkeypatch.setenv("ROOTSD_DIR", resident.environment()["ROOTSD_DIR"])  # `call` looks there
    monkeypatch.setenv("HOME", str(resident.home))
    others = {each for each in resident.parent.iterdir() if each.name not in NAMES}
    others |= {*resident.parent.glob("*/inner")}
    for folder in others:
        shutil.rmtree(folder)
        call_confirmed(DecideRequest(DecisionVerb.FORGET, "/", (str(folder),)))
    if others:
        resident.rootsd("scan")  # a folder inside a repository is not watched
    until(lambda: len(call(ProjectsQuery("/"))["items"]) == len(NAMES))
    call_confirmed(DecideRequest(DecisionVerb.FORGET, "/", NAMES))
    call_confirmed(DecideRequest(DecisionVerb.APPROVE, "/", ("alpha",)))
    return resident


def line(*flags: str, scope: tuple[str, ...] = ("--all",)) -> list[str]:
    own = (*scope, "--name", "s", *flags)
    return [sys.executable, "-m", "rootsd", "run", *own, "--", "/usr/bin/python3", "-c", SERVER]


def read(client: RunProxyClient, id_: int, path: Path) -> tuple[object, list[str]]:
    """Return what the server reads in a file or folder, and the names of its roots."""
    result = client.call(id_, "read", str(path))
    return result["said"], result["roots"]


def wrong_answers(person: Person, client: RunProxyClient) -> int:
    """Return the number of wrong answers in calls after approvals and denials."""
    note, wrong = person.parent / "beta" / "NOTE", 0
    for turn in range(ROUNDS):
        person.run("approve", "beta")
        wrong += read(client, 2 * turn + 1, note) != ("beta", ["alpha", "beta"])
        person.run("deny", "beta")
        wrong += read(client, 2 * turn + 2, note) != ("refused", ["alpha"])
    return wrong


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_no_call_meets_the_wrong_roots(person: Person, flags: tuple[str, ...]) -> None:
    with started(line("--confine", *flags), HOME=str(person.home)) as client:
        client.shake_hands()
        assert read(client, 100, person.parent / "alpha" / "NOTE") == ("alpha", ["alpha"])
        assert wrong_answers(person, client) == 0


def test_the_server_is_a_session_and_a_folder_that_its_client_has_open_is_proposed(
    person: Person,
) -> None:
    """All over the one connection that its wall has, which protects what git obeys."""
    with started(line("--confine"), HOME=str(person.home)) as client:
        client.opened = [person.parent / "beta"]
        client.shake_hands_with_roots()
        assert read(client, 1, person.parent / "alpha" / "NOTE")[0] == "alpha"
        until(lambda: any(item["note"] for item in call(ProjectsQuery("/"))["items"]))
        (session,) = call(SessionsQuery())["items"]
        (wall,) = call(SessionsQuery())["confined"]
        assert (session["client"], session["pid"]) == ("s", client.process.pid)
        assert (wall["name"], wall["warden"]) == ("s", client.process.pid)
        assert session["given"][0]["roots"] == 1
        settings = person.parent / "alpha" / ".git" / "config"
        before = settings.read_bytes()
        for path in (person.parent / "alpha" / "NOTE", settings):
            assert client.call(path.name, "append", str(path)) == "appended"
        assert settings.read_bytes() == before  # it has a copy
    until(lambda: call(SessionsQuery(SessionView.HISTORY))["items"][-1]["end"] == "left")
    assert call(SessionsQuery())["items"] == []


_SHORT_GRACE = """
import sys
from rootsd.link import reconnect
reconnect.GRACE_S = 0.1
from rootsd.wall.session import view_feed
from rootsd.__main__ import main
sys.exit(main())
"""


def test_a_server_waits_for_the_daemon_and_keeps_its_roots(person: Resident) -> None:
    """A call that comes meanwhile is answered by the same server, with the roots of the new
    daemon."""
    person.rootsd("approve", "beta")
    note = person.parent / "beta" / "NOTE"
    words = line("--confine")
    words[1:3] = ["-c", _SHORT_GRACE]
    with started(words, HOME=str(person.home)) as client:
        client.shake_hands()
        assert read(client, 1, note) == ("beta", ["alpha", "beta"])
        person.run("down")
        until(lambda: programs_behind_wall(client.process.pid) == {psutil.STATUS_STOPPED})
        client.start_call(2, "read", str(note))
        person.rootsd("up")
        assert client.answer()["result"] == {"said": "beta", "roots": ["alpha", "beta"]}


def test_a_workspace_gets_roots_approved_while_the_session_runs(person: Person) -> None:
    person.rootsd("approve", "beta")
    person.clone("gamma")
    person.wait_until_listed("gamma", "pending")
    words, folder = line("--confine", scope=()), person.parent / "alpha"
    with started(words, HOME=str(person.home), cwd=folder) as client:
        client.shake_hands()
        beta, gamma = (person.parent / name / "README" for name in ("beta", "gamma"))
        assert read(client, 1, beta) == ("refused", ["alpha"])
        person.rootsd("approve", "gamma")
        assert read(client, 2, gamma) == ("hello\n", ["alpha", "gamma"])
        person.rootsd("deny", "gamma")
        assert read(client, 3, gamma) == ("refused", ["alpha"])


def test_without_the_wall_a_denied_folder_is_read_and_the_root_around_it_withheld(
    person: Person,
) -> None:
    with started(line(), HOME=str(person.home)) as client:
        client.shake_hands()
        assert wrong_answers(person, client) == ROUNDS
        assert read(client, 101, secret_in(person)) == ("secret", ["no-approved-roots"])


@pytest.mark.parametrize("flags", [("--confine",), ("--confine", "--static"), ("--no-confine",)])
def test_only_without_a_wall_a_server_has_the_terminal_of_the_user(
    person: Person, flags: tuple[str, ...]
) -> None:
    script = "import os, sys; print('is terminal:', os.isatty(2), file=sys.stderr)"
    words = ["-m", "rootsd", "run", "--all", *flags, "--", "/usr/bin/python3", "-c", script]
    proxy = pexpect.spawn(sys.executable, words, env={**os.environ}, encoding="utf-8", timeout=60)
    proxy.expect("is terminal: (True|False)")
    assert isinstance(proxy.match, re.Match)
    assert proxy.match[1] == str("--no-confine" in flags)
    proxy.expect(pexpect.EOF)
    proxy.close()


def test_a_server_that_reads_nothing_delays_no_revoke(person: Person) -> None:
    person.rootsd("approve", "beta")
    with started(line("--confine"), HOME=str(person.home)) as client:
        client.shake_hands()
        client.call(1, "watch", str(person.parent / "beta" / "NOTE"))
        for _ in range(64):  # more than the pipe and the run proxy take
            client.say(notice("notifications/x", "x" * (1 << 15)))
        person.rootsd("deny", "beta")
        assert client.hear()["method"] == "notifications/gone"


def test_a_revoke_ends_a_static_server_at_once_and_the_next_one_answers(person: Person) -> None:
    note = person.parent / "beta" / "NOTE"
    person.run("approve", "beta")
    with started(line("--confine", "--static"), HOME=str(person.home)) as client:
        client.shake_hands()
        client.call(1, "watch", str(note))  # from now on it reads nothing, and ends by no signal
        client.start_call(2, "read", str(note))
        person.run("deny", "beta")
        failed = client.answer()
        assert failed["id"] == 2
        # The proxy may learn of the denial before it reads the call. Then the next server answers.
        if "error" in failed:
            assert "was restarted" in failed["error"]["message"]
        else:
            assert failed["result"]["said"] == "refused"
        assert client.call(3, "read", str(note))["said"] == "refused"
        said = client.call(4, "read", str(person.parent / "alpha" / "NOTE"))
        assert (said["said"], said["roots"]) == ("alpha", ["alpha"])


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_the_end_of_the_run_proxy_ends_everything(person: Person, flags: tuple[str, ...]) -> None:
    with started(line("--confine", *flags), HOME=str(person.home)) as client:
        client.shake_hands()
        below = psutil.Process(client.process.pid).children(recursive=True)
        client.process.kill()
        assert below
        assert all(is_gone(each) for each in below)


def secret_in(person: Person) -> Path:
    """Deny a project in `alpha`, and return a file of it."""
    inner = person.parent / "alpha" / "inner"
    person.git("clone", "-q", str(person.origin), str(inner))
    (inner / "SECRET").write_text("secret")
    person.rootsd("deny", "--yes", str(inner))
    return inner / "SECRET"


def test_a_root_with_a_denied_project_is_a_root_and_the_project_is_masked(person: Person) -> None:
    secret = secret_in(person)
    with started(line("--confine"), HOME=str(person.home)) as client:
        client.shake_hands()
        assert read(client, 1, secret) == ("refused", ["alpha"])
        assert read(client, 2, secret.parent.parent / "NOTE") == ("alpha", ["alpha"])
        person.rootsd("forget", "--yes", str(secret.parent))
        assert read(client, 3, secret) == ("secret", ["alpha"])
        person.rootsd("deny", "--yes", str(secret.parent))
        assert read(client, 4, secret) == ("refused", ["alpha"])


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Return a person with a daemon of their own, who has approved alpha."""
    person = Person(tmp_path / "newcomer")
    person.clone("alpha")
    monkeypatch.setenv("ROOTSD_DIR", person.environment()["ROOTSD_DIR"])
    person.run("up", str(person.parent))
    person.run("approve", str(person.parent / "alpha"))
    yield person
    person.run("down")


def test_a_denied_folder_outside_the_roots_is_gone_from_what_a_server_sees_of_the_home_folder(
    newcomer: Person,
) -> None:
    tool = newcomer.home / "bin" / "tool"
    newcomer.git("clone", "-q", str(newcomer.origin), str(tool))
    (tool / "NOTE").write_text("tool")
    (tool.parent / "other").write_text("other")
    numbers = itertools.count(1)
    with started(line("--confine"), HOME=str(newcomer.home)) as client:
        client.shake_hands()

        def said(path: Path) -> object:
            return read(client, next(numbers), path)[0]

        assert said(tool / "NOTE") == "tool"
        for _ in range(2):
            newcomer.run("deny", str(tool))
            until(lambda: said(tool / "NOTE") == "refused")
            assert said(tool.parent / "other") == "other"
            newcomer.run("forget", str(tool))
            until(lambda: said(tool / "NOTE") == "tool")


def test_the_folder_that_stands_for_no_roots_is_there_and_empty(person: Person) -> None:
    person.rootsd("forget", "alpha")
    with started(line("--confine"), HOME=str(person.home)) as client:
        client.shake_hands()
        empty = person.home / "rootsd" / "run" / "no-approved-roots"
        assert read(client, 1, empty) == ([], ["no-approved-roots"])


def test_the_options_of_the_wall_are_those_of_confine(person: Person) -> None:
    """A root that they hide is not listed."""
    person.rootsd("approve", "beta")
    home, beta = person.home, person.parent / "beta"
    shown, kept, hidden = home / "shown", home / "kept", home / "src/alpha/NOTE"
    for path in (shown, kept):
        path.write_text(path.name)
    hide = ("--hide", str(hidden), "--hide", str(beta))
    flags = ("--no-network", "--read", str(shown), f"--keep={kept}", *hide)
    with started(line("--confine", *flags), HOME=str(person.home)) as client:
        client.shake_hands()
        assert read(client, 1, shown)[0] == "shown"
        assert read(client, 2, kept)[0] == "kept"
        assert read(client, 3, hidden)[0] == ""
        interfaces = str(read(client, 4, Path("/proc/net/dev"))[0])
        assert [each.split(":")[0].strip() for each in interfaces.splitlines()[2:]] == ["lo"]
        assert read(client, 5, beta / "NOTE") == ("refused", ["alpha"])
        assert "no network" in person.rootsd("status")
        until(lambda: f"not shown\ts\t{client.process.pid}" in person.rootsd("status"))


def test_a_server_may_make_its_own_sandbox_if_an_option_says_so(person: Person) -> None:
    for flags, works in (((), False), (("--nested", "--on-revoke", "kill"), True)):
        with started(line("--confine", *flags), HOME=str(person.home)) as client:
            client.shake_hands()
            assert (client.call(1, "make a sandbox")["status"] == 0) is works


def test_config_toml_confines_each_server_and_a_flag_turns_it_off(person: Person) -> None:
    (person.home / "outside").write_text("outside")
    config = person.home / "rootsd" / "config" / "config.toml"
    before = config.read_text()
    config.write_text(f"{before}\n[confine]\ndefault = true\n")
    try:
        for flags, said in (((), "refused"), (("--no-confine",), "outside")):
            with started(line(*flags), HOME=str(person.home)) as client:
                client.shake_hands()
                assert read(client, 1, person.home / "outside") == (said, ["alpha"])
    finally:
        config.write_text(before)


# The run proxy without the early notification of a revoke.
LATE = (
    "from rootsd.proxy.run import loop, main; import sys; "
    "loop.RunProxy._notify_server = lambda self: None; sys.exit(main.main(sys.argv[2:]))"
)
# The first words of an order and of a report that tell them apart.
ORDER, REPORT = "kind", "shown"
EVENT = re.compile(rf"write\(.*(list_changed)|sendto\(.*({ORDER})\\\"|recvfrom\(.*({REPORT})\\\"")


def events_of_a_grant_and_a_revoke(person: Person, log: Path, words: list[str]) -> list[str]:
    """Return what the run proxy sends and gets, in the order of its system calls."""
    calls = ("-e", "trace=write,sendto,recvfrom", "-s", "64", "-qq", "-o", str(log))
    with started(["strace", *calls, *words], HOME=str(person.home)) as client:
        client.shake_hands()
        read(client, 0, person.parent / "beta" / "NOTE")
        before = len(log.read_text().splitlines())
        for id_, verb in enumerate(("approve", "deny"), 1):
            person.rootsd(verb, "beta")
            read(client, id_, person.parent / "beta" / "NOTE")
        assert client.process.stdin is not None
        client.process.stdin.close()
        client.process.wait()
    found = (EVENT.search(each) for each in log.read_text().splitlines()[before:])
    return [each[each.lastindex or 0] for each in found if each is not None]


@pytest.mark.needs("strace")
def test_a_server_hears_of_a_revoke_before_the_kernel_and_of_a_grant_after_it(
    person: Person, tmp_path: Path
) -> None:
    notified, grant = "list_changed", [ORDER, REPORT, "list_changed"]
    early, late = line("--confine"), line("--confine")
    late[1:3] = ["-c", LATE]
    right = events_of_a_grant_and_a_revoke(person, tmp_path / "early", early)
    assert right == [*grant, notified, ORDER, REPORT]
    wrong = events_of_a_grant_and_a_revoke(person, tmp_path / "late", late)
    assert wrong == [*grant, ORDER, REPORT, notified]


# The run proxy on a disk that is full as long as a file is there.
FULL = (
    "from rootsd.proxy.run import main; from rootsd.wall.kernel import disk_room; import os, sys; "
    "disk_room.DiskRoom._left = lambda self: 0 if os.path.exists({!r}) else 1 << 40; "
    "disk_room._LONGEST_S = 0.1; sys.exit(main.main(sys.argv[2:]))"
)


def test_a_server_waits_while_the_disk_is_full(person: Person, tmp_path: Path) -> None:
    full, words = tmp_path / "full", line("--confine")
    words[1:3] = ["-c", FULL.format(str(full))]
    note = person.parent / "alpha" / "NOTE"
    with started(words, HOME=str(person.home)) as client:
        client.shake_hands()
        said = read(client, 1, note)
        full.touch()
        until(lambda: programs_behind_wall(client.process.pid) == {psutil.STATUS_STOPPED})
        client.start_call(2, "read", str(note))
        full.unlink()
        answer = client.answer()
        assert (answer["id"], answer["result"]["said"]) == (2, said[0])
        assert client.process.stderr is not None
        assert any(b"0 MiB left, so s waits" in each for each in client.process.stderr)


def test_a_link_that_a_server_left_in_a_git_directory_is_removed(person: Person) -> None:
    link = person.parent / "alpha" / ".git" / "FETCH_HEAD"
    link.unlink(missing_ok=True)
    server = f"import os, sys; os.symlink('/elsewhere', {str(link)!r}); sys.stdin.read()"
    own = ("--all", "--name", "s", "--confine")
    words = [sys.executable, "-m", "rootsd", "run", *own, "--", "/usr/bin/python3", "-c", server]
    done = subprocess.run(
        words, input="", capture_output=True, text=True, check=False, timeout=_HANG_GUARD_S,
        env=person.environment(),
    )  # fmt: skip
    assert f"left by s: {link} was a link to /elsewhere" in done.stderr
    assert not link.is_symlink()
