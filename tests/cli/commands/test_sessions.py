"""`rootsd sessions`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rootsd.wall.git.file_changes import Change, ChangedRoot, GitView, TouchedFile
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.session_record import (
    EventKind,
    SessionRecord,
    begin_journal,
    conclude_record,
    note,
    records,
)
from support.fake_daemon import FakeDaemon
from support.terminal import Shell


def a_change(roots: int, gained: list[str], lost: list[str], more: int = 0) -> dict[str, Any]:
    return {
        "at": "2026-03-04T12:01:00Z",
        "revision": 7,
        "roots": roots,
        "gained": gained,
        "gained_count": len(gained) + more,
        "lost": lost,
        "lost_count": len(lost),
    }


def a_session(**more: object) -> dict[str, Any]:
    return {
        "id": "1f2e3d4c",
        "client": "an editor",
        "pid": 5,
        "scope": [],
        "since": "2026-03-04T12:00:00Z",
        "until": None,
        "end": None,
        "given": [a_change(2, [], [])],
        "told": None,
        **more,
    }


def answers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"revision": 7, "items": list(items), "confined": [], "warnings": []}


def test_open_sessions_are_lines_in_a_pipe(daemon: FakeDaemon, shell: Shell) -> None:
    odd = a_session(client="bad\x1b[2J", scope=["api", "tag:work"], given=[])
    nameless = a_session(client=None)
    daemon.answers["sessions"] = answers(odd, nameless)
    assert shell.run("sessions").out == (
        "1f2e3d4c\tbad\\u{1b}[2J\t5\tapi tag:work\t2026-03-04T12:00:00Z\tnone yet\n"
        "1f2e3d4c\t?\t5\tall\t2026-03-04T12:00:00Z\t2\n"
    )
    assert daemon.asked("sessions") == [{}]


def test_a_run_proxy_shows_how_many_roots_its_server_got(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["sessions"] = answers(a_session(told={"roots": 1, "names": ["api"]}))
    assert shell.run("sessions").out.endswith("\t1 of 2\n")


def test_a_server_behind_the_wall_can_have_more_roots_than_are_published(
    daemon: FakeDaemon, shell: Shell
) -> None:
    given = [a_change(0, [], [])]
    told = {"roots": 1, "names": ["withheld"]}
    daemon.answers["sessions"] = answers(a_session(given=given, told=told))
    assert shell.run("sessions").out.endswith("\t1 sent, 0 published\n")
    last = shell.run("sessions", "--history").out.splitlines()[-1]
    assert last.endswith("\t0 roots, 1 sent to its server")


def test_the_history_shows_it_beside_the_last_roots(daemon: FakeDaemon, shell: Shell) -> None:
    given = [a_change(1, ["api"], []), a_change(2, ["web"], [])]
    told = {"roots": 1, "names": ["api"]}
    daemon.answers["sessions"] = answers(a_session(given=given, told=told))
    rows = shell.run("sessions", "--history").out.splitlines()
    assert [row.split("\t")[4] for row in rows[1:]] == [
        "1 root: + api",
        "2 roots: + web, 1 of them sent to its server",
    ]


def test_the_history_has_a_line_for_each_event(daemon: FakeDaemon, shell: Shell) -> None:
    given = [
        a_change(3, ["api", "web"], [], more=1),
        a_change(1, [], ["web"]),
        a_change(1, [], []),
    ]
    over = a_session(given=given, until="2026-03-04T13:00:00Z", end="left")
    daemon.answers["sessions"] = answers(over)
    out = shell.run("sessions", "--history", "--last", "3").out
    assert [line.split("\t")[4] for line in out.splitlines()] == [
        "opened by pid 5",
        "3 roots: + api web and 1 more",
        "1 root: - web",
        "1 root",
        "ended: left",
    ]
    assert out.startswith("2026-03-04T12:00:00Z\t1f2e3d4c\tan editor\tall\t")
    assert daemon.asked("sessions") == [{"view": "history", "last": 3}]


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "No client is connected."), (("--history",), "No client has ever connected.")],
)
def test_an_empty_list_is_reported_on_a_terminal(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], said: str
) -> None:
    daemon.answers["sessions"] = answers()
    assert said in shell.run_on_terminal("sessions", *words).out


def test_a_limit_of_zero_is_a_usage_error(shell: Shell) -> None:
    assert shell.run("sessions", "--history", "--last", "0").status == 2


_HOSTILE = b"/home/u/src/\x1b[2J\n"


@pytest.fixture
def record(rootsd_dir: Path) -> SessionRecord:
    """The record of a session that changed a file in a root with a hostile name."""
    walls = os.fsencode(rootsd_dir / "state" / "confine")
    wall = walls + b"/claude/0"
    begin_journal(wall, 5)
    note(wall, EventKind.OPENED, _HOSTILE)
    note(wall, EventKind.ALLOWED, b"May it push?")
    files = (TouchedFile(b"a\tb", Change.CREATED, GitView.UNTRACKED),)
    root = ChangedRoot(_HOSTILE, created=3, ignored=4, files=files, unread=(b"x",))
    unsure = root._replace(is_certain=False)
    conclude_record(wall, (unsure,), (_HOSTILE + b"/.envrc",), SessionEnd.KILLED)
    return next(records(walls))


def test_a_report_names_everything_once_without_control_characters(
    daemon: FakeDaemon, shell: Shell, record: SessionRecord
) -> None:
    approved = {
        "path": os.fsdecode(_HOSTILE),
        "verb": "approved",
        "actor": "person",
        "by": "pts/1",
    }
    asked = {"path": None, "verb": "requested", "actor": "caller", "by": "claude", "what": "web"}
    by_others = ({**asked, "what": "secret"}, {**asked, "what": "secret", "wall": 6})
    own = {**asked, "wall": 5}
    until = shell.run("sessions", "--report").out.split("\t")[3]
    items = [
        {**each, "seq": 1, "at": until, "undid": None} for each in (approved, own, *by_others)
    ]
    daemon.answers["log"] = {"revision": 7, "items": items, "warnings": []}
    rows = [
        row.split("\t") for row in shell.run("sessions", "--report", record.id).out.splitlines()
    ]
    shown = "file:///home/u/src/%1B%5B2J%0A"
    assert [row[1:] for row in rows] == [
        ["began", "claude", "pid 5"],
        ["opened", shown, "approved by person: pts/1"],
        ["answered yes", "May it push?", ""],
        ["requested", "web", "caller: claude"],
        ["found killed", "claude", ""],
        ["runs by itself", f"{shown}/.envrc", "rootsd review --changed"],
        ["created", f"{shown}/a%09b", "untracked"],
        ["more", shown, "2 more files"],
        ["ignored", shown, "4 files that git ignores"],
        ["not listed", f"{shown}/x", ""],
        ["uncertain", shown, "files may be missing"],
    ]


def test_without_a_daemon_the_list_and_the_newest_report_of_a_program_are_there(
    shell: Shell, record: SessionRecord
) -> None:
    assert shell.run("sessions", "--report").out.split("\t")[4:] == ["3", "0", "0", "4\n"]
    [item] = json.loads(shell.run("sessions", "--report", "claude", "--json").out)["items"]
    assert (item["id"], item["was_killed"]) == (record.id, True)
    assert item["roots"][0]["path"] == "/home/u/src/\\u{1b}[2J\\u{a}"
    failed = shell.run("sessions", "--report", "nobody")
    assert "no report has the id or program nobody" in failed.err
