"""`rootsd export`: the approved folders of a tag, as a workspace file."""

from __future__ import annotations

import json
from pathlib import Path

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell


def tagged(daemon: FakeDaemon) -> None:
    daemon.answers["projects"] = a_listing(
        an_item("api", verdict="approved", tags=["go", "work"]),
        an_item("web", verdict="approved", tags=["work"]),
        an_item("other", verdict="approved", tags=["go"]),
        an_item("asks", tags=["work"]),
        an_item("no", verdict="denied", tags=["work"]),
        an_item("lapsed", verdict="approved", lapsed="replaced", tags=["work"]),
        an_item("odd", verdict="approved", tags=["work"], path=None, path_b64="L3NyYy//"),
    )


def test_the_approved_folders_of_a_tag_become_a_workspace_file(
    daemon: FakeDaemon, shell: Shell, tmp_path: Path
) -> None:
    tagged(daemon)
    done = shell.run("export", "--code-workspace", "tag:work")
    folders = [{"path": "/src/api"}, {"path": "/src/web"}]
    assert json.loads(done.out) == {"folders": folders, "settings": {}}
    assert done.err == "warning: odd is left out: such a file cannot name it\n"
    file = tmp_path / "work.code-workspace"
    written = shell.run("export", "--code-workspace", "tag:work", "--output", str(file))
    assert (written.status, written.out) == (0, "")
    assert written.err.startswith(f"2 folders in {file}\n")
    assert file.read_text() == done.out
    again = shell.run("export", "--code-workspace", "tag:work", "--output", str(file))
    assert (again.status, file.read_text()) == (1, done.out)
    printed = json.loads(shell.run("export", "--code-workspace", "tag:work", "--json").out)
    assert printed["code_workspace"]["folders"] == folders


def test_a_tag_without_approved_folders_is_an_error(daemon: FakeDaemon, shell: Shell) -> None:
    tagged(daemon)
    done = shell.run("export", "--code-workspace", "tag:none")
    assert (done.status, done.out) == (5, "")
    assert done.err == "error: no approved folder has the tag none\n  try: rootsd tag\n"
    for words in ("--code-workspace work", "--code-workspace tag:", "--output x", ""):
        assert shell.run("export", *words.split()).status == 2
