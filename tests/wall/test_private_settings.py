"""Programs change a private copy of git's settings, and only harmless changes reach the file."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.repositories import git, git_output, make_repository
from support.wall_world import WallWorld
from support.walls import Wall, Weakness, root_at

pytestmark = [pytest.mark.needs("wall")]

_ORIGIN = "https://example.org/team/main.git"
_NEW_REMOTE = "git remote add new https://example.net/x.git"
_UPSTREAM = "git config branch.new.remote origin; git config branch.new.merge refs/heads/new"


class World(WallWorld):
    """A repository with an origin as a root, and a file of the user outside of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        git("branch", "-M", "master", cwd=self.main)
        git("remote", "add", "origin", _ORIGIN, cwd=self.main)
        self.config = self.main / ".git" / "config"
        self.victim = self.home / "victim"
        self.victim.write_text("mine")
        self.before = self.config.read_bytes()

    def said(self, wall: Wall) -> list[str]:
        """End a wall, and return what its report says."""
        return [sentence for report in self.end(wall) for sentence in report.sentences()]

    def outside(self, key: str, file: Path | None = None) -> str:
        """Return what git outside reads."""
        words = ["git", "config", "--file", str(file or self.config), "--get-all", key]
        return subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def sh(wall: Wall, script: str, folder: Path) -> str:
    """Run a script inside, and return what it prints, with its exit status unless it is 0."""
    printed: str = wall.run(
        f"done = subprocess.run({script!r}, shell=True, cwd={str(folder)!r}, text=True,"
        " stdout=subprocess.PIPE, stderr=subprocess.STDOUT);"
        " result = done.stdout + str(done.returncode or '')"
    )
    return printed.strip()


def test_a_change_stays_inside_and_a_harmless_one_reaches_the_file(world: World) -> None:
    with world.wall() as wall:
        printed = sh(wall, f"git config core.pager less; {_NEW_REMOTE}; {_UPSTREAM}", world.main)
        assert printed == ""
        until(lambda: world.outside("branch.new.merge") == "refs/heads/new")  # while it runs
        assert sh(wall, "git config core.pager; git remote", world.main) == "less\nnew\norigin"
        until(lambda: "core.pager" in "".join(world.running_findings()))
        said = world.said(wall)
    assert world.config.read_bytes().startswith(world.before)
    assert world.outside("core.pager") == ""
    assert world.outside("remote.new.url") == "https://example.net/x.git"
    assert said == [
        f"settings of git in {world.main} stay behind the wall:"
        " core.pager; to keep one, set it outside"
    ]
    git("status", cwd=world.main)


