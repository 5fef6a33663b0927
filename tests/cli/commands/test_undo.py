"""`rootsd undo`: from arguments to a request, and its output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.errors import ErrorCode
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.session_baseline import SessionBaseline
from support.fake_daemon import FakeDaemon, Objection, an_item
from support.terminal import Shell


def undone(*items: dict[str, Any]) -> dict[str, Any]:
    event = {
        "seq": 41, "at": "2026-11-20T08:11:02Z", "verb": "denied", "actor": "person", "by": "me",
        "path": "/src/api", "path_b64": None, "what": "api",
    }  # fmt: skip
    return {"revision": 8, "undone": [event], "items": list(items), "warnings": []}


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["undo"] = undone(an_item(verdict="approved"))
    done = shell.run("undo")
    assert done.out == "r7k2\tapi\tapproved\tgit\t/src/api\t\n"
    assert done.err == "undone: 41 denied /src/api\n"
    assert shell.run("undo", "41", "--dry-run").err == "would be undone: 41 denied /src/api\n"
    assert daemon.asked("undo") == [{}, {"seq": 41, "effect": "dry-run"}]


def test_an_argument_that_is_not_a_number_is_a_usage_error(
    daemon: FakeDaemon, shell: Shell
) -> None:
    assert shell.run("undo", "api").status == 2
    assert shell.run("undo", "0").status == 2
    assert daemon.requests == []


def report_of_a_removed_link(state: Path, folder: Path) -> Path:
    """Let a session end that has made a link out of a git directory. Return the link."""
    common = folder / "project" / ".git"
    common.mkdir(parents=True)
    record = SessionBaseline(os.fsencode(state / "confine" / "agent" / "0"))
    record.add([os.fsencode(folder / "project")])
    link = common / "FETCH_HEAD"
    link.symlink_to("/elsewhere")
    assert record.conclude(SessionEnd.ORDERLY) is not None
    assert not link.is_symlink()
    return link


@pytest.mark.needs("linux")
def test_links_removed_after_the_last_command_are_put_back(
    daemon: FakeDaemon, shell: Shell, rootsd_dir: Path, tmp_path: Path
) -> None:
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path)
    daemon.answers["undo"] = undone(an_item(verdict="approved"))  # of a week ago
    assert shell.run("undo", "--dry-run").err == f"would be put back: {link}\n"
    assert not link.is_symlink()
    assert shell.run("undo").err == f"put back: {link}\n"
    assert os.readlink(link) == "/elsewhere"
    assert shell.run("undo").err == "undone: 41 denied /src/api\n"


@pytest.mark.needs("linux")
def test_links_removed_before_the_last_command_stay_removed(
    daemon: FakeDaemon, shell: Shell, rootsd_dir: Path, tmp_path: Path
) -> None:
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path)
    answer = undone(an_item(verdict="approved"))
    answer["undone"][0]["at"] = "2999-01-01T00:00:00Z"
    daemon.answers["undo"] = answer
    assert shell.run("undo").err == "undone: 41 denied /src/api\n"
    assert not link.is_symlink()


@pytest.mark.needs("linux")
@pytest.mark.parametrize(("at", "is_put_back"), [("2026", True), ("2999", False)])
def test_links_are_put_back_if_undo_refuses_an_earlier_command(
    daemon: FakeDaemon, shell: Shell, rootsd_dir: Path, tmp_path: Path, at: str, is_put_back: bool
) -> None:
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path)
    daemon.answers["undo"] = Objection(ErrorCode.FAILED, "the last command stays", "rootsd x")
    command, observed = dict(undone()["undone"][0]), dict(undone()["undone"][0])
    command["at"], observed["at"] = f"{at}-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    observed["actor"] = None
    daemon.answers["log"] = {"revision": 8, "items": [command, observed], "warnings": []}
    refused = "error: the last command stays\n  try: rootsd x\n"
    assert shell.run("undo").err == (f"put back: {link}\n" if is_put_back else refused)
    assert link.is_symlink() is is_put_back


@pytest.mark.needs("linux")
def test_links_are_put_back_if_no_command_can_be_undone(
    daemon: FakeDaemon, shell: Shell, rootsd_dir: Path, tmp_path: Path
) -> None:
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path)
    daemon.answers["undo"] = Objection(
        ErrorCode.NOTHING_MATCHED, "there is nothing to undo", "rootsd log"
    )
    assert shell.run("undo").err == f"put back: {link}\n"
    link.unlink()
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path / "other")
    link.write_text("something else")
    done = shell.run("undo")
    assert f"not put back, because something else is there: {link} -> /elsewhere" in done.err
    assert link.read_text() == "something else"


@pytest.mark.needs("linux")
def test_an_agent_that_may_not_undo_puts_nothing_back(
    daemon: FakeDaemon, shell: Shell, rootsd_dir: Path, tmp_path: Path
) -> None:
    link = report_of_a_removed_link(rootsd_dir / "state", tmp_path)
    daemon.answers["undo"] = Objection(ErrorCode.REFUSED, "an agent may not", "rootsd guard")
    assert shell.run("undo").status != 0
    assert not link.is_symlink()
