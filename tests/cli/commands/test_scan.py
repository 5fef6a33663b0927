"""`rootsd scan`."""

from __future__ import annotations

import re
from pathlib import Path

from support.fake_daemon import FakeDaemon, a_scan, an_item
from support.terminal import Shell

FOUND = a_scan(
    items=[an_item("n\t")], gone=[an_item("g", verdict="approved")], changed=[an_item("c")]
)


def test_one_parent_is_named_by_its_canonical_path(
    daemon: FakeDaemon, shell: Shell, home: Path
) -> None:
    (home / "real").mkdir()
    (home / "src").symlink_to("real")
    daemon.answers["scan"] = FOUND
    shell.run("scan", "~/src")
    assert daemon.asked("scan") == [{"parent": str(home / "real")}]


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
    assert shell.run("scan", "--json").err == ""
