"""Where `.git` leads, and the stage of real and broken repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import GitDirs, find_git_dirs, git_dir_links_back, git_stage
from rootsd.vcs.origin import read_branch, read_origin
from rootsd.vcs.probe import probe
from rootsd.vcs.stages import Stage
from support.repositories import git, git_output, make_repository, raw


def _place(path: Path) -> GitDirs:
    place = find_git_dirs(raw(path))
    assert place is not None
    return place


def _stage(path: Path, kind: ProjectKind = ProjectKind.GIT) -> Stage | None:
    with OpenProject(raw(path)) as look:
        repository = look.git(kind)
        assert repository is not None
        return git_stage(repository)


def test_packed_detached_and_linked_heads_resolve(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("pack-refs", "--all", cwd=repository)
    assert _stage(repository) is None
    git("checkout", "--detach", cwd=repository)
    assert _stage(repository) is None
    (repository / ".git" / "HEAD").unlink()
    (repository / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert _stage(repository) is None


def test_a_repository_with_reftables_is_complete_once_it_lists_a_table(tmp_path: Path) -> None:
    """As git's reftable documentation lays it out: HEAD itself names no branch."""
    repository = make_repository(tmp_path / "one")
    data = repository / ".git"
    shutil.rmtree(data / "refs")
    (data / "refs").mkdir()
    (data / "refs" / "heads").write_text("this repository uses the reftable format\n")
    (data / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (data / "reftable").mkdir()
    (data / "reftable" / "tables.list").touch()
    assert _stage(repository) is not None
    (data / "reftable" / "tables.list").write_text("0x000000000001-0x000000000002-5f3.ref\n")
    assert _stage(repository) is None


def test_a_worktree_of_a_bare_repository_belongs_to_it(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    git("clone", "--bare", tmp_path / "up", tmp_path / "bare.git")
    git("worktree", "add", tmp_path / "tree", cwd=tmp_path / "bare.git")
    assert _place(tmp_path / "tree").main_checkout == raw(tmp_path / "bare.git")


def test_a_worktree_in_a_container_belongs_to_the_container(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    box, bare = tmp_path / "box", tmp_path / "box" / ".bare"
    git("clone", "--bare", tmp_path / "up", bare)
    git("worktree", "add", box / "tree", cwd=bare)
    assert _place(box / "tree").main_checkout == raw(bare)
    (box / ".git").write_text("gitdir: ./.bare\n")
    assert _place(box / "tree").main_checkout == raw(box)


def test_a_git_file_elsewhere_does_not_take_the_worktrees_of_a_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    bare, evil = tmp_path / "data" / "bare.git", tmp_path / "evil"
    git("clone", "--bare", tmp_path / "up", bare)
    git("worktree", "add", tmp_path / "tree", cwd=bare)
    evil.mkdir()
    (evil / ".git").write_text(f"gitdir: {bare}\n")
    assert _place(tmp_path / "tree").main_checkout == raw(bare)
    git("config", "core.worktree", evil, cwd=bare)  # only who can write the repository can do that
    assert _place(tmp_path / "tree").main_checkout == raw(evil)


def test_a_worktree_without_a_link_back_has_no_main_checkout(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    shutil.copytree(tmp_path / "tree", tmp_path / "impostor")
    assert _place(tmp_path / "impostor").main_checkout is None


def test_git_data_of_a_worktree_or_submodule_link_back(
    tmp_path: Path,
) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    git("submodule", "add", main, "sub", cwd=make_repository(tmp_path / "super"))
    for folder in (main, tmp_path / "tree", tmp_path / "super" / "sub"):
        assert git_dir_links_back(_place(folder))
    for claims, theirs in (
        ("impostor", main / ".git"),
        ("tree-impostor", main / ".git" / "worktrees" / "tree"),
        ("sub-impostor", tmp_path / "super" / ".git" / "modules" / "sub"),
    ):
        (tmp_path / claims).mkdir()
        (tmp_path / claims / ".git").write_text(f"gitdir: {theirs}\n")
        assert not git_dir_links_back(_place(tmp_path / claims))


def test_a_separate_git_dir_links_back_if_configured(tmp_path: Path) -> None:
    git("init", f"--separate-git-dir={tmp_path / 'data'}", tmp_path / "work")
    assert not git_dir_links_back(_place(tmp_path / "work"))
    git("config", "core.worktree", tmp_path / "work", cwd=tmp_path / "work")
    assert git_dir_links_back(_place(tmp_path / "work"))


@pytest.mark.needs("birth-times")
def test_a_separate_git_dir_links_back_to_the_files_in_its_index_only(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    git("clone", f"--separate-git-dir={tmp_path / 'data'}", tmp_path / "up", tmp_path / "work")
    shutil.copytree(tmp_path / "work", tmp_path / "evil")
    assert not git_dir_links_back(_place(tmp_path / "evil"))
    assert git_dir_links_back(_place(tmp_path / "work"))


def test_an_admin_folder_outside_the_main_repository_proves_nothing(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    evil = tmp_path / "evil"
    (evil / "admin").mkdir(parents=True)
    (evil / "admin" / "commondir").write_bytes(raw(main / ".git"))
    (evil / "admin" / "gitdir").write_bytes(raw(evil / ".git"))
    (evil / "admin" / "HEAD").write_text("ref: refs/heads/main\n")
    (evil / ".git").write_bytes(b"gitdir: " + raw(evil / "admin"))
    assert _place(evil).main_checkout is None


def test_a_submodule_is_recognized_by_the_place_of_its_data(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    main = make_repository(tmp_path / "main")
    git("submodule", "add", tmp_path / "up", "libs/up", cwd=main)
    assert _place(main / "libs" / "up").kind is ProjectKind.GIT_SUBMODULE
    assert _stage(main / "libs" / "up") is None


def test_a_separate_git_dir_makes_a_plain_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    separate = f"--separate-git-dir={tmp_path / 'data'}"
    git("clone", separate, tmp_path / "up", tmp_path / "one")
    assert _place(tmp_path / "one").kind is ProjectKind.GIT
    assert _stage(tmp_path / "one") is None


@pytest.mark.parametrize(
    "text",
    [b"", b"gitdir: /nowhere/at/all", b"garbage", b"gitdir: \0", b"gitdir: " + b"x" * 10_000],
)
def test_a_git_file_that_leads_nowhere_has_no_git_dirs(tmp_path: Path, text: bytes) -> None:
    (tmp_path / ".git").write_bytes(text)
    assert find_git_dirs(raw(tmp_path)) is None


def test_a_git_file_that_is_a_fifo_leads_nowhere(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert find_git_dirs(raw(tmp_path)) is None


def test_a_link_in_the_place_of_git_leads_where_it_ends_and_proves_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").symlink_to("way/.git")
    assert find_git_dirs(raw(tmp_path / "b")) is None
    (tmp_path / "b" / "way").symlink_to(repository)
    place = _place(tmp_path / "b")
    assert (place.folder, place.kind) == (raw(repository / ".git"), ProjectKind.GIT)
    assert not git_dir_links_back(place)
    assert _stage(tmp_path / "b") is None
    git("remote", "add", "origin", "https://example.org/secret", cwd=repository)
    assert read_branch(raw(repository), ProjectKind.GIT) == "main"
    assert read_origin(raw(tmp_path / "b"), ProjectKind.GIT) is None
    assert read_branch(raw(tmp_path / "b"), ProjectKind.GIT) is None


def test_a_link_to_the_entry_of_a_worktree_makes_no_second_worktree(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / ".git").symlink_to(main / ".git" / "worktrees" / "tree")
    assert _place(tmp_path / "evil").main_checkout is None
    assert _place(tmp_path / "tree").main_checkout == raw(main)


@pytest.mark.parametrize("moved", ["main", "tree", "both"])
def test_a_worktree_and_its_repository_find_each_other_through_a_later_link(
    tmp_path: Path, moved: str
) -> None:
    main = make_repository(tmp_path / "src" / "main")
    trees = tmp_path / ("src" if moved == "both" else "trees")
    git("worktree", "add", trees / "tree", cwd=main)
    (tmp_path / "data").mkdir()
    for folder in {"main": ("src",), "tree": ("trees",), "both": ("src",)}[moved]:
        (tmp_path / folder).rename(tmp_path / "data" / folder)
        (tmp_path / folder).symlink_to(tmp_path / "data" / folder)
    tree, main = (trees / "tree").resolve(), main.resolve()
    git("status", cwd=tree)
    assert _place(tree).main_checkout == raw(main)
    assert _stage(tree) is None


def test_fifos_in_a_repository_do_not_hang(tmp_path: Path) -> None:
    for name in ("HEAD", "config", "packed-refs", "index"):
        repository = make_repository(tmp_path / name)
        (repository / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(repository / ".git" / name)
        assert _stage(repository) is (Stage.NO_HEAD if name == "HEAD" else None)


@pytest.mark.parametrize("head", [b"ref: refs/../../etc", b"ref: /etc/passwd", b"ref: x\0y"])
def test_a_head_that_points_outside_does_not_resolve(tmp_path: Path, head: bytes) -> None:
    repository = make_repository(tmp_path / "one")
    (repository / ".git" / "HEAD").write_bytes(head)
    assert _stage(repository) is Stage.STAGED_UNBORN


def test_a_complete_repository_with_a_lock_is_in_use(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    (repository / ".git" / "index.lock").touch()
    assert _stage(repository) is Stage.IN_USE


def test_a_lock_without_an_index_is_a_checkout(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    (repository / ".git" / "index").rename(repository / ".git" / "index.lock")
    assert _stage(repository) is Stage.CHECKOUT_LOCKED
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    assert _stage(repository) is Stage.LOCKED


def test_files_without_an_index_and_nothing_checked_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "up")
    git("clone", "-n", repository, tmp_path / "one")
    assert _stage(tmp_path / "one") is Stage.NOT_CHECKED_OUT
    (tmp_path / "one" / "file").touch()
    assert _stage(tmp_path / "one") is Stage.FILES_BEFORE_INDEX


def test_a_pack_being_written_is_a_fetch(tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    pack = tmp_path / "one" / ".git" / "objects" / "pack"
    (pack / "tmp_pack_x").touch()
    assert _stage(tmp_path / "one") is Stage.FETCHING


def test_files_of_a_killed_fetch_do_not_make_an_old_repository_incomplete(
    tmp_path: Path,
) -> None:
    repository = make_repository(tmp_path / "one")
    pack = repository / ".git" / "objects" / "pack"
    (pack / "tmp_pack_x").touch()
    (pack / "pack-1.keep").write_bytes(b"fetch-pack 4194304 on " + os.uname().nodename.encode())
    assert _stage(repository) is None


@pytest.mark.parametrize("pid", [
    pytest.param(os.getpid(), id="a later process with the number"), 4_194_304, 10**30,
])  # fmt: skip
def test_a_pack_that_no_git_keeps_any_more_is_that_of_a_killed_fetch(
    tmp_path: Path, pid: int
) -> None:
    git("init", tmp_path / "one")
    _keep(tmp_path / "one", pid)
    assert _stage(tmp_path / "one") is Stage.KEPT_BY_DEAD
    git("clone", make_repository(tmp_path / "up"), tmp_path / "whole")
    _keep(tmp_path / "whole", pid)
    assert _stage(tmp_path / "whole") is None


@pytest.mark.needs("linux")
def test_a_pack_that_a_running_git_keeps_is_that_of_a_fetch(tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    command = ["git", "cat-file", "--batch"]
    with subprocess.Popen(command, cwd=tmp_path / "one", stdin=-1, stdout=-1) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"none\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"none missing\n"
        _keep(tmp_path / "one", running.pid)
        assert _stage(tmp_path / "one") is Stage.KEPT_BY_LIVE
        running.communicate()
    assert _stage(tmp_path / "one") is Stage.KEPT_BY_DEAD


def _keep(repository: Path, pid: int) -> None:
    keep = repository / ".git" / "objects" / "pack" / "pack-1.keep"
    keep.write_text(f"fetch-pack {pid} on {os.uname().nodename}")


def test_a_repository_without_commits_has_a_stage(tmp_path: Path) -> None:
    one = tmp_path / "one"
    git("init", one)
    assert _stage(one) is Stage.UNBORN
    git("config", "remote.origin.url", "file:///none", cwd=one)
    assert _stage(one) is Stage.CONNECTING
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*", cwd=one)
    assert _stage(one) is Stage.NEGOTIATING
    (one / "file").touch()
    assert _stage(one) is Stage.REMOTE_ALONE
    git("add", ".", cwd=one)
    assert _stage(one) is Stage.STAGED_UNBORN


def test_the_clone_of_an_empty_repository_is_complete(tmp_path: Path) -> None:
    git("init", tmp_path / "up")
    git("clone", tmp_path / "up", tmp_path / "one")
    assert _stage(tmp_path / "one") is None


def test_a_worktree_being_added_is_starting_until_it_has_its_index(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    entry = main / ".git" / "worktrees" / "tree"
    (entry / "locked").write_text("initializing")
    assert _stage(tmp_path / "tree") is Stage.IN_USE
    (entry / "index").unlink()
    assert _stage(tmp_path / "tree") is Stage.WORKTREE_STARTING


def test_a_worktree_that_a_person_locked_is_complete(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    reason = "initializing disks, keep this"
    git("worktree", "add", "--lock", "--reason", reason, tmp_path / "tree", cwd=main)
    assert _stage(tmp_path / "tree") is None


@pytest.mark.parametrize("branch", ["main", "none"])
def test_a_mirror_with_megabytes_of_packed_refs_is_complete(tmp_path: Path, branch: str) -> None:
    up, mirror = make_repository(tmp_path / "up"), tmp_path / "mirror.git"
    git("clone", "--mirror", up, mirror)
    packed = mirror / "packed-refs"
    ref = packed.read_bytes().splitlines()[-1]
    many = [ref.split()[0] + b" refs/changes/%06d/1" % number for number in range(95_000)]
    packed.write_bytes(b"\n".join([*many, ref, b""]))
    assert packed.stat().st_size > 5_800_000
    git("symbolic-ref", "HEAD", f"refs/heads/{branch}", cwd=mirror)
    expected = None if branch == "main" else Stage.HEAD_WITHOUT_BRANCH
    assert _stage(mirror, ProjectKind.GIT_BARE) is expected


def test_a_mirror_is_complete_even_if_its_head_names_no_branch(tmp_path: Path) -> None:
    up, mirror = make_repository(tmp_path / "up"), tmp_path / "mirror.git"
    git("symbolic-ref", "HEAD", "refs/heads/gone", cwd=up)
    git("clone", "--mirror", up.as_uri(), mirror)
    assert _stage(mirror, ProjectKind.GIT_BARE) is Stage.HEAD_WITHOUT_BRANCH
    seen = probe(raw(mirror))
    assert isinstance(seen, ProjectObserved)
    assert seen.incomplete is None


_NEW_WORKDIR = Path("/usr/share/doc/git/contrib/workdir/git-new-workdir")


@pytest.mark.skipif(not _NEW_WORKDIR.exists(), reason="git without its contributed scripts")
def test_a_workdir_that_borrows_objects_and_refs_by_links_is_complete(tmp_path: Path) -> None:
    up = make_repository(tmp_path / "up")
    git("pack-refs", "--all", cwd=up)
    subprocess.run(["sh", _NEW_WORKDIR, up, tmp_path / "dir"], check=True, capture_output=True)
    assert (tmp_path / "dir" / ".git" / "refs").is_symlink()
    assert _stage(tmp_path / "dir") is None
    copy = shutil.copytree(tmp_path / "dir", tmp_path / "copy", symlinks=True)
    seen = probe(raw(Path(copy)))
    assert isinstance(seen, ProjectObserved)
    assert seen.incomplete is None


def test_a_checkout_of_the_repo_tool_is_complete(tmp_path: Path) -> None:
    """As repo makes it: `.git` is a link to the project's repository, which borrows its objects
    from another one (project.py, `_InitGitDir` and `_InitGitWorktree`).
    """
    make_repository(tmp_path / "up")
    top = tmp_path / "aosp"
    store, data = top / ".repo" / "project-objects" / "x.git", top / ".repo" / "projects" / "x.git"
    git("clone", "--bare", tmp_path / "up", store)
    data.parent.mkdir()
    git("init", f"--separate-git-dir={data}", top / "x")
    (top / "x" / ".git").unlink()
    (top / "x" / ".git").symlink_to("../.repo/projects/x.git")
    for name in ("objects", "hooks"):
        shutil.rmtree(data / name)
        (data / name).symlink_to(f"../../project-objects/x.git/{name}")
    git("reset", "--hard", git_output("rev-parse", "HEAD", cwd=tmp_path / "up"), cwd=top / "x")
    git("pack-refs", "--all", cwd=top / "x")
    seen = probe(raw(top / "x"))
    assert isinstance(seen, ProjectObserved)
    assert (seen.kind, seen.incomplete) == (ProjectKind.GIT, None)
    assert seen.identity is not None
    assert seen.identity.git_target is not None


@pytest.mark.needs("git-annex")
def test_checkouts_of_git_annex_are_complete(tmp_path: Path) -> None:
    """It replaces the `.git` file of a submodule, a worktree, or a checkout by a link.

    It also removes the setting that names the submodule, which is then a repository of its own.
    """
    up = make_repository(tmp_path / "up")
    top, tree, apart = make_repository(tmp_path / "top"), tmp_path / "tree", tmp_path / "apart"
    git("submodule", "add", up, "sub", cwd=top)
    git("commit", "-m", "submodule", cwd=top)
    git("worktree", "add", tree, cwd=up)
    git("clone", f"--separate-git-dir={tmp_path / 'data'}", up, apart)
    kinds = {
        top / "sub": ProjectKind.GIT,
        tree: ProjectKind.GIT_WORKTREE,
        apart: ProjectKind.GIT,
    }
    for each, kind in kinds.items():
        git("annex", "init", cwd=each)
        assert (each / ".git").is_symlink()
        seen = probe(raw(each))
        assert isinstance(seen, ProjectObserved)
        assert (seen.kind, seen.incomplete) == (kind, None)
    assert _place(tree).main_checkout == raw(up)


@pytest.mark.parametrize("dead", ["container", "empty", "link"])
def test_a_dead_git_beside_a_project_file_leaves_a_project_folder(
    tmp_path: Path, dead: str
) -> None:
    match dead:
        case "container":
            (tmp_path / ".git").write_text("gitdir: /workspaces/none/.git/worktrees/one\n")
        case "empty":
            (tmp_path / ".git").mkdir()
        case _:
            (tmp_path / ".git").symlink_to("none")
    seen = probe(raw(tmp_path))
    assert isinstance(seen, ProjectObserved)
    assert seen.incomplete is not None
    (tmp_path / "pyproject.toml").touch()
    seen = probe(raw(tmp_path))
    assert isinstance(seen, ProjectObserved)
    assert (seen.kind, seen.incomplete) == (ProjectKind.PROJECT, None)
