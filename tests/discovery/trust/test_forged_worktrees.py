"""No forged worktree is published to a client, and a real one is.

Each forgery runs twice. With the conditions of `rootsd.core.decide` it publishes nothing. The
control is the same forgery without the conditions: a live one publishes its folder then, so the
conditions are the reason that it fails. Beside that, git makes a real worktree in the same village
after the approval, and that is told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rootsd.core import decide, plan, transition
from rootsd.core.model import Identity
from support.exploring import World, open_world, world
from support.forging import OldFolders, Village
from support.repos import git, make_repository, raw

__all__ = ["open_world", "world"]

pytestmark = pytest.mark.needs("linux")

Act = Callable[[Village], Path]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> OldFolders:
    return OldFolders(tmp_path_factory.mktemp("beforehand"), 200)


@pytest.fixture
def village(world: World, old: OldFolders) -> Village:
    return Village(world, old)


@pytest.fixture
def no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each worktree inherit whose repository links back, as version 0.1.0 did."""
    monkeypatch.setattr(decide, "_permanent_blocker", lambda *_: None)
    monkeypatch.setattr(plan, "inheritance_blocker", lambda *_: None)
    monkeypatch.setattr(transition, "_without_another_link", lambda project, *_: project)
    monkeypatch.setattr(Identity, "keeps_git_file", lambda *_: True)


@dataclass(frozen=True)
class Forgery:
    """`act` prepares it and returns the folder that is to be published; the approval of `tool`
    comes after that, unless `act` gave it. `lives` tells whether only the conditions stop it.
    `needs` are names of `support.needs`."""

    act: Act
    lives: bool = True
    needs: tuple[str, ...] = ()


FORGERIES: dict[str, Forgery] = {}


def forgery(*, lives: bool = True, needs: tuple[str, ...] = ()) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        FORGERIES[act.__name__.lstrip("_")] = Forgery(act, lives, needs)
        return act

    return add


# A `.git` file in a folder that existed


@forgery()
def _the_parent_by_an_absolute_link(village: Village) -> Path:
    village.forge(village.src)
    return village.src


@forgery()
def _the_parent_by_a_relative_link(village: Village) -> Path:
    entry = village.entry(village.src)
    (entry / "gitdir").write_text("../../../../.git\n")
    village.link(village.src, "tool/.git/worktrees/p")
    return village.src


@forgery()
def _a_plain_folder_by_an_absolute_link(village: Village) -> Path:
    docs = village.existing("docs")
    village.forge(docs)
    return docs


