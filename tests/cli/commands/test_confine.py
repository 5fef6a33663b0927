"""`rootsd confine --clean`: lists what programs keep, and removes it if a person says so."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest

from rootsd.core.errors import Exit
from support.terminal import Shell

pytestmark = [pytest.mark.needs("linux")]

CLEAN = ("confine", "--clean")


@pytest.fixture
def walls(rootsd_dir: Path) -> Path:
    return rootsd_dir / "state" / "confine"


def keep(walls: Path, name: str) -> Path:
    """Make what programs of a name keep: in both engines, and besides, the state of an agent."""
    for part in ("kept/folders/x/upper", "0/caches/x", "0/kept/x", "agents/claude", "0/changes"):
        (walls / name / part).mkdir(parents=True)
        (walls / name / part / "file").write_bytes(bytes(4096))
    (walls / name / "0/lock").write_text("1\n")
    return walls / name


def left_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("file")}


def test_what_is_kept_is_listed_and_stays_unless_somebody_agrees(
    walls: Path, shell: Shell
) -> None:
    folder = keep(walls, "claude")
    before = left_in(folder)
    done = shell.run(*CLEAN)
    assert done.status == Exit.REFUSED
    assert done.out.split("\t")[:2] == ["claude", str(3 * 4096)]
    assert "rootsd confine --clean --yes claude" in done.err
    assert left_in(folder) == before
    rehearsed = json.loads(shell.run(*CLEAN, "--yes", "--dry-run", "--json").out)
    assert (rehearsed["removed"], rehearsed["dry_run"]) == (["claude"], True)
    assert left_in(folder) == before
    answer = json.loads(shell.run(*CLEAN, "--yes", "--json").out)
    assert answer["removed"] == ["claude"]
    assert answer["items"][0]["folder"] == str(folder)
    assert left_in(folder) == {"agents/claude/file", "0/changes/file"}
    assert shell.run(*CLEAN).err == "Nothing is kept.\n"


def test_only_the_given_names_are_removed(walls: Path, shell: Shell) -> None:
    keep(walls, "a")
    other = keep(walls, "b")
    assert shell.run(*CLEAN, "--yes", "c").status == Exit.NOTHING_MATCHED
    assert shell.run(*CLEAN, "a", "--yes").err.startswith("error: put --yes before the names")
    assert shell.run(*CLEAN, "--yes", "a").status == Exit.OK
    assert len(left_in(other)) == 5
    assert len(left_in(walls / "a")) == 2


@pytest.mark.parametrize("lock", ["0/lock", "kept/in-use", "kept/door"])
def test_nothing_is_removed_while_a_program_of_the_name_runs(
    walls: Path, shell: Shell, lock: str
) -> None:
    folder = keep(walls, "a")
    keep(walls, "b")
    with (folder / lock).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        done = shell.run(*CLEAN, "--yes", "a")
        assert (done.status, done.out.split("\t")[3]) == (Exit.BUSY, "runs")
        assert shell.run(*CLEAN, "--yes").status == Exit.OK
    assert len(left_in(folder)) == 5
    assert len(left_in(walls / "b")) == 2


def test_no_link_is_followed(walls: Path, shell: Shell, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "folders").mkdir(parents=True)
    (mine / "folders" / "file").write_text("text")
    folder = keep(walls, "a")
    os.link(mine / "folders" / "file", folder / "kept/folders/hard")
    (folder / "kept/folders/soft").symlink_to(mine)
    (folder / "1").symlink_to(mine)
    (mine / "lock").symlink_to(mine / "folders" / "file")
    (walls / "linked").symlink_to(mine)
    (walls / "b").mkdir()
    (walls / "b" / "kept").symlink_to(mine)
    hidden = folder / "kept/folders/x/upper/hidden"
    (hidden / "deep").mkdir(parents=True)
    hidden.chmod(0)
    assert shell.run(*CLEAN, "--yes").status == Exit.OK
    assert not (folder / "kept/folders").exists()
    assert (mine / "folders" / "file").read_text() == "text"


@pytest.mark.needs("root")
def test_a_folder_that_cannot_be_removed_is_named(walls: Path, shell: Shell) -> None:
    place = keep(walls, "a") / "kept/folders/x"
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    try:
        done = shell.run(*CLEAN, "--yes")
        assert done.status == Exit.FAILED
        assert f"{walls}/a cannot be removed: another file system" in done.err
    finally:
        subprocess.run(["umount", place], check=True)
