"""Files that tools run: git writes the tracked ones behind the wall as outside, and each change is
reported.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rootsd.cli.answers.changed_files import show_changed
from rootsd.cli.answers.invocation import Invocation
from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.git.session_reports import (
    WALLS,
    SessionReport,
    changed_files,
    conclude_killed,
    left_behind,
    read_reports,
    running_findings,
    running_reports,
)
from support.polling import until
from support.repositories import git
from support.walls import Wall

pytestmark = [pytest.mark.needs("wall")]

# The same commands outside and inside. Each prints its status, and at the end, what is there.
DAY = """
    git switch -q other
    git switch -q main
    echo mine >> .envrc
    git stash -q
    git stash pop -q
    git checkout -q .envrc
    git merge -q --no-edit other
    git reset -q --hard HEAD~1
    git rebase -q other
    git reset -q --hard main@{3}
    git checkout -q other -- .envrc
    git commit -q -m mine
    git pull -q --no-rebase . other
    git cherry-pick other~1
    git revert --no-edit HEAD
""".strip().splitlines()
SHOW = """
    git status --short; git branch --show-current; git log --format=%s
    find . -path ./.git -prune -o -type f -print | sort | xargs tail -n +1
"""


class World:
    """A checkout with tracked and untracked tool files, and another branch that changes them."""

    def __init__(self, folder: Path) -> None:
        self.stack = ExitStack()
        self.state = folder / "state"
        self.home = folder / "home"
        self.main = self.home / "src" / "main"
        git("init", "-b", "main", self.main)
        self.write(".envrc", "one\n")
        self.write(".husky/pre-commit", "hook one\n")
        self.write(".vscode/settings.json", "{}\n")
        self.write("file", "text\n")
        self.commit("one")
        git("switch", "-c", "other", cwd=self.main)
        self.write(".envrc", "two\n")
        self.write(".husky/post-merge", "hook two\n")
        self.commit("two")
        git("rm", "-r", ".vscode", cwd=self.main)
        self.commit("three")
        git("switch", "main", cwd=self.main)
        self.write(".mcp.json", "mine\n")
        self.write(".vscode/local.json", "mine\n")

    def write(self, name: str, text: str) -> None:
        path = self.main / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    def commit(self, message: str) -> None:
        git("add", ".", cwd=self.main)
        git("commit", "-m", message, cwd=self.main)

    def wall(
        self,
        protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED,
        entries: tuple[ViewEntry, ...] = (),
    ) -> Wall:
        roots = [ConfinedRoot(os.fsencode(self.main), Access.READ_WRITE)]
        folder = Path(os.fsdecode(bytes(self.state) + WALLS)) / "agent" / "0"
        wall = Wall(folder, self.home, roots, protection=protection, entries=entries)
        return self.stack.enter_context(wall)

    @property
    def walls(self) -> bytes:
        return bytes(self.state) + WALLS

    def end(self, wall: Wall) -> list[SessionReport]:
        """End a wall, and return the reports."""
        wall.close()
        start = Path(os.fsdecode(self.walls)) / "agent" / "0" / "changes" / "start.json"
        until(lambda: not start.exists())
        return read_reports(self.walls)

    def changed(self, reports: list[SessionReport]) -> dict[str, tuple[bytes | None, ...]]:
        """Return the contents before and now of the changed files, by their names."""
        return {
            os.path.relpath(os.fsdecode(each.path), self.main): (each.before, each.after)
            for report in reports
            for each in changed_files(report)
        }


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.stack:
        yield world


def run(wall: Wall, folder: Path, *commands: str) -> str:
    """Run commands of a shell behind the wall, and return what they printed."""
    script = "\n".join(commands)
    words = f"['sh', '-c', {script!r}], cwd={str(folder)!r}, capture_output=True, text=True"
    said: str = wall.run(f"result = subprocess.run({words}).stdout")
    return said


def day(folder: Path) -> str:
    return "\n".join([*(f"{each}; echo $?" for each in DAY), SHOW])


def test_git_does_behind_the_wall_what_it_does_outside(world: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(world.main, copy, symlinks=True)
    words = ["sh", "-c", day(copy)]
    outside = subprocess.run(words, cwd=copy, capture_output=True, text=True, check=False).stdout
    wall = world.wall()
    assert run(wall, world.main, day(world.main)).strip() == outside.strip()
    wall.close()


def test_control_with_all_files_read_only_git_leaves_the_old_content(world: World) -> None:
    wall = world.wall(ProtectionPolicy.ALL)
    said = run(wall, world.main, "git switch -q other; echo $?; cat .envrc")
    assert said.split() == ["0", "one"]
    wall.close()


def test_untracked_files_and_those_of_git_itself_stay_read_only(world: World) -> None:
    wall = world.wall()
    for name in (".mcp.json", ".vscode/local.json", ".git/config"):
        assert wall.error_of(f"append('{world.main}/{name}')") == "EROFS", name
    for name in (".envrc", ".husky/pre-commit", ".vscode/settings.json"):
        assert wall.error_of(f"append('{world.main}/{name}')") == "", name
    assert wall.error_of(f"make('{world.main}/.git/hooks/pre-commit')") == "EROFS"
    wall.close()


def test_a_tracked_link_does_not_open_the_untracked_file_to_which_it_leads(world: World) -> None:
    (world.main / "tools").mkdir()
    (world.main / "tools" / "env").write_text("untracked\n")
    (world.main / ".envrc").unlink()
    (world.main / ".envrc").symlink_to("tools/env")
    git("add", ".envrc", cwd=world.main)
    wall = world.wall()
    assert wall.error_of(f"append('{world.main}/tools/env')") == "EROFS"
    wall.close()
    git("add", "tools", cwd=world.main)
    wall = world.wall()
    run(wall, world.main, "echo more >> tools/env")
    assert set(world.changed(world.end(wall))) == {"tools/env"}


def test_the_folder_that_hooks_path_names_is_read_only_unless_git_tracks_it(world: World) -> None:
    git("config", "core.hooksPath", "tools/hooks", cwd=world.main)
    world.write("tools/hooks/pre-commit", "mine\n")
    wall = world.wall()
    assert wall.error_of(f"append('{world.main}/tools/hooks/pre-commit')") == "EROFS"
    wall.close()
    git("add", "tools", cwd=world.main)
    wall = world.wall()
    run(wall, world.main, "echo more >> tools/hooks/pre-commit")
    assert set(world.changed(world.end(wall))) == {"tools/hooks/pre-commit"}


def test_a_file_that_a_person_names_is_writable(world: World) -> None:
    named = ViewEntry(bytes(world.main / ".mcp.json"), ViewEntryKind.WRITE, "--write")
    wall = world.wall(entries=(named,))
    run(wall, world.main, "echo more >> .mcp.json")
    assert set(world.changed(world.end(wall))) == {".mcp.json"}


def test_each_change_is_reported_with_both_contents(world: World) -> None:
    wall = world.wall()
    run(
        wall, world.main,
        "echo evil >> .envrc; chmod +x .husky/pre-commit; mkdir .vscode/deep",
        "echo new > .vscode/deep/tasks.json; ln -s /bin/sh .tool-versions",
    )  # fmt: skip
    assert world.changed(world.end(wall)) == {
        ".envrc": (b"one\n", b"one\nevil\n"),
        ".husky/pre-commit": (b"hook one\n", b"hook one\n"),
        ".vscode/deep/tasks.json": (None, b"new\n"),
        ".tool-versions": (None, None),
    }


def test_a_session_that_changes_nothing_reports_nothing(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "git switch -q other; git switch -q main; echo x >> file")
    assert world.end(wall) == []
    assert not any((Path(os.fsdecode(world.walls)) / "agent/0/changes/contents").iterdir())


def test_a_program_cannot_hide_a_change_in_the_index_or_behind_its_times(world: World) -> None:
    wall = world.wall()
    run(
        wall, world.main,
        "git update-index --assume-unchanged .envrc; git rm -q --cached .husky/pre-commit",
        "touch -r .envrc t; printf 'eno\\n' > .envrc; touch -r t .envrc",
        "echo x > .husky/pre-commit",
    )  # fmt: skip
    assert set(world.changed(world.end(wall))) == {".envrc", ".husky/pre-commit"}


def test_a_change_is_told_while_the_session_runs(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "mkdir .vscode/deep; echo 1 >> .envrc")
    until(lambda: any(".envrc" in each for each in running_findings(world.walls)))
    run(wall, world.main, "echo 2 >> .envrc; echo t > .vscode/deep/tasks.json")
    until(lambda: len(list(running_findings(world.walls))) == 2)
    assert set(world.changed(list(running_reports(world.walls)))) == {
        ".envrc", ".vscode/deep/tasks.json",
    }  # fmt: skip
    wall.close()


def test_a_killed_session_is_reported(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc")
    os.kill(wall.warden_pid, signal.SIGKILL)
    wall.close()
    until(lambda: conclude_killed(world.walls) or read_reports(world.walls))
    (report,) = read_reports(world.walls)
    assert world.changed([report]) == {".envrc": (b"one\n", b"one\nevil\n")}
    (sentence,) = report.sentences()
    assert sentence.startswith("changed while agent ran, or since it was killed")


def test_status_tells_of_a_change_until_a_person_has_seen_it(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = world.wall()
    run(wall, world.main, "printf '\\033[2Jevil\\n' >> .envrc")
    world.end(wall)
    left_behind(world.walls).mark_seen()
    (sentence,) = left_behind(world.walls).sentences
    assert sentence == (
        f"changed by agent and run outside: {world.main}/.envrc; rootsd review --changed"
    )
    monkeypatch.setenv("ROOTSD_DIR", str(world.state.parent))
    show_changed(Invocation(), is_look=False)
    show_changed(Invocation(), is_look=True)
    shown = capsys.readouterr().out.splitlines()
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert "+\\u{1b}[2Jevil" in shown
    assert left_behind(world.walls).sentences == []
    show_changed(Invocation(), is_look=True)
    assert capsys.readouterr().out == ""


def test_a_change_that_a_person_undid_is_told_no_more(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc")
    world.end(wall)
    git("checkout", ".envrc", cwd=world.main)
    assert left_behind(world.walls).sentences == []
