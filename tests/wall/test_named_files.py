"""What git's settings and hooks name cannot be changed behind the wall, in any layout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.git import named_files, system_git
from rootsd.wall.git.facts import FactKind, find_facts
from rootsd.wall.git.left_behind import LeftBehindReport
from rootsd.wall.git.left_behind_reports import conclude_killed, read_reports
from rootsd.wall.git.named_files import named_by_git
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.repositories import git, make_repository
from support.walls import Wall, root_at

pytestmark = [pytest.mark.needs("wall")]

COMMIT, STATUS = "git commit -q --allow-empty -m x", "git status"
ADD = "echo x > x.txt; git add x.txt"
DIFF = "echo x >> d0/f0; git diff"


class Layout(NamedTuple):
    """A repository in which git, when it does `run`, runs or obeys the file `victim`.

    `make` are commands of a shell in the repository, and `$H` is the home folder.
    """

    make: str
    victim: str
    run: str = COMMIT
    has_settings: bool = False


SHELL = r"""
set -e
script() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\n' > "$1"; chmod +x "$1"; }
sourcing() { script "$1"; echo "$2" >> "$1"; }
of_user() {
    printf '[includeIf "gitdir:%s/"]\n\tpath = %s\n' "$PWD" "$H/user-$N" >> "$H/.gitconfig"
    git config --file "$H/user-$N" "$@"
}
attributes() { echo "$1" > .git/info/attributes; }
"""
LAYOUTS = {
    "a folder in the tree": Layout(
        "git config core.hooksPath h; script h/pre-commit", "h/pre-commit"
    ),
    "an absolute folder": Layout(
        'git config core.hooksPath "$PWD/h"; script h/pre-commit', "h/pre-commit"
    ),
    "a folder from the home": Layout(
        'git config core.hooksPath "~/src/$N/h"; script h/pre-commit', "h/pre-commit"
    ),
    "a folder in another root": Layout(
        'git config core.hooksPath ../other/h; script "$H/src/other/h/pre-commit"',
        "../other/h/pre-commit",
    ),
    "a folder that is a link": Layout(
        "git config core.hooksPath h; ln -s g h; script g/pre-commit", "g/pre-commit"
    ),
    "a link outside that leads back": Layout(
        'git config core.hooksPath "$H/link-$N"; ln -s "$PWD/g" "$H/link-$N"; script g/pre-commit',
        "g/pre-commit",
    ),
    "the tree itself": Layout('git config core.hooksPath "$PWD"; script pre-commit', "pre-commit"),
    "husky 4": Layout(
        "sourcing .git/hooks/pre-commit '. .git/hooks/husky.sh'; script .git/hooks/husky.sh",
        ".git/hooks/husky.sh",
    ),
    "husky 8": Layout(
        "git config core.hooksPath .husky; script .husky/_/husky.sh;"
        " sourcing .husky/pre-commit '. .husky/_/husky.sh'; git add .husky/pre-commit",
        ".husky/_/husky.sh",
    ),
    "husky 9": Layout(
        "git config core.hooksPath .husky/_; script .husky/_/h; sourcing .husky/_/pre-commit"
        " '. .husky/_/h'; script .husky/pre-commit; git add .husky/pre-commit",
        ".husky/_/h",
    ),
    "lefthook": Layout("script .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    "pre-commit": Layout(
        "sourcing .git/hooks/pre-commit 'sh .pre-commit-config.yaml';"
        " script .pre-commit-config.yaml",
        ".pre-commit-config.yaml",
    ),
    "hooks are a link": Layout(
        "rm -r .git/hooks; ln -s ../tools/h .git/hooks; script tools/h/pre-commit",
        "tools/h/pre-commit",
    ),
    "a hook is a link": Layout(
        "script tools/x; ln -s ../../tools/x .git/hooks/pre-commit", "tools/x"
    ),
    "a hook is a link to a link": Layout(
        'script tools/x; ln -s "$PWD/tools/x" y; ln -s ../../y .git/hooks/pre-commit', "tools/x"
    ),
    "a hook is a link to another root": Layout(
        'script "$H/src/other/x"; ln -s "$H/src/other/x" .git/hooks/pre-commit', "../other/x"
    ),
    "a link in the folder of hooks": Layout(
        "git config core.hooksPath h; mkdir h; script x; ln -s ../x h/pre-commit", "x"
    ),
    "templates": Layout(
        "git config init.templateDir t; script t/hooks/pre-commit",
        "t/hooks/pre-commit",
        'n=$(mktemp -d); git init -q --template "$PWD/t" "$n"; cd "$n"; ' + COMMIT,
    ),
    "settings of a worktree": Layout(
        "git config extensions.worktreeConfig true; git config --worktree core.hooksPath h;"
        " script h/pre-commit",
        "h/pre-commit",
    ),
    "settings of a submodule": Layout(
        'git submodule -q add "$H/sub" lib; git -C lib config core.hooksPath h;'
        " script lib/h/pre-commit",
        "lib/h/pre-commit",
        "cd lib; " + COMMIT,
    ),
    "a hook of a submodule": Layout(
        'git submodule -q add "$H/sub" lib; script lib/x;'
        ' ln -s "$PWD/lib/x" .git/modules/lib/hooks/pre-commit',
        "lib/x",
        "cd lib; " + COMMIT,
    ),
    "included settings": Layout(
        "git config include.path ../shared; touch shared", "shared", STATUS, has_settings=True
    ),
    "settings included by branch": Layout(
        "git config includeIf.onbranch:main.path ../shared; touch shared",
        "shared", STATUS, has_settings=True,
    ),
    "settings included twice": Layout(
        'git config include.path "$H/inc-$N"; git config --file "$H/inc-$N" include.path'
        ' "$PWD/shared"; touch shared',
        "shared", STATUS, has_settings=True,
    ),
    "settings of the user for a folder": Layout(
        "of_user core.hooksPath h; script h/pre-commit", "h/pre-commit"
    ),
    "settings of the user, in a submodule": Layout(
        'git submodule -q add "$H/sub" lib; cd lib; of_user core.hooksPath h; cd ..;'
        ' sed -i "s|$PWD/lib/|$PWD/.git/modules/lib|" "$H/.gitconfig"; script lib/h/pre-commit',
        "lib/h/pre-commit",
        "cd lib; " + COMMIT,
    ),
    "an alias with a second word": Layout(
        "git config alias.x '!sh tools/x'; script tools/x", "tools/x", "git x"
    ),
    "a second word without a slash": Layout(
        "git config alias.x '!sh x.sh'; script x.sh", "x.sh", "git x"
    ),
    "a quoted word": Layout(
        """git config core.fsmonitor '"tools/my hook" x'; script 'tools/my hook'""",
        "tools/my hook", STATUS,
    ),
    "a word with an escape": Layout(
        r"git config core.fsmonitor 'tools/my\ hook'; script 'tools/my hook'",
        "tools/my hook", STATUS,
    ),
    "a script for sh -c": Layout(
        """git config filter.f.clean "sh -c 'cd . && tools/x; cat'"; script tools/x;"""
        " attributes '*.txt filter=f'",
        "tools/x", ADD,
    ),
    "variables before a command": Layout(
        "git config diff.external 'A=1 B=2 ./tools/x'; script tools/x", "tools/x", DIFF
    ),
    "a variable in a path": Layout(
        "git config diff.d.textconv 'sh \"$PWD/tools/x\"'; script tools/x;"
        " attributes '* diff=d'",
        "tools/x", DIFF,
    ),
    "a command in a path": Layout(
        "git config alias.x '!$(git rev-parse --show-toplevel)/tools/x'; script tools/x",
        "tools/x", "git x",
    ),
    "an option with a path": Layout(
        "git config core.editor 'env --split-string=tools/x'; script tools/x",
        "tools/x", "git commit -q --allow-empty",
    ),
    "a merge driver": Layout(
        "git config merge.m.driver 'tools/x %A'; script tools/x; attributes '* merge=m';"
        " git switch -q -c o; echo o > d0/f0; git commit -q -a -m o; git switch -q main;"
        " echo m > d0/f0; git commit -q -a -m m",
        "tools/x", "git merge --no-commit o; git merge --abort",
    ),
    "a program for signatures": Layout(
        'git config gpg.program "$PWD/tools/x"; script tools/x', "tools/x", COMMIT + " -S"
    ),
    "a helper for passwords": Layout(
        "git config credential.helper '!tools/x'; script tools/x",
        "tools/x", "echo url=https://example.org | git credential fill",
    ),
    "a command for ssh": Layout(
        "git config core.sshCommand 'sh -e tools/x'; script tools/x",
        "tools/x", "git ls-remote ssh://example.org/x",
    ),
    "a remote that is a command": Layout(
        "git config remote.r.url 'ext::sh tools/x'; git config protocol.ext.allow always;"
        " script tools/x",
        "tools/x", "git ls-remote r",
    ),
}  # fmt: skip


class World:
    """A repository for each layout, all of them roots, and a folder for marks of what git ran."""

    def __init__(self, folder: Path) -> None:
        self.walls = folder / "walls"
        self.home = folder / "home"
        self.places = self.home / "src"
        self.marks = folder / "marks"
        self.marks.mkdir()
        (self.home / ".gitconfig").parent.mkdir()
        (self.home / ".gitconfig").touch()
        self.base = make_repository(self.home / "sub")
        make_repository(self.places / "other")

    def make(self, names: list[str]) -> None:
        for number, name in enumerate(names):
            tree = self.places / f"n{number}"
            shutil.copytree(self.base, tree)
            self.shell(tree, SHELL + LAYOUTS[name].make)

    def shell(self, folder: Path, commands: str) -> None:
        env = {**os.environ, "HOME": str(self.home), "H": str(self.home), "N": folder.name}
        env["GIT_CONFIG_GLOBAL"] = str(self.home / ".gitconfig")
        done = subprocess.run(
            ["bash", "-c", commands], cwd=folder, env=env, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not commands.startswith(SHELL) or done.returncode == 0, (commands, done)

    def wall(self, protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED) -> Wall:
        places = sorted(self.places.iterdir())
        return Wall(
            self.walls / "agent" / "0", self.home, [root_at(each) for each in places],
            protection=protection,
        )  # fmt: skip

    def attack(self, wall: Wall, names: list[str]) -> dict[str, str]:
        """Overwrite the victims from inside, and return the errors."""
        errors = {}
        for number, name in enumerate(names):
            mark = self.marks / str(number)
            text = f"#!/bin/sh\n: > '{mark}'\n"
            if LAYOUTS[name].has_settings:
                text = f"[core]\nfsmonitor = \": > '{mark}'; false\"\n"
            victim = self.places / f"n{number}" / LAYOUTS[name].victim
            errors[name] = wall.error_of(f"open({str(victim)!r}, 'w').write({text!r})")
            if not errors[name]:
                continue
            moved = wall.error_of(f"os.rename({str(victim)!r}, {str(victim) + '-moved'!r})")
            errors[name] = errors[name] if moved else "it can be moved"
        return errors

    def ran(self, names: list[str]) -> set[str]:
        """Run git outside, and return the layouts in which that ran what was written."""
        for number, name in enumerate(names):
            self.shell(self.places / f"n{number}", LAYOUTS[name].run)
        return {names[int(mark.name)] for mark in self.marks.iterdir()}

    def end(self, wall: Wall) -> list[LeftBehindReport]:
        wall.close()
        until(lambda: not (self.walls / "agent" / "0" / "changes" / "start.json").exists())
        return self.reports()

    def reports(self) -> list[LeftBehindReport]:
        return read_reports(os.fsencode(self.walls))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(world.home / ".gitconfig"))
    monkeypatch.setenv("HOME", str(world.home))
    return world


def test_no_program_changes_what_git_outside_runs_in_any_layout(world: World) -> None:
    names = [*LAYOUTS]
    world.make(names)
    with world.wall() as wall:
        assert world.attack(wall, names) == dict.fromkeys(names, "EROFS")
        world.end(wall)
    assert world.ran(names) == set()
    # Control: without protection, each attack succeeds.
    with world.wall(ProtectionPolicy.NONE) as wall:
        assert world.attack(wall, names) == dict.fromkeys(names, "")
        world.end(wall)
    assert world.ran(names) == set(names)


TRACKED = {
    "a folder in the tree": "git add h",
    "hooks are a link": "git add tools",
    "a hook is a link": "git add tools",
    "a second word without a slash": "git add x.sh",
    "settings of a submodule": "git -C lib add h",
}


def test_a_tracked_one_is_writable_and_is_reported_before_other_tool_files(world: World) -> None:
    names = [*TRACKED]
    world.make(names)
    for number, name in enumerate(names):
        world.shell(world.places / f"n{number}", "set -e; echo > .envrc; git add .envrc")
        world.shell(world.places / f"n{number}", TRACKED[name])
    with world.wall() as wall:
        assert world.attack(wall, names) == dict.fromkeys(names, "")
        wall.run(f"open('{world.places}/n0/.envrc', 'w').write('x')")
        [report] = world.end(wall)
    paths = [os.fsdecode(each.fact.path) for each in report.findings]
    victims = {f"{world.places}/n{n}/{LAYOUTS[name].victim}" for n, name in enumerate(names)}
    assert set(paths[:-1]) == victims
    assert paths[-1] == f"{world.places}/n0/.envrc"


def test_a_root_that_appears_later_protects_what_it_names_in_another(world: World) -> None:
    names = ["a folder in another root"]
    world.make(names)
    other, late = world.places / "other", world.places / "n0"
    with Wall(world.walls / "agent" / "0", world.home, [root_at(other)]) as wall:
        append = f"append('{other}/h/pre-commit')"
        assert wall.error_of(append) == ""  # the control
        wall.order(OrderKind.ADD, root_at(late))
        assert wall.error_of(append) == "EROFS"
        wall.order(OrderKind.REMOVE, paths=[late])
        git("config", "core.hooksPath", "../other", cwd=late)
        (other / "pre-push").touch()
        assert wall.error_of(f"append('{other}/pre-push')") == ""  # the control
        wall.order(OrderKind.ADD, root_at(late))
        assert wall.error_of(f"append('{other}/pre-push')") == "EROFS"
        world.end(wall)


def test_what_settings_name_from_now_on_is_protected(world: World) -> None:
    world.make(["a folder in the tree"])
    tree = world.places / "n0"
    world.shell(tree, "mkdir t; echo > t/x")
    with world.wall() as wall:
        assert wall.error_of(f"append('{tree}/t/x')") == ""  # the control
        git("config", "core.editor", "vi -S t/x", cwd=tree)
        until(lambda: wall.error_of(f"append('{tree}/t/x')") == "EROFS")
        world.end(wall)


def test_the_question_runs_nothing_of_the_repository(world: World) -> None:
    tree = make_repository(world.places / "n0")
    mark = world.marks / "0"
    for key in (
        "core.fsmonitor", "core.pager", "pager.config", "alias.config", "core.editor",
        "core.sshCommand", "credential.helper", "core.alternateRefsCommand", "core.askPass",
    ):  # fmt: skip
        git(
            "config",
            key,
            f"!: > '{mark}'" if key.startswith("alias") else f": > '{mark}'",
            cwd=tree,
        )
    (tree / "git").write_text(f"#!/bin/sh\n: > '{mark}'\n")
    (tree / "git").chmod(0o755)
    assert named_by_git(bytes(tree)).is_complete
    assert not mark.exists()
    world.shell(tree, STATUS)  # the control
    assert mark.exists()


def test_an_include_that_never_ends_is_reported_and_asked_for_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_git, "_TIMEOUT_S", 0.05)
    questions = 0

    def count(directory: bytes) -> bytes | None:
        nonlocal questions
        questions += 1
        return run_git(directory)

    run_git = named_files._run_git
    monkeypatch.setattr(named_files, "_run_git", count)
    tree = make_repository(world.places / "n0")
    git("config", "core.hooksPath", "h", cwd=tree)
    git("config", "include.path", "../later", cwd=tree)
    assert named_by_git(bytes(tree)).is_complete  # the control
    os.mkfifo(tree / "later")
    for _ in range(3):
        found = named_by_git(bytes(tree))
        (tree / "later").touch()
    assert not found.is_complete
    assert bytes(tree / "h") in found.paths
    assert questions == 2
    kinds = {each.path: each.kind for each in find_facts(bytes(tree)).facts}
    assert kinds[bytes(tree / ".git")] is FactKind.UNREAD_TOOLS


def test_a_file_whose_name_is_a_word_of_a_usual_setting_stays_writable(world: World) -> None:
    tree = make_repository(world.places / "n0")
    settings = {
        "core.autocrlf": "input", "alias.st": "status -s", "credential.helper": "cache",
        "core.editor": "vim", "branch.main.merge": "refs/heads/main",
        "alias.undo": "!git reset HEAD~1; cat .git/HEAD && git log HEAD refs/heads/main",
    }  # fmt: skip
    for key, value in settings.items():
        git("config", key, value, cwd=tree)
    words = {"input", "status", "vim", "src/main", "main", "reset", "cat", "log"}
    (tree / "src").mkdir()
    (tree / "cache").mkdir()
    for word in words:
        (tree / word).touch()
    found = named_by_git(bytes(tree))
    named = {os.path.relpath(os.fsdecode(path), tree) for path in found.words}
    assert not named & words
    assert {path for path in named if path.startswith(".git/")} == set()
    with world.wall() as wall:
        assert wall.error_of(f"make('{tree}/cache/x')") == ""
        world.end(wall)


def test_a_killed_session_is_reported_by_a_process_that_cannot_ask_git(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.make(["a folder in the tree"])
    tree = world.places / "n0"
    world.shell(tree, "git add h")
    with world.wall() as wall:
        os.kill(wall.warden_pid, signal.SIGSTOP)  # it notices nothing
        wall.run(f"open('{tree}/h/post-merge', 'w').write('evil')")
        os.kill(wall.warden_pid, signal.SIGKILL)
    monkeypatch.setattr(named_files, "_run_git", lambda _: None)
    until(lambda: conclude_killed(os.fsencode(world.walls)) or world.reports())
    [report] = world.reports()
    assert [each.fact.path for each in report.findings] == [bytes(tree / "h" / "post-merge")]


def test_the_settings_of_the_checkout_around_a_root_count(world: World) -> None:
    main = make_repository(world.places / "main", files=2)
    inner, other = main / "d0", main / "d1"
    (inner / "pre-commit").touch()
    git("config", "core.hooksPath", "d0", cwd=main)
    git("config", "core.editor", "vi -S d0/f0", cwd=main)
    with Wall(world.walls / "agent" / "0", world.home, [root_at(inner), root_at(other)]) as wall:
        for name in ("pre-commit", "f0"):
            assert wall.error_of(f"append('{inner}/{name}')") == "EROFS"
        assert wall.error_of(f"append('{other}/f1')") == ""  # the control
        wall.run(f"open('{inner}/post-commit', 'w').close()")
        [report] = world.end(wall)
    assert [each.fact.path for each in report.findings] == [bytes(inner / "post-commit")]
