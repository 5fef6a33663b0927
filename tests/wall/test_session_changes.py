"""What a session leaves in git directories is found at its end, and links are taken away."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rootsd.wall.git.facts import FactKind
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.left_behind_reports import conclude_killed, put_back
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.repositories import git, git_output, make_repository
from support.wall_world import WallWorld
from support.walls import Wall, root_at

pytestmark = [pytest.mark.needs("wall")]


class World(WallWorld):
    """A repository as a root, and a file of the user outside of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bashrc = self.home / ".bashrc"
        self.bashrc.write_text("# mine\n")

    def found(self) -> dict[str, bool]:
        """Return what the reports name, relative to the home, and whether it was removed."""
        return {
            os.path.relpath(os.fsdecode(each.fact.path), self.home / "src"): each.is_removed
            for report in self.reports()
            for each in report.findings
        }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def plant(wall: Wall, link: Path, target: Path | str) -> None:
    wall.run(
        f"os.path.lexists('{link}') and os.unlink('{link}'); os.symlink('{target}', '{link}')"
    )


def commit(repository: Path) -> None:
    git("commit", "--allow-empty", "-m", "outside", cwd=repository)


# What a program leaves, and whether it is taken away at the end (else, it is only reported).
_LINKS = {
    ".git/logs/HEAD": "{home}/.bashrc",
    ".git/FETCH_HEAD": "../../../.bashrc",
    ".git/COMMIT_EDITMSG": "config",
    ".git/MERGE_MSG": "modules/lib/config",
    ".git/objects/info/packs": "{home}/.bashrc",
    # A branch with the name of the objects.
    ".git/logs/refs/heads/objects/ab/x": "{home}/.bashrc",
    ".git/modules/lib/ORIG_HEAD": "{home}/.bashrc",
    ".git/worktrees/w/ORIG_HEAD": "{home}/.bashrc",
    "packages/nested/.git/ORIG_HEAD": "{home}/.bashrc",
    ".git/EARLIER": "{home}/.bashrc",  # which was a link to another file before
}
_ONLY_REPORTED = {
    "new/.git/FETCH_HEAD": "{home}/.bashrc",
    ".git/FIFO": None, ".git/HARD_LINK": None, ".git/description": None,
}  # fmt: skip
_HARMLESS = {".git/refs/heads/alias": "master", ".git/SQUASH_MSG": "modules/lib/HEAD"}


