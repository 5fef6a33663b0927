"""`rootsd run` in a session that moves, with a real daemon and worktrees of git."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from support.person import Person, Resident
from support.polling import until
from support.run_proxy import SCRIPTED, RunProxyClient, command, started

pytestmark = pytest.mark.needs("linux")
DEAF = (*SCRIPTED, "--deaf")
READER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    said = {"capabilities": {}, "protocolVersion": "2025-06-18", "serverInfo": {"name": "s"}}
    if message.get("method") == "tools/call":
        try:
            said = open(message["params"]["arguments"]).read()
        except OSError:
            said = "refused"
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": said}), flush=True)
"""


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person who approved alpha and beta, and not gamma."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    for name in ("alpha", "beta", "gamma"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    until(lambda: len(person.names("pending")) == 3)
    person.rootsd("approve", "--yes", "alpha", "beta")
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    monkeypatch.setenv("ROOTSD_DIR", resident.environment()["ROOTSD_DIR"])
    return resident


@contextmanager
def in_alpha(
    person: Person, *server: str, flags: tuple[str, ...] = ()
) -> Iterator[RunProxyClient]:
    """Start a session in alpha, whose client has alpha open."""
    alpha = person.parent / "alpha"
    with started(command(*server, flags=flags), cwd=alpha, HOME=str(person.home)) as client:
        client.opened = [alpha]
        client.shake_hands_with_roots()
        yield client


@pytest.fixture
def worktree(person: Person) -> Iterator[Path]:
    """Return where an agent in alpha makes its worktree."""
    path = person.parent / "alpha" / ".claude" / "worktrees" / "fix"
    yield path
    person.git("-C", str(person.parent / "alpha"), "worktree", "remove", "--force", str(path))
    until(lambda: "fix" not in person.names("ls"))


def make(person: Person, worktree: Path) -> None:
    person.git("-C", str(person.parent / "alpha"), "worktree", "add", "-q", str(worktree))


def root_of(client: RunProxyClient, id_: int) -> str:
    """Return the folder in the command of the server."""
    *_, folder = client.call(id_, "started")["words"]
    return str(folder)


def test_a_command_follows_into_a_worktree_of_a_moment_ago(person: Person, worktree: Path) -> None:
    alpha = person.parent / "alpha"
    with in_alpha(person, *DEAF, "{root}") as client:
        assert root_of(client, 1) == str(alpha)
        make(person, worktree)
        client.opened = [worktree]
        assert root_of(client, 2) == str(worktree)
        client.opened = [alpha]
        assert root_of(client, 3) == str(alpha)


def test_a_server_that_reads_roots_has_those_of_the_new_place(
    person: Person, worktree: Path
) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    with in_alpha(person, *SCRIPTED) as client:
        assert client.call(1, "ask")["paths"] == [str(alpha)]
        make(person, worktree)
        client.opened = [worktree]
        assert client.call(2, "ask")["paths"] == [str(worktree)]
        client.opened = [worktree, beta]
        assert client.call(3, "ask")["paths"] == [str(worktree), str(beta)]
        client.opened = [beta]
        assert client.call(4, "ask")["paths"] == [str(beta)]


def test_a_server_that_uses_its_working_directory_starts_in_the_new_place(person: Person) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    with in_alpha(person, *DEAF) as client:
        assert client.call(1, "started")["folder"] == str(alpha)
        client.opened = [beta]
        assert client.call(2, "started")["folder"] == str(beta)


@pytest.mark.parametrize("flags", [("--stay",), ("--only", "alpha")], ids=["stay", "named"])
def test_a_server_that_stays_does_not_follow(person: Person, flags: tuple[str, ...]) -> None:
    with in_alpha(person, *DEAF, "{root}", flags=flags) as client:
        client.opened = [person.parent / "beta"]
        assert root_of(client, 1) == str(person.parent / "alpha")


def test_a_move_to_an_unapproved_folder_is_an_error_and_makes_it_pending(person: Person) -> None:
    gamma = person.parent / "gamma"
    with in_alpha(person, *DEAF, "{root}", flags=("--name", "builder")) as client:
        assert root_of(client, 1) == str(person.parent / "alpha")
        client.opened = [gamma]
        client.start_call(2, "started")
        error = client.answer()["error"]
        assert error["data"]["remedy"] == f"rootsd approve {gamma}"
        until(lambda: "builder" in (note_of(person, "gamma") or ""))
        person.rootsd("approve", "gamma")
        assert root_of(client, 3) == str(gamma)
    person.rootsd("forget", "gamma")
    person.rootsd("scan")


def note_of(person: Person, name: str) -> str | None:
    """Return the note on a pending project."""
    notes: list[str | None] = [
        each["note"] for each in person.items("pending") if each["name"] == name
    ]
    return notes[0] if notes else None


