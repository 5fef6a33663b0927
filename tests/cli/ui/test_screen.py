"""The screen with a fake daemon: what it draws, and what its keys and the mouse send."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rootsd.cli.answers import control_client
from rootsd.cli.ui import widgets
from rootsd.cli.ui.app import RootsdScreen
from rootsd.cli.ui.board import ProjectRow, SessionRow
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.session_record import EventKind, begin_journal, conclude_record, note
from support.fake_daemon import Objection, a_confirmation, a_decision, an_affected, an_item
from support.ledger_harness import HANG_GUARD
from support.live_daemon import Challenged, LiveDaemon, an_update, followed
from support.sample_answers import CONFINED
from support.screen import ScreenUser, a_screen

GOLDEN = Path(__file__).parent.parent / "golden" / "ui"
RISKS = [
    {"concern": "executed", "path": ".mcp.json", "detail": "server x"},
    {"concern": "sensitive", "path": ".env", "detail": ""},
]
LONG_AGO = "2999-01-01T00:00:00Z"  # in the future, so that its age is always "just now"
SESSION = {
    "id": "s1", "client": "claude-code", "pid": 99, "scope": ["tag:work"], "since": LONG_AGO,
    "until": None, "end": None, "told": None,
    "given": [{"at": LONG_AGO, "revision": 3, "roots": 2, "gained": [], "gained_count": 0,
               "lost": [], "lost_count": 0}],
}  # fmt: skip
PLAN = a_decision(an_item("acme/api", path="/home/ann/src/acme/api"))


def project(group: str, name: str, **changes: object) -> dict[str, Any]:
    """Return a followed project below ~/src."""
    place = {"path": f"/home/ann/src/{name}", "discovered_at": LONG_AGO}
    return followed(group, name, **{**place, **changes})


SNAPSHOT = an_update(
    projects=[
        project("pending", "acme/api", findings=RISKS),
        project("pending", "beta/api"),
        project("pending", "beta/web", request='claude asks for it: "tests"'),
        project("approved", "tool", tags=["work"]),
        project("approved", "docs", access="read"),
        project("approved", "gone", published=False),
        project("denied", "junk"),
        project("other", "half"),
    ],
    sessions=[SESSION],
    confined=[CONFINED],
)


def with_risks(listing: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a listing as a query for risks is answered. The owner is the folder of the name."""
    items = [
        {
            **item,
            "risk": "runs code: .mcp.json" if item["findings"] else "",
            "origin_owner": item["name"].rpartition("/")[0],
        }
        for item in listing["items"]
    ]
    return {**listing, "items": items}


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[LiveDaemon]:
    """A daemon with the snapshot, and with answers to decisions."""
    with LiveDaemon(rootsd_dir, [SNAPSHOT]) as daemon:
        daemon.answers |= {
            "decide": PLAN,
            "projects": lambda params: with_risks(daemon.show(params)),
            "undo": {"revision": 8, "undone": [UNDONE], "items": [], "warnings": []},
            "session_roots": {
                "revision": 7,
                "items": [{"name": "tool", "path": "/home/ann/src/tool", "access": "read"}],
                "warnings": [],
            },
        }
        yield daemon


UNDONE = {
    "seq": 4, "at": LONG_AGO, "verb": "approved", "actor": "person", "by": None,
    "path": "/home/ann/src/tool", "path_b64": None, "what": "tool", "undid": None,
}  # fmt: skip


def orders(daemon: LiveDaemon) -> list[Mapping[str, Any]]:
    """Return the decisions that the screen sent, without dry runs."""
    return [each for each in daemon.asked("decide") if each.get("effect") != "dry-run"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 32), (200, 50)])
async def test_the_screen_is_drawn(daemon: LiveDaemon, width: int, height: int) -> None:
    """If this fails because the screen changed, remove the file, and review the new one."""
    async with a_screen(width, height) as person:
        await person.waits_for("Pending 3")
        await person.presses("j")
        await person.waits_for("agents run")
        await person.waits_for("runs code")
        drawn = person.sees + "\n"
    golden = GOLDEN / f"{width}x{height}.txt"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(drawn)
        pytest.fail(f"wrote {golden}: review it")
    assert drawn == golden.read_text()