def test_new_links_out_of_git_directories_are_gone_at_the_end_and_the_rest_is_reported(
    world: World,
) -> None:
    make_repository(world.main / "packages" / "nested")
    sub = make_repository(world.home / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", sub, "lib", cwd=world.main)
    git("worktree", "add", world.main / ".worktrees" / "w", cwd=world.main)
    (world.main / ".git" / "EARLIER").symlink_to(world.home / "shared")
    # Checkouts of `repo` and git-new-workdir consist of links.
    workdir = world.main.parent / "workdir"
    git("init", "-q", workdir)
    for name in ("refs", "logs"):
        subprocess.run(["rm", "-rf", workdir / ".git" / name], check=True)
        (workdir / ".git" / name).symlink_to(world.main / ".git" / name)
    settings = (world.main / ".git" / "config").read_bytes()
    own, pack = f"{world.main}/.git", f"{world.main}/.git/objects/pack"
    with world.wall(world.main, workdir) as wall:
        wall.run(f"[os.makedirs(f'{world.main}/a{{n}}') for n in range(600)]")
        wall.run(f"subprocess.run(['git', 'init', '-q', '{world.main}/new'], check=True)")
        # A gitlink to a repository without programs.
        add = ["git", "-C", str(world.main), "add", "packages/nested"]
        wall.run(f"subprocess.run({add!r}, check=True)")
        wall.run(f"os.makedirs('{own}/logs/refs/heads/objects/ab')")
        for name, target in (_LINKS | _ONLY_REPORTED | _HARMLESS).items():
            if target is not None:
                plant(wall, world.main / name, target.format(home=world.home))
        wall.run(f"os.mkfifo('{own}/FIFO'); os.link('{own}/description', '{own}/HARD_LINK')")
        wall.run(f"open('{pack}/a', 'w').close(); os.link('{pack}/a', '{pack}/b')")
        world.end(wall)
    assert world.found() == {f"main/{name}": name in _LINKS for name in (*_LINKS, *_ONLY_REPORTED)}
    left = [name for name in _LINKS if (world.main / name).is_symlink()]
    assert left == [".git/EARLIER"]
    assert os.readlink(world.main / ".git" / "EARLIER") == str(world.home / "shared")
    for name in (".git/HARD_LINK", *_HARMLESS):
        assert os.path.lexists(world.main / name)
    assert (workdir / ".git" / "refs").is_symlink()
    commit(world.main)
    assert world.bashrc.read_text() == "# mine\n"
    assert (world.main / ".git" / "config").read_bytes() == settings


def test_without_the_end_of_the_session_a_commit_writes_through_the_link(world: World) -> None:
    """The control: what is left is harmful, and it is the report that takes it away."""
    with world.wall() as wall:
        plant(wall, world.main / ".git" / "logs" / "HEAD", world.bashrc)
        os.kill(wall.warden_pid, signal.SIGKILL)
        commit(world.main)
    assert "outside" in world.bashrc.read_text()


def test_links_in_the_included_git_directory_of_a_worktree_count(world: World) -> None:
    tree = world.home / "src" / "tree"
    git("worktree", "add", tree, cwd=world.main)
    shared = root_at(tree)._replace(shared_git=os.fsencode(world.main))
    with Wall(world.walls / "agent" / "0", world.home, [shared]) as wall:
        plant(wall, world.main / ".git" / "FETCH_HEAD", world.bashrc)
        world.end(wall)
    assert world.found() == {"main/.git/FETCH_HEAD": True}


def test_a_git_directory_that_becomes_a_link_is_only_reported(world: World) -> None:
    plain = world.home / "src" / "plain"
    plain.mkdir()
    with world.wall() as wall:
        wall.order(OrderKind.ADD, root_at(plain))
        plant(wall, plain / ".git", world.home / "other")
        world.end(wall)
    assert world.found() == {"plain/.git": False}
    assert (plain / ".git").is_symlink()


def test_undo_puts_the_links_back_but_none_where_git_has_made_a_file_since(world: World) -> None:
    other = world.main / ".git" / "ORIG_HEAD"
    with world.wall() as wall:
        plant(wall, world.main / ".git" / "FETCH_HEAD", world.bashrc)
        plant(wall, other, world.bashrc)
        world.end(wall)
    assert not other.is_symlink()
    (world.main / ".git" / "FETCH_HEAD").write_text("made by git")
    [report] = world.reports()
    assert [os.fsdecode(fact.path) for fact in put_back(report)] == [str(other)]
    assert os.readlink(other) == str(world.bashrc)
    assert (world.main / ".git" / "FETCH_HEAD").read_text() == "made by git"
    assert world.reports() == []


def test_a_link_in_a_moved_repository_is_found_and_one_in_a_new_git_directory_is_left(
    world: World,
) -> None:
    moved = world.main.parent / "moved"
    again = make_repository(world.main.parent / "again")
    (world.main / ".git" / "FETCH_HEAD").symlink_to(world.bashrc)  # an earlier one
    with world.wall(world.main, again) as wall:
        plant(wall, world.main / ".git" / "ORIG_HEAD", world.bashrc)
        world.main.rename(moved)
        (again / ".git").rename(again.parent / "old")
        git("init", "-q", cwd=again)
        (again / ".git" / "ORIG_HEAD").symlink_to(world.bashrc)
        wall.order(OrderKind.SET, root_at(again))
        world.end(wall)
    assert world.found() == {"moved/.git/ORIG_HEAD": True, "again/.git/ORIG_HEAD": False}
    assert not (moved / ".git" / "ORIG_HEAD").is_symlink()
    assert (again / ".git" / "ORIG_HEAD").is_symlink()


def test_links_in_a_repository_that_took_the_place_of_a_root_stay(world: World) -> None:
    """A person may make a checkout of links where the root was."""
    with world.wall() as wall:
        world.main.rename(world.main.parent / "moved")
        other = make_repository(world.main)
        (other / ".git" / "ORIG_HEAD").symlink_to(world.bashrc)
        wall.order(OrderKind.SET)
        world.end(wall)
    assert world.found() == {}
    assert (other / ".git" / "ORIG_HEAD").is_symlink()


# What git obeys in a git directory, and what a program writes there.
_OBEYED = {
    ".git/commondir": "../evil",
    ".git/config.worktree": "[core]\n\tfsmonitor = evil\n",
    ".git/info/attributes": "* filter=evil\n",
    ".git/info/grafts": "0\n",
    ".git/objects/info/alternates": "../evil\n",
    ".git/remotes/origin": "URL: evil\n",
    ".git/branches/other": "evil\n",
    ".git/hooks/pre-commit": "#!/bin/sh\n",
    ".git/worktrees/w/commondir": "../../../evil\n",
    ".git/worktrees/w/config.worktree": "[core]\n\tworktree = /evil\n",
    ".git/modules/lib/commondir": "../evil",
    ".git/modules/lib/hooks/post-checkout": "#!/bin/sh\n",
    "nested/.git/commondir": "../evil",
}


@pytest.fixture
def several(world: World) -> World:
    """The root has a nested repository, a submodule, and a worktree, all without hooks."""
    make_repository(world.main / "nested")
    sub = make_repository(world.home / "sub")
    git("-c", "protocol.file.allow=always", "submodule", "add", sub, "lib", cwd=world.main)
    git("worktree", "add", world.main / ".worktrees" / "w", cwd=world.main)
    for own in (".git", ".git/modules/lib"):
        for name in ("hooks", "branches"):  # these would be protected
            shutil.rmtree(world.main / own / name, ignore_errors=True)
    return world


def write(wall: Wall, path: Path, content: str) -> None:
    wall.run(
        f"os.makedirs('{path.parent}', exist_ok=True); open('{path}', 'w').write({content!r});"
        f" os.chmod('{path}', 0o755)"
    )


@pytest.mark.parametrize("how", ["protected", "no folder of hooks", "in a root seen before"])
def test_a_hook_that_only_a_person_can_have_made_stays(world: World, how: str) -> None:
    hook = world.main / ".git" / "hooks" / "pre-commit"
    roots = [world.main]
    if how == "no folder of hooks":
        shutil.rmtree(hook.parent)
    if how == "in a root seen before":  # its hooks were not protected as long as
        roots = [world.main.parent]
    with world.wall(*roots) as wall:
        if how == "in a root seen before":
            write(wall, hook, "#!/bin/sh")
            wall.order(OrderKind.ADD, root_at(world.main))
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh")
        hook.chmod(0o755)
        world.end(wall)
    assert hook.exists() is (how == "protected")
    assert world.found().get("main/.git/hooks/pre-commit", False) is not hook.exists()


def test_what_git_obeys_is_moved_away_and_undo_puts_it_back(several: World) -> None:
    world = several
    with world.wall() as wall:
        for name, content in _OBEYED.items():
            write(wall, world.main / name, content)
        wall.run(f"subprocess.run(['git', 'init', '-q', '{world.main}/new'], check=True)")
        world.end(wall)
    assert world.found() == {f"main/{name}": True for name in _OBEYED}
    assert [name for name in _OBEYED if (world.main / name).exists()] == []
    git("status", cwd=world.main)
    [report] = world.reports()
    said = "commondir was new, and git outside would have obeyed it, so rootsd moved it away"
    assert said in "".join(report.sentences())
    assert {os.fsdecode(fact.path) for fact in put_back(report)} == {
        str(world.main / name) for name in _OBEYED
    }
    for name, content in _OBEYED.items():
        assert (world.main / name).read_text() == content
    assert os.access(world.main / ".git" / "hooks" / "pre-commit", os.X_OK)
    assert world.reports() == []


def test_git_outside_reads_where_such_a_file_leads(world: World) -> None:
    """The control: what is moved away is harmful."""
    with world.wall() as wall:
        evil = f"{world.main}/evil"
        wall.run(f"subprocess.run(['git', 'init', '-q', '--bare', '{evil}'], check=True)")
        for name, value in ("core.bare", "false"), ("core.fsmonitor", f"touch {world.home}/ran"):
            words = ["git", "config", "-f", f"{evil}/config", name, value]
            wall.run(f"subprocess.run({words!r}, check=True)")
        write(wall, world.main / ".git" / "commondir", "../evil")
        os.kill(wall.warden_pid, signal.SIGKILL)
        subprocess.run(["git", "status"], cwd=world.main, check=False, capture_output=True)
    assert (world.home / "ran").exists()


def test_a_file_that_git_made_since_is_not_replaced_and_nothing_is_lost(world: World) -> None:
    attributes = world.main / ".git" / "info" / "attributes"
    with world.wall() as wall:
        write(wall, attributes, "of the program")
        world.end(wall)
    attributes.write_text("of a person")
    [report] = world.reports()
    assert put_back(report) == []
    assert attributes.read_text() == "of a person"
    [fact] = report.removed
    assert Path(os.fsdecode(report.place_of(fact))).read_text() == "of the program"


def test_settings_of_a_sparse_checkout_stay_and_an_unfinished_rebase_is_reported(
    world: World,
) -> None:
    config = world.main / ".git" / "config.worktree"
    todo = world.main / ".git" / "rebase-merge" / "git-rebase-todo"
    with world.wall() as wall:
        write(wall, config, "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n")
        write(wall, todo, "pick 1234 one\nexec touch /tmp/x\n")
        world.end(wall)
    assert config.exists()
    assert world.found() == {"main/.git/rebase-merge/git-rebase-todo": False}
    [report] = world.reports()
    assert "git outside runs touch /tmp/x if you continue there" in report.sentences()[0]


@pytest.mark.parametrize("name", ["rebase-merge/git-rebase-todo", "sequencer/opts"])
def test_commands_behind_the_beginning_of_a_file_are_reported(world: World, name: str) -> None:
    file = world.main / ".git" / name
    with world.wall() as wall:
        write(wall, file, "# \n" * (1 << 17) + "exec touch /tmp/x\n")
        world.end(wall)
    assert world.found() == {f"main/.git/{name}": False}


@pytest.mark.parametrize("strategy", ["x/evil", "recursive"])
def test_a_strategy_that_is_a_program_in_the_work_tree_is_reported(
    world: World, strategy: str
) -> None:
    # `git rebase --continue` and `git cherry-pick --continue` run `git-merge-STRATEGY`.
    opts = f"[options]\n\tstrategy = {strategy}\n"
    with world.wall() as wall:
        write(wall, world.main / ".git" / "rebase-merge" / "strategy", strategy + "\n")
        write(wall, world.main / ".git" / "sequencer" / "opts", opts)
        world.end(wall)
    assert len(world.found()) == (2 if "/" in strategy else 0)


# How a program makes a repository where git outside finds it before that of the root, if any.
_WITH_FILES = "git config core.worktree .; git config core.bare false"
_NEW_REPOSITORIES = {
    "in a root without one": ("plain", "git init -q ."),
    "in a folder that only looks like one": ("main/d0/in", "git init -q .; touch ../HEAD ../.git"),
    "a bare one in a folder": ("main/d0", f"git init -q --bare .; {_WITH_FILES}"),
    "a bare one of links": (
        "main/d0",
        f"git init -q --bare b; mv b/config b/HEAD .; ln -s b/objects b/refs .; {_WITH_FILES}",
    ),
    "one that is elsewhere in the root": (
        "plain", f"git init -q --bare x; echo gitdir: x > .git; {_WITH_FILES}; cd .."
        "; git config --file plain/x/config core.worktree ..; cd plain"
    ),
}  # fmt: skip


@pytest.mark.parametrize("has_program", [True, False])
@pytest.mark.parametrize("how", _NEW_REPOSITORIES)
def test_a_new_repository_whose_settings_run_something_is_reported(
    world: World, how: str, *, has_program: bool
) -> None:
    (world.main.parent / "plain").mkdir()
    (world.main / "d0" / "in").mkdir()
    where, script = _NEW_REPOSITORIES[how]
    ran, folder = world.home / "ran", world.main.parent / where
    if has_program:
        script += f"; git config core.fsmonitor 'touch {ran}; false'"
    with world.wall(world.main, world.main.parent / "plain") as wall:
        wall.run(f"subprocess.run(['sh', '-c', {script!r}], cwd={str(folder)!r}, check=True)")
        world.end(wall)
    assert (where in world.found()) is has_program
    subprocess.run(["git", "status"], cwd=folder, check=False, capture_output=True)
    assert ran.exists() is has_program  # git outside obeys it


def test_a_root_that_belongs_to_a_repository_elsewhere_since_the_session_is_reported(
    world: World,
) -> None:
    plain = world.main.parent / "plain"
    plain.mkdir()
    with world.wall(world.main, plain) as wall:
        write(wall, plain / ".git", f"gitdir: {world.main}/.git")
        world.end(wall)
    assert world.found() == {"plain": False}


@pytest.mark.parametrize("packed", ["", "; git pack-refs --all"])
def test_a_commit_that_is_replaced_is_reported(world: World, packed: str) -> None:
    script = "git replace HEAD $(git commit-tree -m other HEAD^{tree})" + packed
    with world.wall() as wall:
        wall.run(f"subprocess.run({script!r}, shell=True, cwd={str(world.main)!r}, check=True)")
        world.end(wall)
    assert git_output("log", "--format=%s", cwd=world.main) == "other"  # git outside obeys it
    assert f"main/.git/{'packed-refs' if packed else 'refs/replace'}" in world.found()


# What git outside does because of a path out of the checkout: it writes there, or copies it.
_INDEX = """
git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),PATH
python3 -c "import hashlib
data = open('.git/index', 'rb').read()[:-20].replace(b'PATH', b'NAME')
open('.git/index', 'wb').write(data + hashlib.sha1(data).digest())"
"""
_RERERE = """
mkdir -p .git/rr-cache/{id}; echo > .git/rr-cache/{id}/preimage
ln -s .. up; printf '{id}\\tNAME\\0' > .git/MERGE_RR
""".replace("{id}", "01" * 20)


@pytest.mark.parametrize("name", ["../v", "in/v"])
@pytest.mark.parametrize("how", ["index", "MERGE_RR"])
def test_a_path_that_leads_out_is_moved_away(world: World, how: str, name: str) -> None:
    (world.main / "in").mkdir()
    for victim in (world.main.parent / "v", world.main / "in" / "v"):
        victim.write_text("mine\n")
    script, reached = (_INDEX, "../v") if how == "index" else (_RERERE, "up/v")
    name = reached if name == "../v" else name
    script = script.replace("PATH", "x" * len(name)).replace("NAME", name)

    def effect() -> bool:
        for words in (["checkout", "."], ["commit", "--allow-empty", "-m", "x"]):
            subprocess.run(["git", *words], cwd=world.main, check=False, capture_output=True)
        copies = (world.main / ".git").glob("rr-cache/*/postimage")
        return "evil" in (world.main.parent / "v").read_text() or bool([*copies])

    with world.wall() as wall:
        wall.run(f"subprocess.run({script!r}, shell=True, cwd={str(world.main)!r}, check=True)")
        world.end(wall)
    is_bad = name == reached
    assert world.found() == ({f"main/.git/{how}": True} if is_bad else {})
    if is_bad:
        assert not effect()
        (world.main / ".git" / how).unlink(missing_ok=True)
        put_back(world.reports()[0])
        assert effect()  # the control: git outside obeys it


def test_many_findings_of_one_kind_hide_no_other(world: World) -> None:
    many = "for i in $(seq 300); do ln .git/HEAD .git/h$i; mkfifo .git/f$i; done"
    with world.wall() as wall:
        wall.run(f"subprocess.run({many!r}, shell=True, cwd={str(world.main)!r}, check=True)")
        plant(wall, world.main / ".git" / "logs" / "z", world.bashrc)
        until(lambda: len(world.running_findings()) > 0)
        assert len(world.running_findings()) < 60
        world.end(wall)
    [report] = world.reports()
    sentences = report.sentences()
    assert len(sentences) < 60
    assert "285 more of this kind: hard link" in sentences  # .git/HEAD is one of them
    assert any("logs/z was a link" in each for each in sentences)


def test_a_report_names_all_walls_that_ran_at_the_same_time(world: World) -> None:
    own = world.main / ".git"

    def other(name: str) -> Wall:
        return Wall(world.walls / name / "0", world.home, [root_at(world.main)])

    def end(wall: Wall, name: str) -> None:
        wall.close()
        until(lambda: not (world.walls / name / "0" / "changes" / "start.json").exists())

    with other("before") as before:
        end(before, "before")
    with world.wall() as wall, other("beside") as beside:
        plant(beside, own / "ORIG_HEAD", world.bashrc)
        until(lambda: world.running_findings() != [])
        [sentence] = world.running_findings()
        assert " or " in sentence
        assert ", which ran there at the same time: " in sentence
        with other("short") as short:
            end(short, "short")
        world.end(wall)
        [report] = world.reports()
        assert "left by agent or beside or short, which ran" in report.sentences()[0]
        end(beside, "beside")
    assert len(world.reports()) == 1  # the other one found nothing any more
    elsewhere = make_repository(world.home / "src" / "elsewhere")
    with (
        world.wall() as wall,
        Wall(world.walls / "x" / "0", world.home, [root_at(elsewhere)]) as x,
    ):
        plant(wall, own / "ORIG_HEAD", world.bashrc)
        world.end(wall)
        end(x, "x")
    assert "left by agent: " in world.reports()[1].sentences()[0]


def test_a_link_in_a_root_that_was_taken_away_is_found(world: World) -> None:
    head = world.main / ".git" / "ORIG_HEAD"
    with world.wall() as wall:
        plant(wall, head, world.bashrc)
        wall.order(OrderKind.SET)
        wall.order(OrderKind.SET, root_at(world.main))  # now it would be an earlier one
        world.end(wall)
    assert world.found() == {"main/.git/ORIG_HEAD": True}
    assert not head.is_symlink()


def test_what_a_program_leaves_is_known_while_it_runs(world: World) -> None:
    def finds(text: str) -> bool:
        return text in "".join(world.running_findings())

    with world.wall() as wall:
        plant(wall, world.main / ".git" / "ORIG_HEAD", world.bashrc)
        until(lambda: finds("main/.git/ORIG_HEAD is a link to"))
        config = world.main / ".git" / "config.worktree"
        write(wall, config, "[core]\n\tfsmonitor = evil\n")
        until(lambda: finds("config.worktree is new"))
        lock = os.open(world.walls / "agent" / "0" / "lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)  # as the warden of `rootsd confine` holds it
        assert conclude_killed(bytes(world.walls)) == []
        os.close(lock)


def test_a_killed_session_is_reported_later_and_nothing_is_removed(world: World) -> None:
    head = world.main / ".git" / "ORIG_HEAD"
    with world.wall() as wall:
        plant(wall, head, world.bashrc)
        os.kill(wall.warden_pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{wall.warden_pid}").exists())
    [report] = conclude_killed(bytes(world.walls))
    assert report.end is SessionEnd.KILLED
    assert world.found() == {"main/.git/ORIG_HEAD": False}
    assert head.is_symlink()


def test_a_repository_in_the_index_whose_settings_name_programs_is_reported(world: World) -> None:
    lib = world.main / "vendor" / "lib"
    program = f"touch {world.home}/ran; false"
    with world.wall() as wall:
        for line in (
            f"git init -q {lib}",
            f"git -C {lib} -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
            f"git -C {lib} config core.fsmonitor {program!r}",
            f"git -C {world.main} add vendor/lib",
        ):
            wall.run(f"subprocess.run({line!r}, shell=True, check=True)")
        world.end(wall)
    assert world.found() == {"main/vendor/lib": False}
    [report] = world.reports()
    assert "core.fsmonitor = touch" in report.sentences()[0]
    with world.wall() as wall:  # the next session did not make it
        world.end(wall)
    assert len(world.reports()) == 1
    # The control: the report is about something real.
    (world.home / "ran").unlink(missing_ok=True)
    git("status", cwd=world.main)
    assert (world.home / "ran").exists()


def test_what_a_link_leads_to_is_never_moved(several: World) -> None:
    """A program can make a folder of the git directory a link to any folder of the user."""
    world = several
    files = [world.home / name for name in ("bin/tool", "bin/attributes", "bin/commondir")]
    files[0].parent.mkdir()
    for file in files:
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    links = ("hooks", "remotes", "info", "worktrees", "branches")
    with world.wall() as wall:
        for name in links:
            wall.run(
                f"subprocess.run(['mv', '{world.main}/.git/{name}', '{world.main}/old-{name}'],"
                " capture_output=True)"
            )
            wall.error_of(f"os.symlink('{world.home}/bin', '{world.main}/.git/{name}')")
        world.end(wall)
    assert all(file.exists() for file in files)
    assert all(not (world.main / ".git" / name).is_symlink() for name in links)
    moved = [each for report in world.reports() for each in report.removed]
    assert {fact.kind for fact in moved} == {FactKind.LINK}
    assert set(world.found().values()) == {True}  # nothing is told about what was behind a link


def test_what_cannot_be_moved_away_does_not_change_where_the_rest_is(world: World) -> None:
    own = world.main / ".git"
    files = {own / "commondir": "first", own / "info" / "grafts": "second"}
    shutil.rmtree(own / "branches", ignore_errors=True)
    with world.wall() as wall:
        wall.error_of(f"os.symlink('{world.home}', '{own}/branches')")
        (world.home / "before").touch()
        for file, content in files.items():
            write(wall, file, content)
        world.end(wall)
    [report] = world.reports()
    put_back(report)
    assert [file.read_text() for file in files] == [*files.values()]


def test_a_worktree_that_was_seen_while_git_made_it_stays(world: World) -> None:
    records = world.main / ".git" / "worktrees"
    git("worktree", "add", "-q", world.home / "src" / "other", cwd=world.main)
    with world.wall() as wall:
        # As git leaves it for a moment: there, but empty.
        wall.run(f"os.mkdir('{records}/new'); open('{records}/new/commondir', 'w').close()")
        wall.run(f"os.rename('{records}/new', '{records}/x')")
        until(lambda: "x/commondir" in "".join(world.running_findings()))
        wall.run(f"with open('{records}/x/commondir', 'w') as file: file.write('../..\\n')")
        world.end(wall)
    assert world.found() == {}
    assert (records / "x" / "commondir").exists()
