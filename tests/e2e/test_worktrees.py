"""A person sees and confirms worktrees, with a real daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.person import Person, Resident
from support.polling import until
from support.process_launcher import ROOTSD, Completed, ProcessLauncher

Press = Callable[..., Completed]

pytestmark = pytest.mark.needs("linux")


def _answer(person: Person, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(person.rootsd("--json", *words))
    return answer


def _with_a_worktree_and_a_forgery(person: Person) -> tuple[Path, Path, Path]:
    """Return a repository, its older worktree, and a folder that claims to be another one."""
    tool = person.clone("tool")
    fix, docs = person.parent / "fix", person.parent / "docs"
    person.git("-C", str(tool), "worktree", "add", "--detach", str(fix))
    docs.mkdir()
    (docs / "secret").write_text("mine\n")
    entry = tool / ".git" / "worktrees" / "docs"
    entry.mkdir()
    real = tool / ".git" / "worktrees" / "fix"
    for name in ("HEAD", "commondir", "index"):
        (entry / name).write_bytes((real / name).read_bytes())
    (entry / "gitdir").write_text(f"{docs}/.git\n")
    (docs / ".git").write_text(f"gitdir: {entry}\n")
    return tool, fix, docs


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Run a daemon that has found a repository, its older worktree, and a forged one."""
    person = Resident(tmp_path_factory.mktemp("house"))
    _with_a_worktree_and_a_forgery(person)
    person.rootsd("up", str(person.parent))
    until(lambda: {"tool", "fix", "docs"} <= set(person.names("pending")))
    yield person
    person.run("down")


@pytest.fixture
def up(house: Resident) -> Iterator[Resident]:
    """Yield a person who has decided nothing."""
    yield house
    house.rootsd("forget", "*", "--yes")


@pytest.fixture
def press(up: Person, tmp_path: Path) -> Iterator[Press]:
    """Return a function that runs `rootsd` on a terminal and presses a key at its question."""
    environment = {**up.environment(), "TERM": "xterm", "COLUMNS": "200"}
    with ProcessLauncher(tmp_path, environment) as launcher:

        def press(key: str, *words: str) -> Completed:
            return launcher.run_on_terminal(*ROOTSD, *words, typed=[("] ", key)])

        yield press


def test_without_a_terminal_older_worktrees_need_the_flag_and_later_ones_do_not(
    up: Person,
) -> None:
    shown = _answer(up, "show", "tool")["items"][0]["worktrees"]
    assert {tree["name"] for tree in shown} == {"fix", "docs"}
    approved = _answer(up, "approve", "tool")
    assert {tree["name"]: tree["published"] for tree in approved["worktrees"]} == {
        "fix": False,
        "docs": False,
    }
    assert up.names("ls", "--published") == ["tool"]
    notes = {item["name"]: item["note"] for item in up.items("pending")}
    assert "rootsd approve tool --worktrees" in notes["fix"]
    up.rootsd("approve", "tool", "--worktrees", "--yes")
    published = set(up.names("ls", "--published"))
    assert {"tool", "fix"} <= published
    up.rootsd("undo")
    assert up.names("ls", "--published") == ["tool"]
    later = up.parent / "later"
    up.git("-C", str(up.parent / "tool"), "worktree", "add", "--detach", str(later))
    up.wait_until_listed("later", "ls", "--published")
    assert set(up.names("ls", "--published")) == {"tool", "later"}
    up.git("-C", str(up.parent / "tool"), "worktree", "remove", str(later))


def test_on_a_terminal_one_key_publishes_the_listed_worktrees(up: Person, press: Press) -> None:
    done = press("n", "approve", "tool")
    assert (done.status, up.names("ls", "--published")) == (1, [])
    assert f"{up.parent}/fix" in done.output.replace("~", str(up.home))
    done = press("p", "approve", "tool")
    assert (done.status, up.names("ls", "--published")) == (0, ["tool"])
    assert press("y", "approve", "tool").status == 0
    assert "fix" in up.names("ls", "--published")


def test_worktrees_inside_their_checkout_are_published_with_it(up: Person, press: Press) -> None:
    inner = up.parent / "tool" / ".trees" / "inner"
    up.git("-C", str(up.parent / "tool"), "worktree", "add", "--detach", str(inner))
    up.wait_until_listed("inner", "pending")
    done = press("p", "approve", "tool")
    assert done.status == 0
    assert "worktrees are older" in done.output  # the one outside
    assert "inner  (worktree of" not in done.output
    assert set(up.names("ls", "--published")) == {"tool", "inner"}
    assert up.run("check", str(inner)).returncode == 0
    why = _answer(up, "why", str(inner))
    assert (why["published"], why["root"]) == (True, "inner")
    up.rootsd("approve", "tool", "--read-only")
    (item,) = [each for each in up.items("ls", "--published") if each["name"] == "inner"]
    assert item["access"] == "read", "no more than its checkout"
    up.git("-C", str(up.parent / "tool"), "worktree", "remove", str(inner))