async def test_the_projects_are_sorted_by_a_column_and_grouped_by_owner(
    daemon: LiveDaemon,
) -> None:
    async with a_screen(80, 24) as person:
        await person.waits_for("runs code")
        await person.presses("s", "s", "s")
        await person.waits_for("Projects by risk")
        await person.waits_until(lambda: _pending(person) == ["acme/api", "beta/web", "beta/api"])
        await person.presses("o", "o")
        await person.waits_until(
            lambda: _pending(person) == ["acme: 1", "acme/api", "beta: 2", "beta/web", "beta/api"]
        )
        await person.presses("G", "k", "k", "space")
        await person.waits_for("Pending 3, 2 selected")
        await person.presses("d")
        await person.waits_for("Deny 2 projects?")
        await person.presses("y")
        await person.waits_until(lambda: bool(orders(daemon)))
    assert sorted(orders(daemon)[0]["refs"]) == ["id-beta/api", "id-beta/web"]


def _pending(person: ScreenUser) -> list[str]:
    """Return the names in the list of pending projects."""
    rows = person.app.query_one("#pending", widgets.RowList)
    lines = ("".join(each.text for each in rows.render_line(y)) for y in range(1, 20))
    return [line[2:23].strip() for line in lines if line.strip()]


async def test_a_key_shows_the_denied_projects_and_another_the_rules(daemon: LiveDaemon) -> None:
    rule = {"number": 3, "verdict": "denied", "pattern": "/home/ann/src/x/**",
            "pattern_b64": None, "origin": None, "risk": None, "covers": 2,
            "added_at": LONG_AGO, "source": None}  # fmt: skip
    daemon.answers["rules"] = {"revision": 7, "items": [rule], "policy": [], "warnings": []}
    async with a_screen(80, 24) as person:
        await person.waits_for("Pending 3")
        assert "junk" not in person.sees
        await person.presses("D")
        await person.waits_for("denied")
        assert _pending(person)[-1] == "junk"
        await person.presses("D")
        assert "junk" not in _pending(person)
        await person.presses("r")
        await person.waits_for("3 denied")
        assert "/home/ann/src/x/**. It covers 2 projects now." in person.sees


async def test_an_empty_list_says_why(daemon: LiveDaemon) -> None:
    daemon.snapshot = [an_update()]
    async with a_screen() as person:
        await person.waits_for("No project needs a decision.")
        await person.presses("2")
        await person.waits_for("Approve a pending project")
        await person.presses("3")
        await person.waits_for("No client is connected.")


async def test_sessions_show_confined_programs_and_the_roots_they_got(daemon: LiveDaemon) -> None:
    async with a_screen(120, 60) as person:
        await person.waits_for("Sessions 2")
        await person.presses("3")
        await person.waits_for("~/src/tool (read only)")
        assert "no wall" in person.sees
        assert daemon.asked("session_roots")[-1] == {"id": "s1"}
        await person.presses("j")
        await person.waits_for("TCP on localhost")
        await person.waits_for("namespaces + Landlock 7, network")
        await person.waits_for("R shows the one of its last session")


async def test_a_key_adds_a_root_to_a_program_behind_the_wall(daemon: LiveDaemon) -> None:
    added = {"program": "claude", "name": "tool", "path": "/home/ann/src/tool", "result": "added"}
    daemon.answers["add_to_session"] = {"items": [added]}
    async with a_screen() as person:
        await person.waits_for("Sessions 2")
        await person.presses("3", "plus")  # a client that has no wall
        await person.waits_for("Choose a program behind the wall first")
        await person.presses("j", "plus")
        await person.waits_for("docs tool")  # not `gone`, which is not published
        await person.presses("enter")  # nothing is typed
        await person.presses("t", "enter")
        await person.waits_for("Added tool to claude. Tell the agent: ~/src/tool")
        daemon.answers["add_to_session"] = {"items": [{**added, "result": "the wall has ended"}]}
        await person.presses("plus", "d", "enter")
        await person.waits_for("tool: the wall has ended")
    assert [each["names"] for each in daemon.asked("add_to_session")] == [["tool"], ["docs"]]
    assert {each["id"] for each in daemon.asked("add_to_session")} == {CONFINED["id"]}