@forgery()
def _a_plain_folder_by_a_relative_link(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (entry / "gitdir").write_text("../../../../docs/.git")
    village.link(docs, "../tool/.git/worktrees/p")
    return docs


@forgery()
def _links_with_dots_and_slashes(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (entry / "gitdir").write_text(f"{village.src}/./tool//../docs/.git\n")
    village.link(docs, f"{village.src}//tool/./.git/worktrees/../worktrees/p")
    return docs


@forgery()
def _links_with_carriage_returns(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (entry / "gitdir").write_bytes(raw(docs) + b"/.git\r\n")
    (docs / ".git").write_bytes(b"gitdir: " + raw(entry) + b"\r\n")
    return docs


@forgery()
def _a_project_that_waits(village: Village) -> Path:
    app = village.project("app")
    village.forge(app)
    return app


@forgery()
def _a_folder_that_holds_projects(village: Village) -> Path:
    group = village.existing("group")
    village.old.move(group / "inner")
    (group / "inner" / "package.json").write_text("{}\n")
    village.see()
    village.forge(group)
    return group


@forgery()
def _a_repository_whose_git_folder_was_exchanged(village: Village) -> Path:
    mine = make_repository(village.existing("mine"))
    village.see()
    shutil.rmtree(mine / ".git")
    village.forge(mine)
    village.world.explorer.rescan(village.world.explorer.trees[0])
    return mine


@forgery()
def _a_folder_with_a_newline_in_its_name(village: Village) -> Path:
    odd = village.existing("docs\nold")
    village.forge(odd)
    return odd


@forgery(lives=False)
def _a_folder_whose_name_ends_in_a_newline(village: Village) -> Path:
    odd = village.existing("docs\n")
    village.forge(odd)
    return odd / "nothing"


@forgery()
def _a_folder_with_a_space_in_front_of_its_name(village: Village) -> Path:
    odd = village.existing(" docs")
    village.forge(odd)
    return odd


@forgery()
def _a_hard_linked_git_file(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (village.tool / "link").write_text(f"gitdir: {entry}\n")
    os.link(village.tool / "link", docs / ".git")
    return docs


@forgery(lives=False)
def _a_git_file_that_is_a_link(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (village.tool / "link").write_text(f"gitdir: {entry}\n")
    (docs / ".git").symlink_to(village.tool / "link")
    return docs


@forgery(lives=False)
def _a_link_to_the_entry_in_place_of_the_git_file(village: Village) -> Path:
    docs = village.existing("docs")
    (docs / ".git").symlink_to(village.entry(docs))
    return docs


@forgery(lives=False)
def _an_entry_that_is_a_link(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    entry.rename(village.tool / "elsewhere")
    entry.symlink_to(village.tool / "elsewhere")
    village.link(docs, entry)
    return docs


@forgery(lives=False)
def _a_folder_of_entries_that_is_a_link(village: Village) -> Path:
    docs = village.existing("docs")
    village.forge(docs)
    entries = village.tool / ".git" / "worktrees"
    entries.rename(village.tool / "entries")
    entries.symlink_to("../entries")
    return docs


@forgery(lives=False)
def _a_way_through_a_link_above_the_repository(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (village.src / "alias").symlink_to("tool")
    village.link(docs, str(entry).replace("/tool/", "/alias/"))
    return docs


@forgery(lives=False)
def _a_chain_of_git_files(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs)
    (village.tool / "hop").write_text(f"gitdir: {entry}\n")
    village.link(docs, village.tool / "hop")
    return docs


@forgery()
def _an_absolute_commondir(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.forge(docs)
    (entry / "commondir").write_text(f"{village.tool}/.git\n")
    return docs


@forgery(lives=False)
def _a_commondir_in_another_repository(village: Village) -> Path:
    docs = village.existing("docs")
    evil = make_repository(village.src / "evil")
    entry = village.entry(docs, main=evil)
    (entry / "commondir").write_text(f"{village.tool}/.git\n")
    village.link(docs, entry)
    return docs


@forgery(lives=False)
def _an_entry_outside_of_every_repository(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs).rename(village.src / "worktrees-p")
    (entry / "commondir").write_text(f"{village.tool}/.git\n")
    village.link(docs, entry)
    return docs


@forgery(lives=False)
def _an_entry_one_folder_too_deep(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.entry(docs, "deep/p")
    (entry / "commondir").write_text("../../..\n")
    village.link(docs, entry)
    return docs


@forgery(lives=False)
def _a_link_back_to_another_folder(village: Village) -> Path:
    docs = village.existing("docs")
    village.link(docs, village.entry(village.src / "elsewhere"))
    return docs


@forgery(lives=False)
def _a_link_back_of_two_lines(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.forge(docs)
    (entry / "gitdir").write_text(f"/somewhere/.git\n{docs}/.git\n")
    return docs


@forgery(lives=False)
def _a_link_back_with_a_nul(village: Village) -> Path:
    docs = village.existing("docs")
    entry = village.forge(docs)
    (entry / "gitdir").write_bytes(raw(docs) + b"/.git\0\n")
    return docs


@forgery(lives=False)
def _a_submodule(village: Village) -> Path:
    docs = village.existing("docs")
    modules = village.tool / ".git" / "modules" / "docs"
    shutil.copytree(village.tool / ".git", modules, ignore=shutil.ignore_patterns("modules"))
    (modules / "config").write_text(f"[core]\n\tworktree = {docs}\n")
    village.link(docs, modules)
    return docs


@forgery(lives=False)
def _a_separate_git_folder(village: Village) -> Path:
    docs = village.existing("docs")
    village.link(docs, village.tool / ".git")
    return docs


@forgery(lives=False)
def _core_worktree_of_the_approved_repository(village: Village) -> Path:
    docs = village.existing("docs")
    with (village.tool / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tworktree = {docs}\n")
    return docs


@forgery()
def _another_tool_beside_the_git_file(village: Village) -> Path:
    docs = village.existing("docs")
    village.forge(docs)
    (docs / ".hg" / "store").mkdir(parents=True)
    (docs / ".hg" / "requires").write_text("store\n")
    return docs


@forgery()
def _a_worktree_of_a_bare_repository_in_a_folder_that_existed(village: Village) -> Path:
    docs = village.existing("docs")
    bare = village.src / "lib.git"
    git("clone", "-q", "--bare", village.tool, bare)
    entry = bare / "worktrees" / "p"
    entry.mkdir(parents=True)
    (entry / "HEAD").write_text(f"{village.head}\n")
    (entry / "commondir").write_text("../..\n")
    (entry / "gitdir").write_text(f"{docs}/.git\n")
    (entry / "index").write_bytes((village.tool / ".git" / "index").read_bytes())
    village.link(docs, entry)
    village.approve(bare)
    return docs


# What an archive or a copy makes whole, before the approval


@forgery()
def _a_new_folder_that_is_older_than_the_approval(village: Village) -> Path:
    new = village.new("new")
    village.forge(new)
    return new


@forgery()
def _a_new_folder_by_relative_links(village: Village) -> Path:
    new = village.new("new")
    entry = village.entry(new)
    (entry / "gitdir").write_text("../../../../new/.git")
    village.link(new, "../tool/.git/worktrees/p")
    return new


@forgery()
def _a_new_folder_inside_of_the_repository(village: Village) -> Path:
    new = village.new("tool/.claude/worktrees/x")
    village.forge(new)
    return new


def _packed(village: Village) -> tuple[Path, Path]:
    """Make a repository with a real worktree by relative links, both in a folder of their own."""
    box = village.src.parent / "box"
    shutil.copytree(village.tool, box / "kit")
    git("worktree", "add", "-q", "--detach", box / "fix", cwd=box / "kit")
    (box / "fix" / ".git").write_text("gitdir: ../kit/.git/worktrees/fix\n")
    (box / "kit" / ".git" / "worktrees" / "fix" / "gitdir").write_text("../../../../fix/.git\n")
    return box / "kit", box / "fix"


def _approved_copy(village: Village) -> Path:
    village.approve(village.src / "kit")
    return village.src / "fix"


@forgery()
def _real_worktrees_unpacked_by_tar(village: Village) -> Path:
    kit, fix = _packed(village)
    archive = village.src.parent / "all.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(kit, "kit")
        tar.add(fix, "fix")
    subprocess.run(["tar", "xpf", archive, "-C", village.src], check=True)
    return _approved_copy(village)


@forgery()
def _real_worktrees_unpacked_by_unzip(village: Village) -> Path:
    kit, _ = _packed(village)
    archive = village.src.parent / "all.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(kit.parent.rglob("*")):
            packed.write(path, path.relative_to(kit.parent))
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            packed.extract(name, village.src)
    return _approved_copy(village)


@forgery()
def _real_worktrees_copied_by_cp(village: Village) -> Path:
    kit, fix = _packed(village)
    subprocess.run(["cp", "-a", kit, fix, village.src], check=True)
    return _approved_copy(village)


@forgery(needs=("rsync",))
def _real_worktrees_copied_by_rsync(village: Village) -> Path:
    kit, fix = _packed(village)
    subprocess.run(["rsync", "-a", kit, fix, village.src], check=True)
    return _approved_copy(village)


@forgery()
def _real_worktrees_moved_here(village: Village) -> Path:
    kit, fix = _packed(village)
    kit.rename(village.src / "kit")
    fix.rename(village.src / "fix")
    return _approved_copy(village)


@forgery(lives=False)
def _a_copy_of_a_real_worktree_alone(village: Village) -> Path:
    village.approve(village.tool)
    real = village.git_adds(village.src / "real")
    subprocess.run(["cp", "-a", real, village.src / "copy"], check=True)
    return village.src / "copy"


# After the approval, and after a grant


@forgery()
def _a_plain_folder_once_the_repository_is_approved(village: Village) -> Path:
    village.approve(village.tool)
    docs = village.existing("docs")
    village.forge(docs)
    return docs


@forgery()
def _the_parent_once_the_repository_is_approved(village: Village) -> Path:
    village.approve(village.tool)
    village.forge(village.src)
    return village.src


def _granted(village: Village, name: str = "real") -> Path:
    """Have git create a worktree that is published to clients."""
    village.approve(village.tool)
    real = village.git_adds(village.src / name)
    assert name in village.told()
    return real


@forgery()
def _a_git_file_that_was_replaced_after_the_grant(village: Village) -> Path:
    real = _granted(village)
    text = (real / ".git").read_text()
    (real / "new").write_text(text)
    (real / "new").rename(real / ".git")
    return real


@forgery()
def _an_entry_that_a_folder_took_over_after_the_grant(village: Village) -> Path:
    real = _granted(village)
    docs = village.existing("docs")
    entry = village.tool / ".git" / "worktrees" / "real"
    (entry / "gitdir").write_text(f"{docs}/.git\n")
    (real / ".git").rename(docs / ".git")
    return docs


@forgery(lives=False)
def _another_project_moved_to_the_place_of_a_worktree(village: Village) -> Path:
    real = _granted(village)
    real.rename(village.src / "gone")
    village.project("app").rename(real)
    return real


@forgery()
def _another_project_in_the_place_of_a_worktree_with_its_git_file(village: Village) -> Path:
    real = _granted(village)
    app = village.project("app")
    (real / ".git").rename(app / ".git")
    real.rename(village.src / "gone")
    app.rename(real)
    return real


@forgery()
def _a_worktree_that_another_project_was_moved_into(village: Village) -> Path:
    real = _granted(village)
    secret = village.project("app")
    village.see()
    # What lies below a repository is proposed only if somebody names it.
    secret.rename(real / "app")
    village.world.explorer.probe(raw(real / "app"))
    village.see()
    return real


@forgery()
def _a_worktree_that_a_parent_was_added_in(village: Village) -> Path:
    real = _granted(village)
    places = village.catalog.places
    inside = (*places.parents, raw(real / "sub"))
    village.catalog = village.catalog.with_places(places._replace(parents=inside))
    return real


@forgery(lives=False)
def _a_worktree_whose_link_back_was_cut(village: Village) -> Path:
    real = _granted(village)
    (village.tool / ".git" / "worktrees" / "real" / "gitdir").write_text("/nowhere/.git\n")
    return real


@forgery()
def _a_worktree_whose_entry_was_made_anew(village: Village) -> Path:
    real = _granted(village)
    entry = village.tool / ".git" / "worktrees" / "real"
    shutil.rmtree(entry)
    village.entry(real, "real")
    return real


@forgery(lives=False)
def _a_worktree_of_a_denied_repository(village: Village) -> Path:
    real = _granted(village)
    village.deny(village.tool)
    return real


@forgery()
def _a_worktree_of_a_repository_that_was_denied_and_approved_again(village: Village) -> Path:
    real = _granted(village)
    village.deny(village.tool)
    village.approve(village.tool)
    return real


@forgery(lives=False)
def _a_worktree_of_a_worktree(village: Village) -> Path:
    real = _granted(village)
    docs = village.existing("docs")
    entry = village.tool / ".git" / "worktrees" / "real"
    inner = entry / "worktrees" / "p"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text(f"{village.head}\n")
    (inner / "commondir").write_text("../..\n")
    (inner / "gitdir").write_text(f"{docs}/.git\n")
    (inner / "index").write_bytes((entry / "index").read_bytes())
    village.link(docs, inner)
    assert real.exists()
    return docs


def _told_after(village: Village, each: Forgery) -> tuple[set[str], str]:
    """Return what is published after the forgery, and the name of the forged folder."""
    victim = each.act(village)
    if not any(p.ruling.decision is not None for p in village.catalog.projects.values()):
        village.approve(village.tool)
    return village.told(), os.path.relpath(victim, village.src)


_EACH_FORGERY = [
    pytest.param(name, marks=pytest.mark.needs(*each.needs)) for name, each in FORGERIES.items()
]


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 50
    assert sum(each.lives for each in FORGERIES.values()) >= 30


@pytest.mark.parametrize("name", _EACH_FORGERY)
def test_no_forgery_is_published(village: Village, name: str) -> None:
    told, victim = _told_after(village, FORGERIES[name])
    assert victim not in told
    for path in told:
        assert path in {"tool", "kit", "lib.git", "real"}, "nothing else was approved"


@pytest.mark.usefixtures("no_conditions")
@pytest.mark.parametrize("name", _EACH_FORGERY)
def test_the_control_without_the_conditions_live_forgeries_are_published(
    village: Village, name: str
) -> None:
    told, victim = _told_after(village, FORGERIES[name])
    assert (victim in told) is FORGERIES[name].lives


@pytest.mark.parametrize(
    "place", ["docs", "docs\nold", " docs", "tool/.claude/worktrees/x", "group/deep/inner"]
)
def test_the_control_a_worktree_of_git_in_such_a_place_is_published(
    village: Village, place: str
) -> None:
    village.approve(village.tool)
    village.git_adds(village.src / place)
    assert village.told() == {"tool", place}
