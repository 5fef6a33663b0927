"""Files that tools run: git writes the tracked ones behind the wall as outside, and each change is
reported.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rootsd.cli.answers.changed_files import _diff, show_changed
from rootsd.cli.answers.invocation import Invocation
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.wall import ProtectionPolicy
from rootsd.places.base_folders import WALLS
from rootsd.wall.git import facts, tool_files
from rootsd.wall.git.facts import Fact, FactKind, find_facts
from rootsd.wall.git.kept_contents import keep_contents, kept_content
from rootsd.wall.git.left_behind import LeftBehindReport, SessionEnd
from rootsd.wall.git.left_behind_reports import (
    ToolFileChange,
    changed_files,
    conclude_killed,
    left_behind,
    read_reports,
    running_findings,
    running_reports,
)
from rootsd.wall.git.named_files import named_by_git
from rootsd.wall.git.protected import find_protected
from rootsd.wall.git.session_baseline import SessionBaseline
from rootsd.wall.git.taken_away import still_holds
from rootsd.wall.git.tool_files import fingerprint, tool_files_that_git_tracks, tool_names
from rootsd.wall.system_calls import closing, open_path
from support.polling import until
from support.repositories import git
from support.walls import Wall, root_at

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
        roots = [root_at(self.main)]
        folder = Path(os.fsdecode(bytes(self.state) + WALLS)) / "agent" / "0"
        wall = Wall(folder, self.home, roots, protection=protection, entries=entries)
        return self.stack.enter_context(wall)

    @property
    def walls(self) -> bytes:
        return bytes(self.state) + WALLS

    def end(self, wall: Wall) -> list[LeftBehindReport]:
        """End a wall, and return the reports."""
        wall.close()
        start = Path(os.fsdecode(self.walls)) / "agent" / "0" / "changes" / "start.json"
        until(lambda: not start.exists())
        return read_reports(self.walls)

    def changed(self, reports: list[LeftBehindReport]) -> dict[str, tuple[bytes | None, ...]]:
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
    for name in (".mcp.json", ".vscode/local.json"):
        assert wall.error_of(f"append('{world.main}/{name}')") == "EROFS", name
    assert wall.error_of(f"append_file('{world.main}/.git/config')") == "ELOOP"
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


def test_a_change_is_told_to_the_owner_of_the_wall_at_once_and_hooks_first(world: World) -> None:
    (world.main / ".git" / "hooks").rename(world.main / ".git" / "old")
    wall = world.wall()
    run(
        wall, world.main,
        # At once with its hook: nothing in a new folder is watched.
        "(echo 1 >> .envrc; echo 1 >> .husky/pre-commit; mkdir .git/new; echo > .git/new/x;"
        " chmod +x .git/new/x; mv .git/new .git/hooks)",
    )  # fmt: skip
    told: list[str] = []
    while len(told) < 3:
        told += [each for each in wall.next_changes() if each not in told]
    assert sorted(told) == ["main/.envrc", "main/.git/hooks/x", "main/.husky/pre-commit"]
    names = SessionBaseline.read(os.fsencode(world.state / "confine/agent/0"))
    assert names is not None
    assert names.names_of(names.found) == (
        "main/.git/hooks/x", "main/.husky/pre-commit", "main/.envrc",
    )  # fmt: skip
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
    assert " were changed while agent ran, or since it was killed: " in sentence


def test_status_tells_of_a_change_until_a_person_has_seen_it(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = world.wall()
    run(wall, world.main, "printf '\\033[2Jevil\\n' >> .envrc")
    world.end(wall)
    left_behind(world.walls).mark_seen()
    (sentence,) = left_behind(world.walls).sentences
    assert sentence == (
        f"agent changed files that tools outside run: {world.main}/.envrc; rootsd review --changed"
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


def test_a_look_at_changed_files_hides_nothing_else(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc; mkfifo .git/MERGE_MSG")
    world.end(wall)
    monkeypatch.setenv("ROOTSD_DIR", str(world.state.parent))
    show_changed(Invocation(), is_look=True)
    assert "MERGE_MSG is a FIFO" in capsys.readouterr().out
    assert left_behind(world.walls).sentences == []


def test_a_change_that_a_person_undid_is_told_no_more(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc")
    world.end(wall)
    git("checkout", ".envrc", cwd=world.main)
    assert left_behind(world.walls).sentences == []


# Hostile trees


def tool_facts(root: Path) -> dict[str, FactKind]:
    """Return the tool files that are found in a root, and what was not looked at."""
    kinds = (FactKind.TOOL_FILE, FactKind.UNREAD_TOOLS)
    found = find_facts(os.fsencode(root)).facts
    return {
        os.path.relpath(os.fsdecode(each.path), root): each.kind
        for each in found
        if each.kind in kinds
    }


def fingerprint_of(path: Path) -> bytes:
    with closing(open_path(os.fsencode(path.parent), os.O_DIRECTORY)) as folder:
        return fingerprint(folder, os.fsencode(path.name))


def test_a_fifo_in_place_of_a_changed_file_stops_nobody(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc; echo evil >> .husky/pre-commit")
    until(lambda: len(list(running_findings(world.walls))) == 2)
    run(wall, world.main, "rm .envrc; mkfifo .envrc")
    assert len(list(running_findings(world.walls))) == 1
    assert set(world.changed(world.end(wall))) == {".husky/pre-commit"}
    # Control: without the check, the FIFO could be opened.
    os.close(os.open(world.main / ".envrc", os.O_RDONLY | os.O_NONBLOCK))


def test_a_lease_does_not_keep_the_look_waiting_and_does_not_hide_a_change(world: World) -> None:
    path = world.main / ".envrc"
    before = fingerprint_of(path)
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        with pytest.raises(BlockingIOError):  # control: this would wait without O_NONBLOCK
            os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        held = fingerprint_of(path)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    assert held != before
    assert still_holds(Fact(FactKind.TOOL_FILE, bytes(path), held))
    assert not still_holds(Fact(FactKind.TOOL_FILE, bytes(path), b"file 1 another"))


def test_many_files_do_not_hide_a_change_and_are_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = world.wall()
    run(
        wall, world.main,
        "mkdir -p .amp .vscode/many; cd .amp; seq 1100 | xargs touch; cd ..",
        "echo evil >> .envrc; echo evil >> .husky/pre-commit",
    )  # fmt: skip
    reports = world.end(wall)
    assert {".envrc", ".husky/pre-commit"} <= world.changed(reports).keys()
    (sentence,) = (each for each in reports[0].sentences() if "could not look" in each)
    assert sentence == (
        f"rootsd could not look at everything that tools outside run in {world.main}/.amp, so it"
        " cannot tell what agent changed there"
    )
    wall = world.wall()  # it is told again: a program can change what nobody looks at
    assert [each.fact.kind for each in world.end(wall)[-1].findings] == [FactKind.UNREAD_TOOLS]
    monkeypatch.setattr(tool_files, "_MAX_ENTRIES", 2000)
    assert FactKind.UNREAD_TOOLS not in tool_facts(world.main).values()


def test_full_folders_leave_the_files_beside_them_to_be_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_files, "_MAX_FILES", 4)
    for number in range(9):
        world.write(f".amp/{number}", "")
    found = tool_facts(world.main)
    assert found[".envrc"] is found[".mcp.json"] is FactKind.TOOL_FILE
    assert found[".amp"] is found[".husky"] is found[".vscode"] is FactKind.UNREAD_TOOLS


def test_what_lies_too_deep_is_reported(world: World) -> None:
    deep = "d/" * 1500
    for top in (".vscode", ".git/modules"):
        subprocess.run(["mkdir", "-p", f"{top}/{deep}"], cwd=world.main, check=True)
    world.write(".vscode/" + "d/" * 20 + "tasks.json", "{}")
    git("add", "-A", cwd=world.main)
    found = tool_facts(world.main)
    tree = bytes(world.main)
    with closing(open_path(tree, os.O_DIRECTORY)) as root:
        named = named_by_git(tree)
        tools = tool_names(root, tree, named)
        tracked = tool_files_that_git_tracks(tree, tools, named)
        find_protected(root, tree, lambda _: False, tools, tracked)
    subprocess.run(["rm", "-rf", ".vscode", ".git/modules"], cwd=world.main, check=True)
    assert found[".vscode/" + "d/" * 20 + "tasks.json"] is FactKind.TOOL_FILE
    assert list(found.values()).count(FactKind.UNREAD_TOOLS) == 1


def test_a_large_file_that_keeps_its_size_is_reported(world: World) -> None:
    path = world.main / ".envrc"
    path.write_bytes(bytes(1 << 19))
    before = fingerprint_of(path)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    assert fingerprint_of(path) != before


UNLISTED = """
import os, sys
from rootsd.wall.git.tool_files import fingerprints
root = os.open(sys.argv[1], os.O_PATH)
print(sorted(dict(fingerprints(root, os.fsencode(sys.argv[1]))).items()))
"""


def test_a_folder_or_file_that_cannot_be_read_is_not_left_out(world: World) -> None:
    world.main.chmod(0o755)
    (world.main / ".husky").chmod(0o311)
    (world.main / ".envrc").chmod(0)
    world.write(".claude/settings.json", "{}")
    (world.main / ".claude").chmod(0o600)
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    words = [*drop, sys.executable, "-c", UNLISTED, str(world.main)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    assert "(b'.husky', None)" in shown
    assert "(b'.claude', None)" in shown
    assert "(b'.envrc', b'unread file 4 " in shown
    assert "(b'.mcp.json', b'file 5 " in shown  # control


def test_a_link_on_the_way_to_a_tool_file_does_not_hide_it(world: World) -> None:
    world.write(".claude/settings.json", "{}\n")
    world.commit("four")
    wall = world.wall()
    run(wall, world.main, "mv .claude c; echo evil >> c/settings.json; ln -s c .claude")
    assert set(world.changed(world.end(wall))) == {".claude", "c/settings.json"}


def test_git_writes_what_it_tracks_behind_a_link(world: World) -> None:
    world.write("agents/settings.json", "{}\n")
    (world.main / ".claude").symlink_to("agents")
    world.commit("four")
    world.write("agents/settings.local.json", "{}\n")
    wall = world.wall()
    folder = world.main / "agents"
    assert wall.error_of(f"append('{folder}/settings.json')") == ""
    assert wall.error_of(f"append('{folder}/settings.local.json')") == "EROFS"
    wall.close()


def test_links_that_lead_round_or_to_everything_end_the_look(world: World) -> None:
    for name, target in ((".amp", "."), (".codex", ".git"), (".qwen", ".zed"), (".zed", ".qwen")):
        (world.main / name).symlink_to(target)
    for number in range(30):
        (world.main / ".vscode" / f"l{number}").symlink_to("../.vscode")
    (world.main / ".exrc").symlink_to("..exrc")
    world.write("..exrc", "")
    found = tool_facts(world.main)
    assert found["."] is found[".git"] is FactKind.UNREAD_TOOLS
    assert {".amp", ".codex", ".qwen", ".zed", ".exrc", "..exrc"} <= found.keys()
    assert len(found) < 60


def test_what_the_settings_of_a_worktree_name_counts(world: World, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    world.write("tools/hooks/pre-commit", "")
    world.write("tools/settings", "")
    world.commit("four")
    git("worktree", "add", "--detach", tree, cwd=world.main)
    assert "tools/hooks/pre-commit" not in tool_facts(tree)
    git("config", "core.hooksPath", "tools/hooks", cwd=world.main)
    git("config", "include.path", str(tree / "tools/settings"), cwd=world.main)
    assert {"tools/hooks/pre-commit", "tools/settings"} <= tool_facts(tree).keys()


def test_the_tool_files_of_nested_checkouts_are_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = world.main / "nested"
    git("init", inner)
    wall = world.wall()
    run(wall, world.main, "echo evil > nested/.envrc")
    assert world.changed(world.end(wall)) == {"nested/.envrc": (None, b"evil\n")}
    monkeypatch.setattr(facts, "_MAX_NESTED_TOOL_FILES", 0)
    assert tool_facts(world.main)["."] is FactKind.UNREAD_TOOLS


def test_a_root_that_comes_back_with_its_first_content_has_not_changed(world: World) -> None:
    root = os.fsencode(world.main)
    record = SessionBaseline(os.fsencode(world.state / "confine/agent/0"))
    record.add([root])
    world.write(".envrc", "two\n")
    world.write(".mcp.json", "evil\n")
    record.drop([root])
    record.add([root])
    world.write(".envrc", "one\n")
    report = record.conclude(SessionEnd.ORDERLY)
    assert report is not None
    assert set(world.changed([report])) == {".mcp.json"}


def test_a_moved_root_is_compared_with_what_it_was(world: World) -> None:
    record = SessionBaseline(os.fsencode(world.state / "confine/agent/0"))
    record.add([os.fsencode(world.main)])
    world.write(".envrc", "two\n")
    world.main = world.main.rename(world.home / "moved")
    report = record.conclude(SessionEnd.ORDERLY)
    assert report is not None
    assert world.changed([report]) == {".envrc": (b"one\n", b"two\n")}


def test_content_that_changes_before_it_is_kept_is_not_kept(world: World) -> None:
    folder = os.fsencode(world.state / "confine/agent/0")
    path = world.main / ".envrc"
    fact = Fact(FactKind.TOOL_FILE, bytes(path), fingerprint_of(path))
    path.write_text("other\n")
    keep_contents(folder, [fact])
    assert kept_content(folder, fact) is None
    path.write_text("one\n")
    keep_contents(folder, [fact])
    assert kept_content(folder, fact) == b"one\n"


@pytest.mark.parametrize(
    ("before", "after", "is_new", "shown"),
    [
        (b"one\n", b"two\n", False, ["--- before", "+++ now", "@@ -1 +1 @@", "-one", "+two"]),
        (b"one\n", b"one\n", False, ["(only its mode or the ends of lines have changed)"]),
        (None, b"", True, ["(it is empty)"]),
        (b"one\n", None, False, ["(it is a link, or too large to show; look at it with ls -l)"]),
        (b"a\n" * 4000, b"b\n", False, ["-a"] * 4000 + ["+b"]),
    ],
)
def test_what_changed_is_shown(
    before: bytes | None, after: bytes | None, is_new: bool, shown: list[str]
) -> None:
    assert list(_diff(ToolFileChange(b"/p", "agent", before, after, is_new))) == shown


def test_a_file_of_which_nothing_was_kept_is_not_shown_as_new() -> None:
    lines = list(_diff(ToolFileChange(b"/p", "agent", None, b"two\n", is_new=False)))
    assert lines[0].startswith("(what was there before was a link, or was not kept")
    assert "--- /dev/null" not in lines


def test_many_parts_of_an_index_are_read_in_part_and_reported(world: World) -> None:
    git("update-index", "--split-index", cwd=world.main)
    own = world.main / ".git"
    (part,) = own.glob("sharedindex.*")
    unread = Fact(FactKind.UNREAD, bytes(own))
    assert unread not in find_facts(bytes(world.main)).facts
    for number in range(100):
        os.link(part, own / f"sharedindex.{number}")
    assert unread in find_facts(bytes(world.main)).facts


def test_another_session_cannot_make_a_report_go_away(world: World) -> None:
    wall = world.wall()
    run(wall, world.main, "echo evil >> .envrc")
    world.end(wall)
    wall = world.wall()
    run(wall, world.main, "git checkout -q .envrc")
    with (world.state / "confine/agent/0/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as `rootsd confine` holds it
        left_behind(world.walls).mark_seen()  # the person looks now, and there is nothing to see
    run(wall, world.main, "echo evil >> .envrc")
    world.end(wall)
    assert [each.partition(";")[0] for each in left_behind(world.walls).sentences] == [
        f"agent changed files that tools outside run: {world.main}/.envrc"
    ]
    git("checkout", ".envrc", cwd=world.main)
    left_behind(world.walls).mark_seen()  # control: no session runs
    assert read_reports(world.walls) == []


def test_new_folders_beside_tracked_files_survive_git_config_outside(world: World) -> None:
    world.write("local", "mine\n")
    wall = world.wall()
    run(wall, world.main, "mkdir .vscode/deep; echo t > .vscode/deep/tasks.json")
    run(wall, world.main, "git rm -rq --cached .husky")
    wall.run(f"os.chdir('{world.main}')")
    git("config", "core.hooksPath", "hooks", cwd=world.main)
    until(lambda: wall.error_of(f"append_file('{world.main}/.git/config')") == "ELOOP")
    assert "file" in wall.run("result = os.listdir('.')")
    git("config", "core.hooksPath", "local", cwd=world.main)
    until(lambda: wall.error_of("append('local')") == "EROFS")
    assert "file" in wall.run("result = os.listdir('.')")
    # Control: a new folder that git does not write is closed, and the working directory is lost.
    run(wall, world.main, "mkdir hooks; echo x > hooks/pre-commit")
    git("config", "core.hooksPath", "hooks", cwd=world.main)
    until(lambda: wall.error_of("os.listdir('.')") != "")
    wall.close()
