"""`rootsd scan`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, a_scan, an_item
from support.terminal import Shell

FOUND = a_scan(
    items=[an_item("n\t")], gone=[an_item("g", verdict="approved")], changed=[an_item("c")]
)


def test_a_pipe_gets_a_sign_for_each_project(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["scan"] = FOUND
    done = shell.run("scan")
    assert done.status == 0
    assert done.out.splitlines() == [
        "+\tn\\u{9}\tgit\tfile:///src/n%09", "-\tg\tgit\t/src/g", "~\tc\tgit\t/src/c",
    ]  # fmt: skip
    assert done.err == "3 projects in 1,204 folders, 0.05 s: 1 new, 1 gone, 1 changed\n"


def test_one_parent_is_named_by_its_canonical_path(
    daemon: FakeDaemon, shell: Shell, home: Path
) -> None:
    (home / "real").mkdir()
    (home / "src").symlink_to("real")
    daemon.answers["scan"] = FOUND
    shell.run("scan", "~/src")
    assert daemon.asked("scan") == [{"parent": str(home / "real")}]


def test_a_folder_that_is_not_a_parent_is_an_error(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["scan"] = Objection(
        ErrorCode.NOTHING_MATCHED, "/x is not a parent", "rootsd parent ls"
    )
    assert shell.run("scan", "/x").status == 5


def test_a_terminal_sees_progress_and_then_only_the_result(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["scan"] = FOUND
    daemon.notices = [{"folders": 5, "projects": 1, "parent": "/src"}]
    out = re.sub(r"\x1b\[\d*m", "", shell.run_on_terminal("scan").out)
    progress, rest = out.rsplit("\r\x1b[K", 1)
    assert progress == "\r\x1b[Kscanning: 1 projects in 5 folders  /src"
    assert [line.rstrip() for line in rest.splitlines()] == [
        "+  n\\u{9}  git  /src/n\\u{9}",
        "-  g       git  /src/g",
        "~  c       git  /src/c",
        "3 projects in 1,204 folders, 0.05 s: 1 new, 1 gone, 1 changed",
    ]


def test_json_has_new_projects_as_items_and_the_others_separately(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["scan"] = FOUND
    daemon.notices = [{"folders": 5, "projects": 1, "parent": "/src"}]
    done = shell.run("scan", "--json")
    whole = json.loads(done.out)
    assert done.err == ""
    assert whole["items"] == FOUND["items"]
    assert (whole["gone"], whole["changed"]) == (FOUND["gone"], FOUND["changed"])
    assert (whole["projects"], whole["folders"], whole["seconds"]) == (3, 1204, 0.05)