def test_what_a_person_proposed_is_gone_after_undo_or_forget(up: Person) -> None:
    plain = up.home / "plain"
    plain.mkdir()

    def is_listed() -> bool:
        return "plain" in up.names("ls")

    for verb in ("approve", "deny"):
        up.rootsd(verb, str(plain))
        assert is_listed()
        up.rootsd("undo")
        assert not is_listed()
    for orders in ([], [("approve", "plain")], [("deny", "plain")]):
        up.rootsd("add", str(plain))
        for order in orders:
            up.rootsd(*order)
        up.rootsd("forget", "plain")
        assert not is_listed()
    up.rootsd("add", str(plain))
    up.rootsd("approve", "plain")
    up.rootsd("undo")
    assert "plain" in up.names("pending"), "another command had proposed it"
    up.rootsd("forget", "plain")
    up.rootsd("scan")
    up.rootsd("down")
    up.rootsd("up")
    assert not is_listed(), "nor after a scan and a restart"
    up.rootsd("approve", str(plain))
    up.rootsd("forget", "plain")
    up.rootsd("undo")
    assert "plain" in up.names("ls", "--published"), "undo brings the decision back"
    up.rootsd("forget", "fix")
    assert "fix" in up.names("pending"), "a scan finds it"


def test_a_slip_for_under_publishes_nothing(up: Person, press: Press) -> None:
    parent = str(up.parent)
    for words in (("approve", parent), ("deny", parent), ("approve", "--under", parent)):
        refused = up.run(*words)
        assert refused.returncode == 7
        verb, *rest = words
        assert f"try: rootsd {verb} --yes {' '.join(rest)}" in refused.stderr
    assert {item["verdict"] for item in up.items("ls")} == {"pending"}
    done = press("n", "approve", parent)
    assert (done.status, up.names("ls", "--published")) == (1, [])
    assert "would be readable as a part of" in done.output
    assert "rootsd approve --under" in done.output


def test_files_that_agents_execute_are_shown_before_the_key(up: Person, press: Press) -> None:
    risky = up.clone("risky")
    (risky / ".mcp.json").write_text("{}\n")
    up.wait_until_listed("risky", "pending")
    plan = _answer(up, "approve", "--all", "--dry-run")
    risks = {each["name"]: each["risk"] for each in plan["confirmation"]["projects"]}
    assert risks["risky"] == "runs code: .mcp.json"
    done = press("n", "approve", "--all")
    assert (done.status, up.names("ls", "--published")) == (1, [])
    assert "runs code: .mcp.json" in done.output
    up.rootsd("approve", "--all", "--yes")
    assert "risky" in up.names("ls", "--published")


def test_on_a_terminal_one_key_includes_the_git_directory_of_a_pending_checkout(
    up: Person, press: Press
) -> None:
    for key, status, included in (("q", 1, None), ("n", 0, False), ("y", 0, True)):
        done = press(key, "approve", "fix")
        assert done.status == status
        told = "fix uses the Git directory of tool, which is pending: ~/src/tool/.git."
        assert told in done.output
        (item,) = up.items("show", "fix")
        assert (item["published"], item["shared_git"]["included"]) == (
            included is not None,
            bool(included),
        )
    # With the flag, no question appears to press a key at.
    assert up.run("approve", "fix", "--yes").returncode == 0
    assert not up.items("show", "fix")[0]["shared_git"]["included"]


def test_removed_worktrees_that_nobody_decided_about_leave_every_list(person: Person) -> None:
    """Agents make and remove worktrees all day. A person's decision outlives its folder."""
    tool = person.clone("tool")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "tool")
    trees = [person.parent / name for name in ("one", "two", "kept", "gone")]
    for tree in trees:
        person.git("-C", str(tool), "worktree", "add", "--detach", str(tree))
    until(lambda: {tree.name for tree in trees} <= set(person.names("ls", "--published")))
    person.rootsd("rename", "kept", "mine")
    for tree in trees[:3]:
        person.git("-C", str(tool), "worktree", "remove", str(tree))
    until(lambda: person.names("ls", "--published") == ["gone", "tool"])
    assert sorted(person.names("ls")) == ["gone", "mine", "tool"]
    person.rootsd("down")
    person.git("-C", str(tool), "worktree", "remove", str(trees[3]))
    person.rootsd("up")
    until(lambda: sorted(person.names("ls")) == ["mine", "tool"])
    assert _answer(person, "prune", "--dry-run")["items"][0]["name"] == "mine"