async def test_a_key_shows_the_last_report_of_a_program(
    daemon: LiveDaemon, rootsd_dir: Path
) -> None:
    daemon.answers["log"] = {"revision": 7, "items": [], "warnings": []}
    async with a_screen() as person:
        await person.waits_for("Sessions 2")
        daemon.send(confined=[{**CONFINED, "name": "claude"}])
        await person.presses("3", "j", "R")
        await person.waits_for("no report has the id or program claude")
        await person.presses("escape")
        wall = os.fsencode(rootsd_dir / "state" / "confine" / "claude" / "0")
        begin_journal(wall, 5)
        note(wall, EventKind.USED, b"forge.example")
        conclude_record(wall, (), (b"/home/ann/src/tool/.envrc",), SessionEnd.ORDERLY)
        await person.presses("R")
        await person.waits_for("used your credentials at  forge.example")
        assert (
            "runs by itself            ~/src/tool/.envrc  rootsd review --changed" in person.sees
        )


async def test_an_approval_has_the_typed_fields_and_the_folder_that_was_shown(
    daemon: LiveDaemon,
) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("j")
        await person.waits_for(".env")
        await person.presses("a")
        await person.waits_for("Approve this project")
        await person.waits_for("Enter approves: for ever, writable")
        assert "sensitive" in person.sees
        await person.types("work,#go")
        await person.presses("tab", *"8x", "enter")
        await person.waits_for("is not a duration")
        await person.presses("backspace", "h", "tab", "space")
        await person.waits_for("Enter approves: for 8h, read-only")
        await person.presses("enter")
        await person.waits_for("u takes it back")
    (order,) = orders(daemon)
    assert order == {
        "verb": "approve", "cwd": "/", "refs": ["id-acme/api"], "tags": ["work", "go"],
        "access": "read", "lasts": 28_800, "shown": ["folder of acme/api"],
    }  # fmt: skip