def test_the_place_outlasts_the_daemon(person: Person) -> None:
    beta = person.parent / "beta"
    with in_alpha(person, *SCRIPTED) as client:
        client.opened = [beta]
        assert client.call(1, "ask")["paths"] == [str(beta)]
        person.rootsd("down")
        person.rootsd("up")
        ids = count(2)
        until(lambda: "no-approved-roots" not in client.call(next(ids), "ask")["paths"][0])
        assert client.call(1, "ask")["paths"] == [str(beta)]


def test_the_wall_of_a_server_moves_with_the_session(person: Person, worktree: Path) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    with in_alpha(person, "/usr/bin/python3", "-c", READER, flags=("--confine",)) as client:
        assert client.call(1, "read", str(alpha / "README")) == "hello\n"
        assert client.call(2, "read", str(beta / "README")) == "refused"
        make(person, worktree)
        client.opened = [worktree]
        assert client.call(3, "read", str(worktree / "README")) == "hello\n"
        client.opened = [beta]
        assert client.call(4, "read", str(beta / "README")) == "hello\n"
        assert client.call(5, "read", str(alpha / "README")) == "refused"
        client.opened = [person.parent / "gamma"]
        client.start_call(6, "read", str(beta / "README"))
        assert "not approved" in client.answer()["error"]["message"]


def test_a_subfolder_of_the_working_directory_is_all_that_the_server_gets(person: Person) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    for root in (alpha, beta):
        (root / "web").mkdir(exist_ok=True)
    with in_alpha(person, *SCRIPTED, flags=("--only", "cwd/web")) as client:
        assert client.call(1, "ask")["paths"] == [str(alpha / "web")]
        assert client.call(2, "allowed", str(alpha / "README")) is False
        client.opened = [beta]
        assert client.call(3, "ask")["paths"] == [str(beta / "web")]


def test_a_subfolder_that_leads_out_of_its_root_gives_nothing(person: Person) -> None:
    (person.parent / "alpha" / "away").symlink_to(person.parent / "gamma")
    with in_alpha(person, *SCRIPTED, flags=("--only", "cwd/away")) as client:
        (empty,) = client.call(1, "ask")["paths"]
        assert "no-approved-roots" in empty


def test_behind_a_wall_the_subfolder_is_all_that_the_server_reads(person: Person) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    for root in (alpha, beta):
        (root / "lib").mkdir()
        (root / "lib" / "NOTE").write_text(root.name)
    server, flags = ("/usr/bin/python3", "-c", READER), ("--only", "cwd/lib", "--confine")
    with in_alpha(person, *server, flags=flags) as client:
        for place, other in ((alpha, beta), (beta, alpha), (alpha, beta)):
            client.opened = [place]
            assert client.call(1, "read", str(place / "lib" / "NOTE")) == place.name
            closed = (place / "README", place / ".git" / "HEAD", other / "lib" / "NOTE")
            assert {client.call(2, "read", str(each)) for each in closed} == {"refused"}


@pytest.mark.parametrize("below", ["out", ".git", "absent"])
def test_a_subfolder_that_is_not_in_a_root_shows_nothing_behind_a_wall(
    person: Person, below: str
) -> None:
    alpha, gamma = person.parent / "alpha", person.parent / "gamma"
    if below == "out":
        (alpha / below).symlink_to(gamma)
    server, flags = ("/usr/bin/python3", "-c", READER), ("--only", f"cwd/{below}", "--confine")
    with in_alpha(person, *server, flags=flags) as client:
        closed = (gamma / "README", alpha / "README", alpha / ".git" / "HEAD")
        assert {client.call(2, "read", str(each)) for each in closed} == {"refused"}


def test_the_workspace_of_a_bridge_moves_with_an_older_client(person: Person) -> None:
    alpha, beta = person.parent / "alpha", person.parent / "beta"
    bridge = [sys.executable, "-m", "rootsd", "bridge"]
    with started(bridge, cwd=alpha, HOME=str(person.home)) as client:
        client.opened = [alpha]
        client.shake_hands_with_roots()
        for number, here in enumerate((alpha, beta, alpha)):
            client.opened = [here]
            said = client.call(number, "list_roots", {})["content"][0]["text"]
            marked = [line for line in said.splitlines() if "in this workspace" in line]
            assert [str(here) in line for line in marked] == [True], said


def test_a_folder_that_a_hook_reports_is_pending_before_any_call(person: Person) -> None:
    gamma = person.parent / "gamma"
    event = {"hook_event_name": "DirectoryAdded", "directory": str(gamma), "cwd": "/"}
    done = subprocess.run(
        [sys.executable, "-m", "rootsd", "hook", "claude-code"],
        input=json.dumps(event).encode(), env=person.environment(), check=True,
        capture_output=True,
    )  # fmt: skip
    assert done.stdout == b""
    until(lambda: "claude-code" in (note_of(person, "gamma") or ""))