def test_the_report_has_one_line_for_each_root_with_keys_and_no_values(world: World) -> None:
    sub = make_repository(world.home / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", sub, "lib", cwd=world.main)
    other = make_repository(world.home / "src" / "other")
    roots = root_at(world.main), root_at(other)
    with world.wall(*roots) as wall:
        for folder in (world.main, world.main / "lib", other):
            sh(wall, "git config http.extraHeader secret; git config a.b c", folder)
        sh(wall, "git config --unset-all a.b", other)
        lines = sorted(world.said(wall))
    assert len(lines) == 2
    assert "a.b, http.extraheader, a.b in .git/modules/lib/config, http.extra" in lines[0]
    assert lines[1].endswith(": http.extraheader; to keep one, set it outside")
    assert "secret" not in "".join(lines)


# What a program does to its copy or the file outside, so that rootsd cannot compare them.
_HIDES = {
    "nothing": ("true", "true"),
    "a copy that git cannot read": ("echo '[branch' > $(readlink .git/config)", "true"),
    "a large file": ("true", "yes '#' | head -c 300000 >> .git/config"),
}


@pytest.mark.parametrize("how", _HIDES)
def test_what_changed_outside_and_could_run_something_is_reported(world: World, how: str) -> None:
    # While the person replaces the file, programs can write to it, and nothing tells who did.
    inside, outside = _HIDES[how]
    with world.wall() as wall:
        sh(wall, inside, world.main)
        for key in ("user.note", "core.fsmonitor", "remote.origin.pushurl", "branch.x.remote"):
            git("config", key, "x", cwd=world.main)
        with world.config.open("a") as config:  # at once, as one half of an upstream is reported
            config.write('[branch "y"]\nremote = origin\nmerge = refs/heads/y\n')
        subprocess.run(["sh", "-c", outside], cwd=world.main, check=True)
        said = [each for each in world.said(wall) if "changed outside" in each]
    [names] = [each.split("moment: ")[1].split("; ")[0].split(", ") for each in said]
    harmful = {"branch.x.remote", "core.fsmonitor", "remote.origin.pushurl"}
    unread = "others that git could not read"
    assert (unread if how == "a large file" else harmful) in (harmful & set(names), *names)
    assert {"user.note", "branch.y.remote"}.isdisjoint(names)


# Commands that change settings. `{up}` is a repository beside the roots, which has a branch `up`.
_COMMANDS = (
    "git config user.name me",
    "git switch -q up",
    "git switch -q -c tracked --track origin/up",
    "git branch --set-upstream-to=origin/master first",
    "git pull -q",
    "git switch -q -c pushed && git -c push.autoSetupRemote=true push -q",
    "git switch -q -c second && git push -q -u origin second",
    "git switch -q master && git branch -q -D pushed",
    "git remote add more https://example.net/x.git",
    "git remote rename more less",
    "git fetch -q",
    "git -c protocol.file.allow=always submodule update -q --init",
    "git sparse-checkout set d0",
    "git status --short",
    "git sparse-checkout disable",
    "git worktree add -q .worktrees/x",
    "git worktree remove .worktrees/x",
    "git stash -q",
    "git gc -q",
    "git branch -m second third",
    "git remote set-head origin master",
)
_CARRIED = ("branch.up.", "branch.tracked.", "branch.first.", "branch.pushed.", "branch.second.",
            "branch.third.", "branch.master.", "remote.more.", "submodule.lib.active")  # fmt: skip


def test_commands_end_as_outside_and_leave_the_same_harmless_settings(tmp_path: Path) -> None:
    up = make_repository(tmp_path / "up", files=3)
    git("branch", "-M", "master", cwd=up)
    git("branch", "up", cwd=up)
    lib = make_repository(tmp_path / "lib")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", lib, "lib", cwd=up)
    git("commit", "-qm", "lib", cwd=up)
    git("clone", "-q", "--bare", up, tmp_path / "home" / "bare.git")
    found: dict[str, tuple[list[str], set[str]]] = {}
    for place in ("outside", "inside"):
        here = tmp_path / "home" / place / "main"
        git("clone", "-q", tmp_path / "home" / "bare.git", here)
        git("branch", "--no-track", "first", cwd=here)
        for key, value in ("user.name", "a"), ("user.email", "a@b"):
            git("config", key, value, cwd=here)
        root = root_at(here)
        bare = root_at(tmp_path / "home" / "bare.git")
        libs = root_at(lib, Access.READ)
        with Wall(tmp_path / place, tmp_path / "home", [root, bare, libs]) as wall:
            results = []
            for command in _COMMANDS:
                if place == "inside":
                    results.append(sh(wall, command, here))
                else:
                    done = subprocess.run(
                        ["sh", "-c", command], cwd=here, check=False, text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    )  # fmt: skip
                    results.append((done.stdout + str(done.returncode or "")).strip())
            wall.close()
            until(lambda: not (tmp_path / place / "changes" / "start.json").exists())  # noqa: B023
        listed = git_output("config", "--file", ".git/config", "--list", cwd=here).splitlines()
        found[place] = results, {each for each in listed if each.startswith(_CARRIED)}
        assert git_output("status", "--short", cwd=here) == ""
        assert git_output("-C", "lib", "log", "--format=%s", cwd=here) == "one"
        for branch in ("pushed", "second"):  # the other one must not have them already
            git("branch", "-D", branch, cwd=tmp_path / "home" / "bare.git")
    assert found["inside"] == found["outside"]
    assert "branch.tracked.merge=refs/heads/up" in found["inside"][1]
    assert not any(each.startswith("branch.pushed.") for each in found["inside"][1])


# Settings that run a program at `git status` or a push, or lead a push elsewhere.
_EVIL = (
    "core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.pager", "filter.x.clean",
    "diff.external", "credential.helper", "alias.status", "remote.origin.pushurl",
    "remote.origin.receivepack", "url.https://example.net/.insteadOf", "branch.new.pushRemote",
    "include.path", "submodule.lib.update", "remote.pushDefault", "core.worktree",
    "gpg.program", "extensions.worktreeConfig", "core.bare",
)  # fmt: skip


def plant(wall: Wall, world: World) -> None:
    for key in _EVIL:
        value = "true" if key in ("extensions.worktreeConfig", "core.bare") else "touch ../ran"
        line = ["git", "config", "--file", str(world.config), key, value]
        wall.run(f"subprocess.run({line!r}, check=True)")


def test_no_setting_that_runs_something_reaches_the_file(world: World) -> None:
    with world.wall() as wall:
        plant(wall, world)
        [said] = world.said(wall)
    assert world.config.read_bytes() == world.before
    for key in _EVIL:
        assert key.lower() in said.lower(), key
    git("status", cwd=world.main)
    assert not (world.main.parent / "ran").exists()


@pytest.mark.parametrize("weakness", [Weakness.CARRY_ALL, None])
def test_control_git_outside_runs_what_the_rules_refuse(
    world: World, weakness: Weakness | None
) -> None:
    with world.wall(weaknesses=[weakness] if weakness else []) as wall:
        sh(wall, f"git config core.fsmonitor 'touch {world.home}/ran; false'", world.main)
        world.said(wall)
    subprocess.run(["git", "status"], cwd=world.main, check=True, capture_output=True)
    assert (world.home / "ran").exists() is (weakness is not None)


# What a program puts in the place of the copy, whose folder it may change.
_INSTEAD_OF_A_COPY = {
    "a link to a file outside": "ln -s {victim} {copy}",
    "a link to the file": "ln -s {config} {copy}",
    "a FIFO": "mkfifo {copy}",
    "a folder": "mkdir {copy}",
    "a huge file": "truncate -s 60M {copy}",
    "a text that git cannot read": "printf '[branch' > {copy}",
    "a section that makes a long list": "python3 -c \"open('{copy}', 'w').write("
    "'[a \\\"' + 'x' * 90000 + '\\\"]\\n' + 'b\\n' * 80000)\"",
    "nothing": "true",
    "a link in the place of its folder": "d=$(dirname {copy}); mv $d $d.x; ln -s $PWD/.git $d",
    "another folder": "d=$(dirname {copy}); mv $d $d.x; mkdir $d; echo '[core' > {copy}",
    "a socket": "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('{copy}')\"",
}


@pytest.mark.parametrize("what", _INSTEAD_OF_A_COPY)
def test_what_is_in_the_place_of_a_copy_reaches_no_file(world: World, what: str) -> None:
    with world.wall() as wall:
        copy = sh(wall, "readlink .git/config", world.main)
        words = {"victim": world.victim, "copy": copy, "config": world.config}
        sh(wall, f"rm {copy}; {_INSTEAD_OF_A_COPY[what].format(**words)}", world.main)
        # The person goes on to work, and the root stays.
        git("config", "user.note", "outside", cwd=world.main)
        both = "readlink .git/config && git config user.note"
        until(lambda: sh(wall, both, world.main).endswith("\noutside"))
        sh(wall, _UPSTREAM, world.main)
        world.said(wall)
    assert world.victim.read_text() == "mine"
    assert world.outside("user.note") == "outside"
    assert world.outside("branch.new.remote") == "origin"


@pytest.mark.parametrize(
    "lock", ["ln -s {victim}", "mkfifo", "mkdir", "touch", "ln .git/HEAD", "ln -s config"]
)
def test_a_lock_in_the_git_directory_leads_nowhere_and_the_rest_is_reported(
    world: World, lock: str
) -> None:
    with world.wall() as wall:
        made = lock.format(victim=world.victim)
        assert sh(wall, f"{made} {world.config}.lock", world.main) == ""
        sh(wall, _UPSTREAM, world.main)
        said = world.said(wall)
    assert world.config.read_bytes() == world.before
    assert world.victim.read_text() == "mine"
    assert "branch.new.merge, branch.new.remote" in "".join(said)


# Replaces each lock in the git directory as soon as it is there.
_REPLACE_LOCKS = """
import os
while not os.path.exists(EVIL + '.end'):
    try:
        with open(EVIL, 'w') as file:
            file.write('[core]\\n\\tfsmonitor = evil\\n')
        if os.path.exists(LOCK):
            os.rename(EVIL, LOCK)
            os.unlink(LOCK)
    except OSError:
        pass
"""


@pytest.mark.parametrize("is_weak", [False, True])
def test_a_lock_that_a_program_replaces_never_becomes_the_settings(
    world: World, is_weak: bool
) -> None:
    """The control renames the lock, as git does."""
    evil, lock = world.main / ".git" / "evil", world.config.with_name("config.lock")
    script = f"EVIL, LOCK = {str(evil)!r}, {str(lock)!r}{_REPLACE_LOCKS}"
    if is_weak:
        script = script.replace("os.unlink(LOCK)", "pass")
    with world.wall() as wall:
        wall.run(f"loop = subprocess.Popen([sys.executable, '-c', {script!r}])")
        if is_weak:
            lock.touch()
            until(lambda: "evil" in lock.read_text())
            lock.rename(world.config)
        for number in range(0 if is_weak else 5):
            sh(wall, _UPSTREAM.replace("new", f"n{number}"), world.main)
            until(lambda: world.outside(f"branch.n{number}.merge"))  # noqa: B023
        wall.run(f"open('{evil}.end', 'w').close(); loop.wait()")
        world.said(wall)
    assert world.outside("core.fsmonitor") == ("evil" if is_weak else "")


@pytest.mark.parametrize("kind", ["a second name", "a link", "a large file"])
def test_a_file_outside_that_is_no_plain_file_is_not_changed(world: World, kind: str) -> None:
    """A backup with hard links would change with it."""
    other = world.main.parent / "other"
    match kind:
        case "a second name":
            os.link(world.config, other)
        case "a link":
            world.config.rename(other)
            world.config.symlink_to(other)
        case _:
            world.config.write_bytes(world.before + b"# " + b"x" * (300 << 10))
    before = world.config.read_bytes()
    with world.wall() as wall:
        sh(wall, _UPSTREAM, world.main)
        if kind == "a large file":
            assert wall.error_of(f"append('{world.config}')") == "EROFS"
        world.said(wall)
    assert world.config.read_bytes() == before


def test_a_change_outside_reaches_the_copy_and_what_differs_in_it_stays(world: World) -> None:
    with world.wall() as wall:
        wall.run(f"os.chdir('{world.main}')")
        sh(wall, "git config a.inside yes; git config --unset core.filemode", world.main)
        for number in range(3):
            git("config", "a.outside", str(number), cwd=world.main)
            both = "git config a.outside; git config a.inside"
            until(lambda: sh(wall, both, world.main) == f"{number}\nyes")  # noqa: B023
        wall.run("read('d0/f0')")  # the working directory is no other one
        assert sh(wall, "git config core.filemode", world.main) == "1"
        assert sh(wall, "git config --unset a.outside; git config a.outside", world.main) == "1"
        [said] = world.said(wall)
    assert world.outside("a.outside") == "2"
    assert "a.inside, a.outside, core.filemode;" in said


def test_a_change_in_place_by_an_editor_or_another_wall_reaches_the_copy(world: World) -> None:
    own = root_at(world.main)
    with world.wall() as wall, Wall(world.walls / "x" / "0", world.home, [own]) as other:
        sh(wall, "git config a.b kept", world.main)
        with world.config.open("a") as file:
            file.write("[user]\n\tnote = ")
            file.flush()
            file.write("edited\n")
        until(lambda: sh(wall, "git config user.note", world.main) == "edited")
        sh(other, _UPSTREAM, world.main)
        until(lambda: sh(wall, "git config branch.new.merge", world.main) == "refs/heads/new")
        assert sh(wall, "git config a.b", world.main) == "kept"
        sh(wall, "git branch new; git branch -D new", world.main)
        world.said(wall)
    assert world.outside("branch.new.remote") == ""
    assert world.outside("user.note") == "edited"


_TWENTY_BRANCHES = """
for n in $(seq 20); do
    until git config branch.n$n.remote origin; do :; done
    until git config branch.n$n.merge refs/heads/n$n; do :; done
done 2>/dev/null
"""


def test_two_writers_leave_settings_that_are_whole_and_the_person_loses_nothing(
    world: World,
) -> None:
    """A person and a program change settings all the time."""
    with world.wall() as wall:
        wall.run(f"os.chdir('{world.main}')")

        def write_outside() -> None:
            for number in range(20):
                words = ["git", "config", f"outside.n{number}", "1"]
                until(lambda: not subprocess.run(words, cwd=world.main, check=False).returncode)  # noqa: B023

        outside = Thread(target=write_outside)
        outside.start()
        sh(wall, _TWENTY_BRANCHES, world.main)
        outside.join()
        until(lambda: sh(wall, "readlink .git/config", world.main) != "1")
        sh(wall, _TWENTY_BRANCHES, world.main)  # what met a change outside may be lost
        until(lambda: sh(wall, "git config outside.n19", world.main) == "1")
        listed = sh(wall, "git config --get-regexp '^branch'", world.main).splitlines()
        wall.run("read('d0/f0')")  # the root was there all the time
        said = "".join(world.said(wall))
    assert len(listed) == 40
    for number in range(1, 21):
        assert world.outside(f"outside.n{number - 1}") == "1"
        is_carried = world.outside(f"branch.n{number}.merge") == f"refs/heads/n{number}"
        assert is_carried or f"branch.n{number}." in said
    git("status", cwd=world.main)


def test_an_upstream_of_an_existing_branch_stays_also_after_its_branch_was_deleted(
    world: World,
) -> None:
    git("remote", "add", "fork", "https://example.org/me/main.git", cwd=world.main)
    for key, value in ("remote", "origin"), ("merge", "refs/heads/master"):
        git("config", f"branch.master.{key}", value, cwd=world.main)
    with world.wall() as wall:
        sh(wall, "git switch -qc other; git branch -qD master", world.main)
        until(lambda: world.outside("branch.master.remote") == "")
        sh(wall, "git branch master; git config branch.master.remote fork", world.main)
        sh(wall, "git config branch.master.merge refs/heads/master; git config a.b c", world.main)
        until(lambda: "a.b" in "".join(world.running_findings()))
        [said] = world.said(wall)
    assert world.outside("branch.master.remote") == ""
    assert "branch.master.remote" in said


def test_a_new_remote_is_no_upstream_and_one_named_elsewhere_is_no_new_remote(
    world: World,
) -> None:
    (world.home / ".gitconfig").write_text("[remote]\n\tpushDefault = fork\n")
    with world.wall() as wall:
        sh(wall, f"{_NEW_REMOTE}; git remote add fork https://example.net/y.git", world.main)
        sh(wall, _UPSTREAM.replace("origin", "new"), world.main)
        [said] = world.said(wall)
    assert world.outside("remote.new.url") == "https://example.net/x.git"
    assert world.outside("branch.new.remote") == ""
    assert world.outside("remote.fork.url") == ""
    assert "branch.new.remote, remote.fork.fetch, remote.fork.url" in said


def test_a_remote_that_a_program_added_is_never_one_from_before_the_session(
    world: World,
) -> None:
    """Not even after the copy was removed and made again."""
    with world.wall() as wall:
        sh(wall, f"{_NEW_REMOTE}; git config a.b c", world.main)
        until(lambda: world.outside("remote.new.url") != "")
        sh(wall, "rm $(readlink .git/config)", world.main)
        for number in range(2):
            git("config", "user.note", str(number), cwd=world.main)
            note = "readlink .git/config >/dev/null && git config user.note"
            until(lambda: sh(wall, note, world.main) == str(number))  # noqa: B023
        wall.order(OrderKind.SET)
        wall.order(OrderKind.SET, root_at(world.main))
        sh(wall, _UPSTREAM.replace("origin", "new"), world.main)
        said = world.said(wall)
    assert "branch.new.merge, branch.new.remote" in "".join(said)
    assert world.outside("branch.new.remote") == ""


def test_many_changes_are_carried_over_part_by_part(world: World) -> None:
    for number in range(40):
        for key, value in ("remote", "origin"), ("merge", "refs/heads/x"):
            git("config", f"branch.b{number}.{key}", value, cwd=world.main)
    with world.wall() as wall:
        script = "for n in $(seq 0 39); do git config --remove-section branch.b$n; done"
        sh(wall, f"cp .git/config d0/c; {script}; sed -i /x/d d0/c", world.main)
        assert world.said(wall) == []
    assert "[branch" not in world.config.read_text()


def test_a_sparse_checkout_is_carried_over_without_settings_of_a_worktree(world: World) -> None:
    apart = world.main / ".git" / "config.worktree"
    with world.wall() as wall:
        assert sh(wall, "git sparse-checkout set d0", world.main) == ""
        until(lambda: world.outside("core.sparseCheckout") == "true")
        sh(wall, "git config --worktree core.fsmonitor evil", world.main)
        world.said(wall)
    assert world.outside("extensions.worktreeConfig") == ""
    assert not apart.exists()  # it had more than a sparse checkout, so it was moved away
    assert git_output("config", "core.sparseCheckoutCone", cwd=world.main) == "true"
    git("sparse-checkout", "disable", cwd=world.main)
    # Where a person has set worktrees apart, there is a copy of that file, too.
    before = apart.read_bytes()
    with world.wall() as wall:
        assert sh(wall, "git sparse-checkout set d0", world.main) == ""
        sh(wall, "git config --worktree core.fsmonitor evil", world.main)
        world.said(wall)
    assert world.outside("core.sparseCheckout", apart) == "true"
    assert world.outside("core.fsmonitor", apart) == ""
    assert before != apart.read_bytes()


def test_a_new_submodule_keeps_its_settings_unless_they_run_something(world: World) -> None:
    sub = make_repository(world.home / "src" / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "lib", cwd=world.main)
    git("commit", "-qm", "lib", cwd=world.main)
    roots = []
    for name in ("good", "evil"):
        clone = world.main.parent / name
        git("clone", "-q", world.main, clone)
        roots.append(root_at(clone))
    sources = (root_at(each, Access.READ) for each in (sub, world.main))
    with world.wall(*roots, *sources) as wall:
        for name in ("good", "evil"):
            said = sh(
                wall,
                "git -c protocol.file.allow=always submodule update -q --init",
                world.main.parent / name,
            )
            assert said == ""
        sh(wall, "git config core.fsmonitor evil", world.main.parent / "evil" / "lib")
        said = "".join(world.said(wall))
    good, evil = (world.main.parent / name for name in ("good", "evil"))
    assert git_output("-C", "lib", "log", "--format=%s", cwd=good) == "one"
    assert git_output("status", "--short", cwd=good) == ""
    assert (good / ".git/modules/lib/config").exists()
    assert not (evil / ".git/modules/lib/config").exists()
    assert f"{evil}/.git/modules/lib/config was new" in said
    assert f"{good}/.git/modules/lib/config" not in said


@pytest.mark.parametrize("where", ["../../../..", "/home", "../../../d0", "../../../link"])
def test_settings_of_a_new_submodule_that_lead_elsewhere_are_moved_away(
    world: World, where: str
) -> None:
    own = world.main / ".git" / "modules" / "lib"
    with world.wall() as wall:
        sh(wall, f"git init -q --bare {own}; ln -s .. link; git -C {own} config core.bare false;"
           f" git -C {own} config core.worktree {where}", world.main)  # fmt: skip
        assert wall.run(f"result = os.path.exists('{own}/config') and 'yes'") == "yes"
        world.said(wall)
    assert not (own / "config").exists()


def test_worktrees_and_submodules_change_the_copy_of_their_repository(world: World) -> None:
    sub = make_repository(world.home / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "lib", cwd=world.main)
    git("worktree", "add", "-q", "../tree", cwd=world.main)
    tree = world.main.parent / "tree"
    own = ConfinedRoot(os.fsencode(tree), Access.READ_WRITE, shared_git=os.fsencode(world.main))
    inner = world.main / ".git" / "modules" / "lib" / "config"
    known = inner.read_bytes()
    with world.wall(own) as wall:  # the checkout itself is not shown
        assert sh(wall, f"git config a.b 1; {_UPSTREAM}", tree) == ""
        assert sh(wall, "git config a.b", tree) == "1"
        until(lambda: world.outside("branch.new.merge") != "")
        wall.order(OrderKind.SET, own, root_at(world.main))
        assert sh(wall, "git config a.b 2; git config a.b", tree) == "2"
        assert sh(wall, "git config a.b", world.main) == "2"
        sh(wall, "git config a.c 1; git config branch.x.remote origin;"
                 " git config branch.x.merge refs/heads/x", world.main / "lib")  # fmt: skip
        world.said(wall)
    assert world.outside("a.b") == ""
    assert world.outside("branch.x.remote", inner) == "origin"
    assert world.outside("a.c", inner) == ""
    assert inner.read_bytes().startswith(known)


def test_a_root_that_comes_back_has_its_changes_but_another_repository_does_not(
    world: World,
) -> None:
    with world.wall() as wall:
        sh(wall, f"git config a.b 1; {_UPSTREAM}", world.main)
        wall.order(OrderKind.SET)
        until(lambda: world.outside("branch.new.merge") != "")
        wall.order(OrderKind.SET, root_at(world.main))
        assert sh(wall, "git config a.b", world.main) == "1"
        wall.order(OrderKind.SET)
        world.main.rename(world.main.parent / "moved")
        make_repository(world.main)
        wall.order(OrderKind.SET, root_at(world.main))
        assert sh(wall, "git config a.b", world.main) == "1"  # the exit status: it is not set


def test_a_read_only_root_and_one_without_protection_have_no_copy(world: World) -> None:
    with world.wall(root_at(world.main, Access.READ)) as wall:
        assert sh(wall, "readlink .git/config", world.main) == "1"
        assert wall.error_of(f"append('{world.config}')") == "EROFS"
    none = ProtectionPolicy.NONE
    with Wall(world.walls / "x" / "0", world.home, [root_at(world.main)], protection=none) as wall:
        sh(wall, "git config a.b c", world.main)
    assert world.outside("a.b") == "c"


def test_without_a_git_that_only_root_can_change_the_settings_are_read_only(world: World) -> None:
    with world.wall(weaknesses=[Weakness.NO_GIT]) as wall:
        assert wall.error_of(f"append('{world.config}')") == "EROFS"


def test_nothing_is_carried_over_by_a_wall_that_was_killed(world: World) -> None:
    with world.wall() as wall:
        os.kill(wall.warden_pid, signal.SIGSTOP)
        sh(wall, f"{_UPSTREAM}; git config core.fsmonitor evil", world.main)
        os.kill(wall.warden_pid, signal.SIGKILL)
    assert world.config.read_bytes() == world.before