async def test_an_answer_to_a_request_is_read_only_and_for_its_session(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("requested")
        await person.presses("a")
        await person.waits_for("for all sessions")
        await person.waits_for("until the session that requested it ends, read-only")
        await person.presses("enter")
        await person.waits_for("u takes it back")
        await person.presses("k", "a")
        await person.waits_for("for all sessions")
        await person.presses("tab", "tab", "space", "tab", "space")
        await person.waits_for("Enter approves: for ever, writable")
        await person.presses("enter")
        await person.waits_until(lambda: len(orders(daemon)) == 2)
    first, second = orders(daemon)
    assert first["access"] == "read"
    assert "span" not in first
    assert (second["access"], second["span"]) == ("read-write", "always")


ASKING = [
    {
        "session": f"{pid}-1",
        "by": f"{by}, pid {pid}",
        "client": client,
        "reason": "to [b]fix[/] it",
    }
    for pid, by, client in ((10, "node (claude)", "claude-code"), (20, "python (evil)", "claude"))
]


def asked_by_two(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer an approval of a folder that two sessions request."""
    if params["verb"] == "approve" and not {"span", "session"} & params.keys():
        raise Objection(ErrorCode.AMBIGUOUS, "2 sessions ask for /home/ann/src/beta/web")
    return PLAN


async def test_if_two_sessions_request_a_folder_the_dialog_asks_which_one_gets_it(
    daemon: LiveDaemon,
) -> None:
    daemon.answers["decide"] = asked_by_two
    web = an_item("beta/web", path="/home/ann/src/beta/web", requests=ASKING)
    daemon.answers["show"] = {"revision": 7, "items": [web], "warnings": []}
    async with a_screen() as person:
        await person.waits_for("requested")
        await person.sends_in_one_burst("a", "enter", "space", "enter")
        await person.waits_for("choose which session gets it")
        for line in (
            'session 1    node (claude), pid 10 (its own name: "claude-code"): "to [b]fix[/] it"',
            'session 2    python (evil), pid 20 (its own name: "claude"): "to [b]fix[/] it"',
            "only for session 1: node (claude), pid 10",
        ):
            assert line in person.sees
        await person.waits_until(lambda: not person.app.is_in_dropped_burst)
        await person.presses("enter")
        assert orders(daemon) == []
        await person.waits_until(lambda: not person.app.is_in_dropped_burst)
        await person.presses("space", "tab", "space")
        await person.waits_for("until the session that you chose ends, read-only")
        await person.presses("enter")
        await person.waits_for("u takes it back")
        await person.presses("k", "a")
        await person.waits_for("only for session 1")
        await person.waits_until(lambda: not person.app.is_in_dropped_burst)
        await person.presses("tab", "tab", "space")
        await person.waits_for("Enter approves: for ever, read-only")
        await person.presses("enter")
        await person.waits_until(lambda: len(orders(daemon)) == 2)
    one, every = orders(daemon)
    assert (one["span"], one["session"], one["access"]) == ("session", "20-1", "read")
    assert (every["span"], every.get("session")) == ("always", None)


async def test_an_incomplete_project_is_published_only_if_that_is_ticked(
    daemon: LiveDaemon,
) -> None:
    cut = {"id": "r1", "name": "cut", "reason": "interrupted", "lacks": "files are missing"}
    daemon.answers["decide"] = {**PLAN, "incomplete": [cut]}
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("a")
        await person.waits_for("cut is incomplete: files are missing")
        await person.waits_for("tick the last field to publish it anyway")
        await person.presses("tab", "tab", "tab", "tab", "space", "enter")
        await person.waits_until(lambda: len(orders(daemon)) == 1)
    (given,) = orders(daemon)
    assert (given["incomplete"], given["incomplete_shown"]) == (["r1"], ["interrupted"])


async def test_worktrees_are_published_only_if_they_are_ticked(daemon: LiveDaemon) -> None:
    tree = {
        "id": "t1", "name": "wt", "path": "/home/ann/wt", "path_b64": None, "main": "/m",
        "identity": "folder of wt", "published": False, "confirmable": True, "reason": "older",
    }  # fmt: skip
    both = a_confirmation(
        *(an_affected(id_, id=id_, risk="secrets: .env") for id_ in ("r7k2", "t1"))
    )

    def decide(params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**PLAN, "worktrees": [tree], **(both if params.get("worktrees") else {})}

    daemon.answers["decide"] = decide
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("a")
        await person.waits_for("~/wt (older than this approval)")
        assert "wt: secrets: .env" in person.sees
        assert "would be published" not in person.sees, "Enter alone publishes one project"
        await person.presses("enter")
        await person.waits_until(lambda: len(orders(daemon)) == 1)
        await person.presses("k", "a")
        await person.waits_for("also its older worktrees")
        await person.presses("tab", "tab", "tab", "tab", "space", "enter")
        await person.waits_until(lambda: len(orders(daemon)) == 2)
    without, with_it = orders(daemon)
    assert "worktrees" not in without
    assert (with_it["worktrees"], with_it["worktrees_shown"]) == (["t1"], ["folder of wt"])
    assert ("confirmed" in without, with_it["confirmed"]) == (False, ["token-r7k2", "token-t1"])


async def test_several_projects_are_approved_together(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("slash", *"api", "enter", "asterisk")
        await person.waits_for("Pending 2 of 3, 2 selected")
        await person.presses("a")
        await person.waits_for("Approve 2 projects")
        await person.waits_for("acme/api: runs code: .mcp.json")
        await person.presses("enter")
        await person.waits_until(lambda: bool(orders(daemon)))
    (order,) = orders(daemon)
    assert order["refs"] == ["id-acme/api", "id-beta/api"]
    assert order["shown"] == ["folder of acme/api", "folder of beta/api"]


async def test_a_folder_swapped_after_it_was_shown_is_not_what_is_approved(
    daemon: LiveDaemon,
) -> None:
    """The list has the new folder already. The approval still names the one in the details."""
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("slash", *"acme", "enter")
        await person.waits_for(".env")
        daemon.answers["show"] = Objection(ErrorCode.FAILED, "the disk does not answer")
        daemon.answers["decide"] = Objection(ErrorCode.FAILED, "another folder is there now")
        await person.presses("a")
        await person.waits_for("another folder is there now")
    assert daemon.asked("decide")[-1]["shown"] == ["folder of acme/api"]


async def test_a_mark_does_not_move_to_another_folder(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("asterisk")
        await person.waits_for("3 selected")
        other = project("pending", "acme/api", identity="another folder")
        same = project("pending", "beta/api", tags=["t"])
        daemon.send(projects=[other, same])
        await person.waits_for("2 selected")


async def test_a_denial_is_sent_at_once_and_of_several_after_a_yes(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("d")
        await person.waits_for("Denied")
        await person.presses("asterisk", "d")
        await person.waits_for("Deny 3 projects?")
        await person.presses("n")
        assert len(orders(daemon)) == 1
        await person.presses("d")
        await person.waits_for("Deny 3 projects?")
        await person.presses("y")
        await person.waits_until(lambda: len(orders(daemon)) == 2)
    one, three = orders(daemon)
    assert one == {"verb": "deny", "cwd": "/", "refs": ["id-beta/web"]}
    assert len(three["refs"]) == 3


async def test_keys_copy_a_path_show_reasons_set_the_focus_and_undo(daemon: LiveDaemon) -> None:
    daemon.answers["why"] = {
        "revision": 7, "path": "/home/ann/src/beta/web", "published": False, "items": [],
        "voices": [{"ground": "undecided", "verdict": "pending", "by": None, "decides": True}],
        "obstacles": ["it is in no parent"], "warnings": [],
    }  # fmt: skip
    daemon.answers["set-focus"] = {
        "revision": 8, "tag": "work", "roots": ["tool"], "warnings": [],
    }  # fmt: skip
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("y")
        assert person.app.clipboard == "/home/ann/src/beta/web"
        await person.presses("w")
        await person.waits_for("pending (decides)")
        assert "it is in no parent" in person.sees
        await person.presses("escape")
        await person.waits_for("Pending 3")
        await person.presses("f")
        await person.waits_for("Focus on a tag")
        await person.presses("w", "enter")
        await person.waits_for("Focus on work: sessions see 1 root.")
        daemon.send(focus="work")
        await person.waits_for("focus: work")
        await person.presses("u")
        await person.waits_for("/home/ann/src/tool")
        assert daemon.asked("undo") == [{"effect": "dry-run"}]
        await person.presses("y")
        await person.waits_for("Undone: 1 decision.")
    assert daemon.asked("set-focus") == [{"tag": "work", "reach": "all"}]
    assert daemon.asked("undo")[1:] == [{}]


async def test_a_refusal_names_the_next_command(daemon: LiveDaemon) -> None:
    daemon.answers["decide"] = Objection(ErrorCode.REFUSED, "an agent started this", "type it")
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("d")
        await person.waits_for("an agent started this; try: type it")
        daemon.answers["decide"] = Objection(ErrorCode.REFUSED, "word " * 40 + "end")
        await person.presses("d")
        await person.waits_for(" end")


async def test_a_challenge_is_answered_on_the_plain_terminal(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The screen is left first, and the order is sent again: its word would be drawn over."""
    happened: list[str] = []

    @contextmanager
    def suspend(_: RootsdScreen) -> Iterator[None]:
        happened.append("left")
        yield
        happened.append("back")

    def call(order: object) -> Mapping[str, Any]:
        happened.append("asked")
        if len(happened) > 3:
            raise RootsdError("the word typed was not the one asked for")
        return PLAN

    def challenge(params: dict[str, Any]) -> dict[str, Any]:
        if params.get("effect") == "dry-run":  # which decides nothing
            return PLAN
        raise Challenged

    daemon.answers["decide"] = challenge
    monkeypatch.setattr(RootsdScreen, "suspend", suspend)
    monkeypatch.setattr(control_client, "call", call)
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("d")
        await person.waits_for("Denied")
        await person.presses("d")
        await person.waits_for("the word typed was not")
    assert happened == ["left", "asked", "back"] * 2


async def test_the_editor_opens_the_folder(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def suspend(_: RootsdScreen) -> Iterator[None]:
        yield

    written = tmp_path / "written"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" >{written}\n')
    editor.chmod(0o700)
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("e")
        await person.waits_for("neither VISUAL nor EDITOR is set")
        monkeypatch.setenv("EDITOR", f"{editor} --wait")
        await person.presses("e")
        await person.waits_for("needs a terminal of its own")
        monkeypatch.setattr(RootsdScreen, "suspend", suspend)
        await person.presses("e")
        await person.waits_until(written.exists)
    assert written.read_text() == "--wait /home/ann/src/beta/web\n"


async def test_the_mouse_does_what_the_keys_do(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.pilot.click("#pending", offset=(10, 3))
        await person.waits_for(".env")
        await person.pilot.click("#pending", offset=(1, 4))
        await person.waits_for("Pending 3, 1 selected")
        await person.pilot.click("#keys", offset=(12, 0))  # deny
        await person.waits_until(lambda: bool(orders(daemon)))
        await person.pilot.click("#heading", offset=(25, 0))
        assert person.app.active.value == "Sessions"
    assert orders(daemon)[0]["refs"] == ["id-beta/api"]


async def test_a_restart_of_the_daemon_is_survived(daemon: LiveDaemon) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("j", "j")
        daemon.snapshot = [an_update(projects=[project("pending", "beta/api")])]
        daemon.drop()
        await person.waits_for("Pending 1")
        assert "Roots 0" in person.sees
        assert "away" not in person.sees
        await person.presses("d")
        await person.waits_for("Denied")


async def test_without_a_daemon_the_lists_stay_and_the_screen_says_so(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        monkeypatch.setenv("ROOTSD_DIR", "/nowhere")
        daemon.drop()
        await person.waits_for("daemon away")
        assert "acme/api" in person.sees
        await person.presses("d")
        await person.waits_for("the daemon is not running; try: rootsd up")


async def test_a_daemon_that_hangs_blocks_neither_the_screen_nor_its_end(
    daemon: LiveDaemon,
) -> None:
    answers = threading.Event()

    def hang(_: dict[str, Any]) -> Mapping[str, Any]:
        answers.wait(HANG_GUARD)
        return PLAN

    daemon.answers["decide"] = hang
    async with a_screen() as person:
        await person.waits_for("Pending 3")
        await person.presses("d", "escape")  # which cancels
        await person.waits_for("Nothing was changed.")
        await person.presses("j")
        await person.waits_for(".env")
        await person.presses("a")
        await person.waits_for("Reading.")
        await person.presses("enter", "escape", "q")
    assert not answers.is_set()
    answers.set()


async def test_an_older_daemon_ends_the_screen(daemon: LiveDaemon) -> None:
    daemon.answers["follow"] = Objection(ErrorCode.USAGE, "this daemon does not know 'follow'")
    async with a_screen() as person:
        await person.waits_until(lambda: not person.app.is_running)
        assert "does not know 'follow'" in str(person.app.return_value)


HOSTILE = (
    "[red]x[/red]",
    "a\x1b[2Jb",
    "l\u202eook",
    "[@click=app.quit]q[/]",
    "\u65e5" * 40,
    "a" * 300,
)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_hostile_names_are_text(daemon: LiveDaemon, size: tuple[int, int]) -> None:
    daemon.snapshot = [
        an_update(
            projects=[project("pending", name, id=f"h{at}") for at, name in enumerate(HOSTILE)],
            sessions=[{**SESSION, "client": HOSTILE[1]}],
            focus=HOSTILE[0],
        )
    ]
    async with a_screen(*size) as person:
        await person.waits_for("Pending 6")
        for _ in HOSTILE:
            await person.presses("j")
        await person.presses("asterisk", "a")
        await person.waits_for("Approve 6")
        await person.presses("escape")
        await person.waits_for(safe_label(HOSTILE[0]))
        seen = person.sees
        assert hidden_characters(seen) == ""
        assert all(len(line) <= size[0] for line in seen.splitlines())


def hidden_characters(text: str) -> str:
    """Return the characters that could control a terminal."""
    return "".join(char for char in text if char != "\n" and not char.isprintable())


async def test_a_screen_that_draws_raw_names_is_detected(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positive control of the test above."""
    monkeypatch.setattr(widgets, "safe_label", lambda text, limit=None: text)
    daemon.snapshot = [an_update(projects=[project("pending", HOSTILE[2])])]
    async with a_screen() as person:
        await person.waits_for("Pending 1")
        assert hidden_characters(person.sees) != ""


async def test_5000_rows_cost_as_much_as_those_on_the_screen(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.snapshot = [an_update(projects=[project("pending", f"p{n}") for n in range(5000)])]
    async with a_screen(80, 24) as person:
        await person.waits_for("Pending 5,000")
        drawn: list[str] = []
        cells_of = person.app.board.cells_of

        def counted(row: ProjectRow | SessionRow) -> Mapping[str, Any]:
            drawn.append(row.id)
            return cells_of(row)

        monkeypatch.setattr(
            person.app.query_one("#pending", widgets.RowList), "_cells_of", counted
        )
        for _ in range(10):
            await person.presses("pagedown")
        await person.presses("G")
        await person.waits_for(" p999 ")
        assert 10 <= len(set(drawn)) <= 12 * 24


async def test_without_color_the_cursor_and_the_ticks_are_still_seen(
    daemon: LiveDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with a_screen() as person:
        await person.waits_for("requested")
        rows = person.app.query_one("#pending", widgets.RowList)
        assert all(each.style is None or each.style.reverse for each in rows.render_line(1))
        assert not any(each.style and each.style.reverse for each in rows.render_line(2))
        await person.presses("a")
        await person.waits_for("▐x▌ read only")
        assert "▐ ▌ for all sessions" in person.sees
