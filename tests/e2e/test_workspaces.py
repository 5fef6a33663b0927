"""A session gets its workspace and the roots approved while it runs, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from rootsd.cli.answers.control_client import call
from rootsd.wire.daemon import SessionsQuery
from rootsd.wire.decisions import DecideRequest, DecisionVerb, SetFocusRequest, TagRequest
from rootsd.wire.projects import ProjectsQuery
from support.bridges import environment
from support.confirmed_orders import call_confirmed
from support.person import HANG_GUARD, Person, Resident
from support.polling import until
from support.preloaded import Piped
from support.run_proxy import SCRIPTED, RunProxyClient, command, started

BRIDGE = [sys.executable, "-m", "rootsd", "bridge"]
# A program that uses MCP. The programs that it starts belong to its session.
AGENT = [
    sys.executable,
    "-c",
    "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))",
]


NAMES = ("api", "old", "web")


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person with one daemon for all tests of this file."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    for name in NAMES:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    """Return a person who has approved api and old, and has done nothing else."""
    monkeypatch.setenv("ROOTSD_DIR", resident.environment()["ROOTSD_DIR"])  # `call` looks there
    until(lambda: not call(SessionsQuery())["items"])
    others = [each for each in resident.parent.iterdir() if each.name not in NAMES]
    for folder in others:
        call_confirmed(DecideRequest(DecisionVerb.FORGET, "/", (str(folder),)))
        shutil.rmtree(folder)
    until(lambda: len(call(ProjectsQuery("/"))["items"]) == len(NAMES))
    call_confirmed(DecideRequest(DecisionVerb.FORGET, "/", NAMES))
    call_confirmed(DecideRequest(DecisionVerb.APPROVE, "/", ("api", "old")))
    call_confirmed(TagRequest(NAMES, "/", off=("work", "home", "later")))
    call(SetFocusRequest())
    return resident


@contextmanager
def run_proxy(person: Person, cwd: Path, *flags: str) -> Iterator[RunProxyClient]:
    """Run a proxy in a folder, as a fork."""
    words = command(*SCRIPTED, flags=flags)[3:]  # without `python -m rootsd`
    with Piped(words, environment(HOME=str(person.home)), cwd) as process:
        try:
            yield RunProxyClient(cast("Any", process))
        finally:
            process.kill()


def allowed(person: Person, client: RunProxyClient) -> list[str]:
    """Return the projects that the server may work in."""
    names = sorted(path.name for path in person.parent.iterdir() if path.is_dir())
    return [name for name in names if client.call(name, "allowed", f"{person.parent}/{name}/x")]


def restart(person: Person) -> None:
    person.rootsd("down")
    person.rootsd("up")


def test_a_session_gets_its_root_and_those_approved_while_it_runs(person: Person) -> None:
    with run_proxy(person, person.parent / "api") as client:
        client.shake_hands()
        assert allowed(person, client) == ["api"]
        person.rootsd("approve", "web")
        assert allowed(person, client) == ["api", "web"]
        restart(person)
        until(lambda: allowed(person, client) == ["api", "web"])
        person.clone("fresh")
        person.wait_until_listed("fresh", "pending")
        person.rootsd("approve", "fresh")
        assert allowed(person, client) == ["api", "fresh", "web"]
        (session,) = person.items("sessions")
        assert session["scope"] == [f"workspace:{person.parent}/api"]
        assert client.leave() == 0


def test_a_renewed_approval_adds_the_root_to_running_sessions(person: Person) -> None:
    person.rootsd("approve", "web", "--tag", "later")
    with run_proxy(person, person.parent / "api") as client:
        client.shake_hands()
        assert allowed(person, client) == ["api"]
        person.rootsd("approve", "--dry-run", "web")
        assert allowed(person, client) == ["api"]
        done = person.run("approve", "web")
        assert "web: approved again" in done.stderr
        assert allowed(person, client) == ["api", "web"]
        assert item(person, "web")["tags"] == ["later"]
        restart(person)
        until(lambda: allowed(person, client) == ["api", "web"])


def _is(names: list[str], look: Callable[[], list[str]]) -> bool:
    return look() == names


@pytest.fixture
def tagged(person: Person) -> Person:
    """Has api with the tag work, and old with the tag home."""
    person.rootsd("tag", "api", "work")
    person.rootsd("tag", "old", "home")
    return person


def test_a_server_for_the_focus_follows_it_and_prompts_show_it(tagged: Person) -> None:
    prompt = Path(os.environ["ROOTSD_DIR"], "run", "prompt")
    with run_proxy(tagged, tagged.parent / "web", "--only", "focus") as client:
        client.shake_hands()
        before = list[str]()
        assert allowed(tagged, client) == before
        for choice, names in (("work", ["api"]), ("home", ["old"]), ("--clear", [])):
            tagged.rootsd("focus", choice)
            until(lambda: prompt.read_text().endswith(f" {choice}\n" if names else " 1\n"))  # noqa: B023
            assert not set(before) & set(allowed(tagged, client)), "a root stayed"
            until(partial(_is, names, partial(allowed, tagged, client)))
            before = names
        tagged.rootsd("focus", "work")
        tagged.rootsd("tag", "old", "work")
        until(lambda: allowed(tagged, client) == ["api", "old"])
        restart(tagged)
        until(lambda: allowed(tagged, client) == ["api", "old"])
        (session,) = tagged.items("sessions")
        assert session["scope"] == ["tag:work", "focus"]


def test_the_focus_leaves_a_workspace_alone_and_narrows_sessions_without_a_scope(
    tagged: Person,
) -> None:
    tagged.rootsd("focus", "work")
    with run_proxy(tagged, tagged.parent / "old") as client:
        client.shake_hands()
        assert allowed(tagged, client) == ["old"]
    with run_proxy(tagged, tagged.parent / "old", "--all") as client:
        client.shake_hands()
        assert allowed(tagged, client) == ["api"]
        tagged.rootsd("focus", "--clear")
        assert allowed(tagged, client) == ["api"]
        tagged.rootsd("focus", "--clear", "--now")
        assert allowed(tagged, client) == ["api", "old"]


@pytest.mark.needs("wall")
def test_a_confined_program_for_the_focus_follows_it(tagged: Person) -> None:
    words = ("confine", "--only", "focus", "--", "sh")
    with subprocess.Popen(
        [sys.executable, "-m", "rootsd", *words], env=tagged.environment(), cwd=tagged.home,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as program:  # fmt: skip
        asked, answer = program.stdin, program.stdout
        assert asked is not None
        assert answer is not None

        def visible() -> list[str]:
            asked.write(f"echo $(cd '{tagged.parent}' && for n in *; do cat $n/README >/dev/null"
                        " && echo $n; done) 2>/dev/null\n")  # fmt: skip
            return answer.readline().split()

        assert visible() == []
        for choice, names in (("work", ["api"]), ("home", ["old"]), ("--clear", [])):
            tagged.rootsd("focus", choice)
            until(partial(_is, names, visible))
        asked.close()
        assert program.wait(HANG_GUARD) == 0


def test_a_removal_opens_no_other_folder(person: Person) -> None:
    api = person.parent / "api"
    with run_proxy(person, api) as client:
        client.shake_hands()
        person.rootsd("deny", "api")
        assert allowed(person, client) == []
        person.rootsd("forget", "api")
        assert allowed(person, client) == []
        restart(person)
        assert allowed(person, client) == []
        person.rootsd("approve", "api")
        until(lambda: allowed(person, client) == ["api"])
        shutil.rmtree(api)
        until(lambda: allowed(person, client) == [])
        person.clone("api")
        person.wait_until_listed("api", "pending")
        assert allowed(person, client) == []
        person.rootsd("approve", "api")
        until(lambda: allowed(person, client) == ["api"])


def test_a_session_in_a_pending_project_is_empty_and_stays_separate(person: Person) -> None:
    with run_proxy(person, person.parent / "web") as client:
        client.shake_hands()
        assert allowed(person, client) == []
        restart(person)
        assert allowed(person, client) == []
        person.rootsd("approve", "web")
        until(lambda: allowed(person, client) == ["web"])


def test_a_clients_folder_replaced_by_a_link_is_never_sent_again(person: Person) -> None:
    sub, web = person.parent / "api" / "sub", person.parent / "web"
    sub.mkdir()
    with run_proxy(person, person.parent / "api", "--client-roots", "narrow") as client:
        client.opened = [sub]
        client.shake_hands_with_roots()
        assert client.call(1, "allowed", f"{sub}/x")
        sub.rename(sub.with_name("sub2"))
        sub.symlink_to("/etc")
        client.start_call(2, "allowed", f"{sub}/x")
        assert "works in /etc, which is not approved" in client.answer()["error"]["message"]
        person.rootsd("approve", "web")
        client.opened = [web, sub]
        client.start_call(3, "allowed", f"{web}/x")
        assert "has added /etc, which is not approved" in client.answer()["error"]["message"]
        assert client.call(4, "allowed", f"{web}/x")
        assert not client.call(5, "allowed", f"{sub}/x")


# Approvals for one session


def bridge(person: Person, within: list[str]) -> AbstractContextManager[RunProxyClient]:
    return started([*within, *BRIDGE], cwd=person.home, HOME=str(person.home))


def roots(client: RunProxyClient) -> dict[str, str]:
    """The access of each root that the session sees."""
    return {each["name"]: each["_meta"]["rootsd/access"] for each in client.roots()}


def ask_for(person: Person, client: RunProxyClient, name: str) -> None:
    folder = str(person.parent / name)
    client.call(name, "request_root", {"path": folder, "reason": "x", "wait_seconds": 0})
    until(lambda: any("request" in each for each in person.items("pending")))


def item(person: Person, name: str) -> Mapping[str, Any]:
    return next(each for each in person.items("ls") if each["name"] == name)


def test_a_bridge_lists_all_roots_and_marks_those_of_its_workspace(person: Person) -> None:
    def marked(cwd: Path) -> list[str]:
        with started(BRIDGE, cwd=cwd, HOME=str(person.home)) as client:
            client.shake_hands()
            roots = client.roots()
        assert {each["name"] for each in roots} == {"api", "old"}
        return [each["name"] for each in roots if "rootsd/inWorkspace" in each["_meta"]]

    assert marked(person.parent / "old") == ["old"]
    assert marked(person.home) == []


def test_an_approval_that_answers_a_session_is_only_for_it_and_ends_with_it(
    person: Person,
) -> None:
    with (
        bridge(person, AGENT) as asking,
        bridge(person, AGENT) as other,
    ):
        for client in (asking, other):
            client.shake_hands()
        ask_for(person, asking, "web")
        done = person.run("approve", "web")
        assert "for the session of" in done.stderr
        assert "rootsd approve web --always --write" in done.stderr
        assert roots(asking) == {"api": "read-write", "old": "read-write", "web": "read"}
        assert roots(other) == {"api": "read-write", "old": "read-write"}
        assert "python" in item(person, "web")["session"]
        assert person.run("check", str(person.parent / "web")).returncode != 0
        restart(person)
        until(lambda: "web" in roots(asking))
        assert "web" not in roots(other)
        agent = psutil.Process(asking.process.pid)
        for process in (*agent.children(recursive=True), agent):
            with suppress(psutil.NoSuchProcess):  # it ended with a session that was killed before
                process.kill()
        asking.process.wait()
        until(lambda: "web" in person.names("pending"))
        assert item(person, "web")["verdict"] == "pending"
        assert "web" not in roots(other)


def test_an_approval_ends_with_a_session_that_ends_while_no_daemon_runs(
    person: Person,
) -> None:
    with bridge(person, AGENT) as asking:
        asking.shake_hands()
        ask_for(person, asking, "web")
        person.rootsd("approve", "web", "--session", "--write")
        assert roots(asking)["web"] == "read-write"
        person.rootsd("down")
        asking.process.kill()
        asking.process.wait()
    person.rootsd("up")
    until(lambda: item(person, "web")["verdict"] == "pending")


def test_a_person_can_set_duration_and_access(person: Person) -> None:
    with bridge(person, AGENT) as asking, bridge(person, AGENT) as other:
        for client in (asking, other):
            client.shake_hands()
        for name, flags, access, everywhere in (
            ("web", (), "read", False),
            ("b", ("--write",), "read-write", False),
            ("c", ("--always",), "read", True),
            ("d", ("--always", "--write"), "read-write", True),
        ):
            if name != "web":
                person.clone(name)
                person.wait_until_listed(name, "pending")
            ask_for(person, asking, name)
            person.rootsd("approve", name, *flags)
            assert roots(asking)[name] == access
            assert (name in roots(other)) is everywhere
        person.rootsd("approve", "web", "--always", "--write")
        assert roots(other)["web"] == "read-write"


# Starts a run proxy on the pipes of the first two arguments, and a bridge on its own pipes.
BOTH = (
    "import subprocess, sys; into, out, count, *words = sys.argv[1:];"
    " subprocess.Popen(words[int(count):], stdin=int(into), stdout=int(out));"
    " sys.exit(subprocess.call(words[:int(count)]))"
)


@contextmanager
def agent(person: Person) -> Iterator[tuple[RunProxyClient, RunProxyClient]]:
    """Run one program with a bridge, and with a run proxy that works in `api`."""
    (theirs_in, into), (out, theirs_out) = os.pipe(), os.pipe()
    relay_words = ["env", "-C", str(person.parent / "api"), *command(*SCRIPTED)]
    line = [sys.executable, "-c", BOTH, str(theirs_in), str(theirs_out), str(len(BRIDGE))]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*line, *BRIDGE, *relay_words],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        pass_fds=(theirs_in, theirs_out),
        env=environment(HOME=str(person.home)),
    )
    os.close(theirs_in)
    os.close(theirs_out)
    pipes = SimpleNamespace(stdin=os.fdopen(into, "wb"), stdout=os.fdopen(out, "rb"))
    with process, pipes.stdin, pipes.stdout:
        try:
            yield RunProxyClient(process), RunProxyClient(cast("Any", pipes))
        finally:
            process.kill()


def test_the_run_proxies_of_a_session_get_the_roots_approved_for_it(person: Person) -> None:
    with agent(person) as (asking, mine), agent(person) as (_, others):
        for client in (asking, mine, others):
            client.shake_hands()
        ask_for(person, asking, "web")
        person.rootsd("approve", "web", "--write")
        assert allowed(person, mine) == ["api", "web"]
        assert allowed(person, others) == ["api"]


def test_a_root_request_ends_with_its_session_and_leaves_a_trace(person: Person) -> None:
    with agent(person) as (asking, _):
        asking.shake_hands()
        ask_for(person, asking, "web")
        assert 'asks for it: "x"' in item(person, "web")["note"]
    until(lambda: 'has ended: "x"' in item(person, "web")["note"])
    asked = [each for each in person.items("log") if each["verb"] == "requested"]
    assert any(each["what"].endswith('/web: "x"') for each in asked)
    assert person.names("pending") == ["web"]
    assert not any("request" in each for each in person.items("pending"))


def test_without_a_root_request_an_approval_is_for_all_sessions_and_writable(
    person: Person,
) -> None:
    done = person.run("approve", "web", "--session")
    assert done.returncode == 1
    assert "no running session asks for" in done.stderr
    person.rootsd("approve", "web")
    assert item(person, "web")["access"] == "read-write"
    assert "session" not in item(person, "web")
