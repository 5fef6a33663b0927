"""rootsd publishes no forged worktree to a client, but it publishes real ones.

Each forgery runs twice. With the conditions in `rootsd.core.decide`, it publishes nothing. The
control is the same forgery without these conditions. Then a live forgery publishes its folder,
which shows that the conditions are what stops it. In each case, git also creates a real worktree
in the same parent after the approval, and rootsd publishes that one.
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

from rootsd.core import decide, grants, transition
from rootsd.core.model import Identity
from support.engine_harness import EngineHarness
from support.forged_worktrees import ForgedWorktrees, PreparedFolders
from support.repositories import git, make_repository, raw

pytestmark = pytest.mark.needs("linux")

Act = Callable[[ForgedWorktrees], Path]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> PreparedFolders:
    return PreparedFolders(tmp_path_factory.mktemp("beforehand"), 200)


@pytest.fixture
def harness(world: EngineHarness, old: PreparedFolders) -> ForgedWorktrees:
    return ForgedWorktrees(world, old)


@pytest.fixture
def no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each worktree inherit if the repository links back."""
    monkeypatch.setattr(decide, "_permanent_blocker", lambda *_: None)
    monkeypatch.setattr(grants, "inheritance_blocker", lambda *_: None)
    monkeypatch.setattr(transition, "_without_replaced_link", lambda project, *_: project)
    monkeypatch.setattr(Identity, "keeps_git_file", lambda *_: True)


@dataclass(frozen=True)
class Forgery:
    """A forgery. `act` prepares it and returns the folder that it tries to publish.

    Then `tool` is approved, unless `act` approved it. `lives` says whether the conditions are all
    that stops the forgery. `needs` are names in `support.needs`.
    """

    act: Act
    lives: bool = True
    needs: tuple[str, ...] = ()


FORGERIES: dict[str, Forgery] = {}


def forgery(*, lives: bool = True, needs: tuple[str, ...] = ()) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        FORGERIES[act.__name__.lstrip("_")] = Forgery(act, lives, needs)
        return act

    return add


# A `.git` file in an existing folder


@forgery()
def _the_parent_by_an_absolute_link(harness: ForgedWorktrees) -> Path:
    harness.forge(harness.src)
    return harness.src


@forgery()
def _the_parent_by_a_relative_link(harness: ForgedWorktrees) -> Path:
    entry = harness.entry(harness.src)
    (entry / "gitdir").write_text("../../../../.git\n")
    harness.link(harness.src, "tool/.git/worktrees/p")
    return harness.src


@forgery()
def _a_plain_folder_by_an_absolute_link(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    harness.forge(docs)
    return docs


@forgery()
def _a_plain_folder_by_a_relative_link(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (entry / "gitdir").write_text("../../../../docs/.git")
    harness.link(docs, "../tool/.git/worktrees/p")
    return docs


@forgery()
def _links_with_dots_and_slashes(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (entry / "gitdir").write_text(f"{harness.src}/./tool//../docs/.git\n")
    harness.link(docs, f"{harness.src}//tool/./.git/worktrees/../worktrees/p")
    return docs


@forgery()
def _links_with_carriage_returns(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (entry / "gitdir").write_bytes(raw(docs) + b"/.git\r\n")
    (docs / ".git").write_bytes(b"gitdir: " + raw(entry) + b"\r\n")
    return docs


@forgery()
def _a_project_that_waits(harness: ForgedWorktrees) -> Path:
    app = harness.project("app")
    harness.forge(app)
    return app


@forgery()
def _a_folder_that_holds_projects(harness: ForgedWorktrees) -> Path:
    group = harness.existing("group")
    harness.old.move(group / "inner")
    (group / "inner" / "package.json").write_text("{}\n")
    harness.see()
    harness.forge(group)
    return group


@forgery()
def _a_repository_whose_git_folder_was_exchanged(harness: ForgedWorktrees) -> Path:
    mine = make_repository(harness.existing("mine"))
    harness.see()
    shutil.rmtree(mine / ".git")
    harness.forge(mine)
    harness.world.engine.rescan(harness.world.engine.trees[0])
    return mine


@forgery()
def _a_folder_with_a_newline_in_its_name(harness: ForgedWorktrees) -> Path:
    odd = harness.existing("docs\nold")
    harness.forge(odd)
    return odd


@forgery(lives=False)
def _a_folder_whose_name_ends_in_a_newline(harness: ForgedWorktrees) -> Path:
    odd = harness.existing("docs\n")
    harness.forge(odd)
    return odd / "nothing"


@forgery()
def _a_folder_with_a_space_in_front_of_its_name(harness: ForgedWorktrees) -> Path:
    odd = harness.existing(" docs")
    harness.forge(odd)
    return odd


@forgery()
def _a_hard_linked_git_file(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (harness.tool / "link").write_text(f"gitdir: {entry}\n")
    os.link(harness.tool / "link", docs / ".git")
    return docs


@forgery(lives=False)
def _a_git_file_that_is_a_link(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (harness.tool / "link").write_text(f"gitdir: {entry}\n")
    (docs / ".git").symlink_to(harness.tool / "link")
    return docs


@forgery()
def _a_link_to_the_entry_in_place_of_the_git_file(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    (docs / ".git").symlink_to(harness.entry(docs))
    return docs


@forgery(lives=False)
def _an_entry_that_is_a_link(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    entry.rename(harness.tool / "elsewhere")
    entry.symlink_to(harness.tool / "elsewhere")
    harness.link(docs, entry)
    return docs


@forgery(lives=False)
def _a_folder_of_entries_that_is_a_link(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    harness.forge(docs)
    entries = harness.tool / ".git" / "worktrees"
    entries.rename(harness.tool / "entries")
    entries.symlink_to("../entries")
    return docs


@forgery()
def _a_way_through_a_link_above_the_repository(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (harness.src / "alias").symlink_to("tool")
    harness.link(docs, str(entry).replace("/tool/", "/alias/"))
    return docs


@forgery(lives=False)
def _a_chain_of_git_files(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs)
    (harness.tool / "hop").write_text(f"gitdir: {entry}\n")
    harness.link(docs, harness.tool / "hop")
    return docs


@forgery()
def _an_absolute_commondir(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.forge(docs)
    (entry / "commondir").write_text(f"{harness.tool}/.git\n")
    return docs


@forgery(lives=False)
def _a_commondir_in_another_repository(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    evil = make_repository(harness.src / "evil")
    entry = harness.entry(docs, main=evil)
    (entry / "commondir").write_text(f"{harness.tool}/.git\n")
    harness.link(docs, entry)
    return docs


@forgery(lives=False)
def _an_entry_outside_of_every_repository(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs).rename(harness.src / "worktrees-p")
    (entry / "commondir").write_text(f"{harness.tool}/.git\n")
    harness.link(docs, entry)
    return docs


@forgery(lives=False)
def _an_entry_one_folder_too_deep(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.entry(docs, "deep/p")
    (entry / "commondir").write_text("../../..\n")
    harness.link(docs, entry)
    return docs


@forgery(lives=False)
def _a_link_back_to_another_folder(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    harness.link(docs, harness.entry(harness.src / "elsewhere"))
    return docs


@forgery(lives=False)
def _a_link_back_of_two_lines(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.forge(docs)
    (entry / "gitdir").write_text(f"/somewhere/.git\n{docs}/.git\n")
    return docs


@forgery(lives=False)
def _a_link_back_with_a_nul(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    entry = harness.forge(docs)
    (entry / "gitdir").write_bytes(raw(docs) + b"/.git\0\n")
    return docs


@forgery(lives=False)
def _a_submodule(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    modules = harness.tool / ".git" / "modules" / "docs"
    shutil.copytree(harness.tool / ".git", modules, ignore=shutil.ignore_patterns("modules"))
    (modules / "config").write_text(f"[core]\n\tworktree = {docs}\n")
    harness.link(docs, modules)
    return docs


@forgery(lives=False)
def _a_separate_git_folder(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    harness.link(docs, harness.tool / ".git")
    return docs


@forgery(lives=False)
def _core_worktree_of_the_approved_repository(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    with (harness.tool / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tworktree = {docs}\n")
    return docs


@forgery()
def _another_tool_beside_the_git_file(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    harness.forge(docs)
    (docs / ".hg" / "store").mkdir(parents=True)
    (docs / ".hg" / "requires").write_text("store\n")
    return docs


@forgery()
def _a_worktree_of_a_bare_repository_in_a_folder_that_existed(harness: ForgedWorktrees) -> Path:
    docs = harness.existing("docs")
    bare = harness.src / "lib.git"
    git("clone", "-q", "--bare", harness.tool, bare)
    entry = bare / "worktrees" / "p"
    entry.mkdir(parents=True)
    (entry / "HEAD").write_text(f"{harness.head}\n")
    (entry / "commondir").write_text("../..\n")
    (entry / "gitdir").write_text(f"{docs}/.git\n")
    (entry / "index").write_bytes((harness.tool / ".git" / "index").read_bytes())
    harness.link(docs, entry)
    harness.approve(bare)
    return docs


# Complete worktrees from an archive or a copy, before the approval


@forgery()
def _a_new_folder_that_is_older_than_the_approval(harness: ForgedWorktrees) -> Path:
    new = harness.new("new")
    harness.forge(new)
    return new


@forgery()
def _a_new_folder_by_relative_links(harness: ForgedWorktrees) -> Path:
    new = harness.new("new")
    entry = harness.entry(new)
    (entry / "gitdir").write_text("../../../../new/.git")
    harness.link(new, "../tool/.git/worktrees/p")
    return new


def _packed(harness: ForgedWorktrees) -> tuple[Path, Path]:
    """Make a repository with a real worktree by relative links, both in a folder of their own."""
    box = harness.src.parent / "box"
    shutil.copytree(harness.tool, box / "kit")
    git("worktree", "add", "-q", "--detach", box / "fix", cwd=box / "kit")
    (box / "fix" / ".git").write_text("gitdir: ../kit/.git/worktrees/fix\n")
    (box / "kit" / ".git" / "worktrees" / "fix" / "gitdir").write_text("../../../../fix/.git\n")
    return box / "kit", box / "fix"


def _approved_copy(harness: ForgedWorktrees) -> Path:
    harness.approve(harness.src / "kit")
    return harness.src / "fix"


@forgery()
def _real_worktrees_unpacked_by_tar(harness: ForgedWorktrees) -> Path:
    kit, fix = _packed(harness)
    archive = harness.src.parent / "all.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(kit, "kit")
        tar.add(fix, "fix")
    subprocess.run(["tar", "xpf", archive, "-C", harness.src], check=True)
    return _approved_copy(harness)


@forgery()
def _real_worktrees_unpacked_by_unzip(harness: ForgedWorktrees) -> Path:
    kit, _ = _packed(harness)
    archive = harness.src.parent / "all.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(kit.parent.rglob("*")):
            packed.write(path, path.relative_to(kit.parent))
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            packed.extract(name, harness.src)
    return _approved_copy(harness)


@forgery()
def _real_worktrees_copied_by_cp(harness: ForgedWorktrees) -> Path:
    kit, fix = _packed(harness)
    subprocess.run(["cp", "-a", kit, fix, harness.src], check=True)
    return _approved_copy(harness)


@forgery(needs=("rsync",))
def _real_worktrees_copied_by_rsync(harness: ForgedWorktrees) -> Path:
    kit, fix = _packed(harness)
    subprocess.run(["rsync", "-a", kit, fix, harness.src], check=True)
    return _approved_copy(harness)


@forgery()
def _real_worktrees_moved_here(harness: ForgedWorktrees) -> Path:
    kit, fix = _packed(harness)
    kit.rename(harness.src / "kit")
    fix.rename(harness.src / "fix")
    return _approved_copy(harness)


@forgery(lives=False)
def _a_copy_of_a_real_worktree_alone(harness: ForgedWorktrees) -> Path:
    harness.approve(harness.tool)
    real = harness.git_adds(harness.src / "real")
    subprocess.run(["cp", "-a", real, harness.src / "copy"], check=True)
    return harness.src / "copy"


# After the approval, and after a grant


@forgery()
def _a_plain_folder_once_the_repository_is_approved(harness: ForgedWorktrees) -> Path:
    harness.approve(harness.tool)
    docs = harness.existing("docs")
    harness.forge(docs)
    return docs


@forgery()
def _the_parent_once_the_repository_is_approved(harness: ForgedWorktrees) -> Path:
    harness.approve(harness.tool)
    harness.forge(harness.src)
    return harness.src


def _granted(harness: ForgedWorktrees, name: str = "real") -> Path:
    """Have git create a worktree that is published to clients."""
    harness.approve(harness.tool)
    real = harness.git_adds(harness.src / name)
    assert name in harness.reported()
    return real


@forgery()
def _a_git_file_that_was_replaced_after_the_grant(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    text = (real / ".git").read_text()
    (real / "new").write_text(text)
    (real / "new").rename(real / ".git")
    return real


@forgery()
def _an_entry_that_a_folder_took_over_after_the_grant(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    docs = harness.existing("docs")
    entry = harness.tool / ".git" / "worktrees" / "real"
    (entry / "gitdir").write_text(f"{docs}/.git\n")
    (real / ".git").rename(docs / ".git")
    return docs


@forgery(lives=False)
def _another_project_moved_to_the_place_of_a_worktree(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    real.rename(harness.src / "gone")
    harness.project("app").rename(real)
    return real


@forgery()
def _another_project_in_the_place_of_a_worktree_with_its_git_file(
    harness: ForgedWorktrees,
) -> Path:
    real = _granted(harness)
    app = harness.project("app")
    (real / ".git").rename(app / ".git")
    real.rename(harness.src / "gone")
    app.rename(real)
    return real


@forgery()
def _a_worktree_that_another_project_was_moved_into(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    secret = harness.project("app")
    harness.see()
    # A project below a repository is proposed only if a person names it.
    secret.rename(real / "app")
    harness.world.engine.probe(raw(real / "app"))
    harness.see()
    return real


@forgery()
def _a_worktree_that_a_parent_was_added_in(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    places = harness.catalog.places
    inside = (*places.parents, raw(real / "sub"))
    harness.catalog = harness.catalog.with_places(places._replace(parents=inside))
    return real


@forgery(lives=False)
def _a_worktree_whose_link_back_was_cut(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    (harness.tool / ".git" / "worktrees" / "real" / "gitdir").write_text("/nowhere/.git\n")
    return real


@forgery()
def _a_worktree_whose_entry_was_made_anew(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    entry = harness.tool / ".git" / "worktrees" / "real"
    shutil.rmtree(entry)
    harness.entry(real, "real")
    return real


@forgery(lives=False)
def _a_worktree_of_a_denied_repository(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    harness.deny(harness.tool)
    return real


@forgery()
def _a_worktree_of_a_repository_that_was_denied_and_approved_again(
    harness: ForgedWorktrees,
) -> Path:
    real = _granted(harness)
    harness.deny(harness.tool)
    harness.approve(harness.tool)
    return real


@forgery(lives=False)
def _a_worktree_of_a_worktree(harness: ForgedWorktrees) -> Path:
    real = _granted(harness)
    docs = harness.existing("docs")
    entry = harness.tool / ".git" / "worktrees" / "real"
    inner = entry / "worktrees" / "p"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text(f"{harness.head}\n")
    (inner / "commondir").write_text("../..\n")
    (inner / "gitdir").write_text(f"{docs}/.git\n")
    (inner / "index").write_bytes((entry / "index").read_bytes())
    harness.link(docs, inner)
    assert real.exists()
    return docs


def _told_after(harness: ForgedWorktrees, each: Forgery) -> tuple[set[str], str]:
    """Return what is published after the forgery, and the name of the forged folder."""
    victim = each.act(harness)
    if not any(p.ruling.decision is not None for p in harness.catalog.projects.values()):
        harness.approve(harness.tool)
    return harness.reported(), os.path.relpath(victim, harness.src)


_EACH_FORGERY = [
    pytest.param(name, marks=pytest.mark.needs(*each.needs)) for name, each in FORGERIES.items()
]


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 50
    assert sum(each.lives for each in FORGERIES.values()) >= 30


@pytest.mark.parametrize("name", _EACH_FORGERY)
def test_no_forgery_is_published(harness: ForgedWorktrees, name: str) -> None:
    reported, victim = _told_after(harness, FORGERIES[name])
    assert victim not in reported
    for path in reported:
        assert path in {"tool", "kit", "lib.git", "real"}, "nothing else was approved"


@pytest.mark.usefixtures("no_conditions")
@pytest.mark.parametrize("name", _EACH_FORGERY)
def test_control_without_the_conditions_live_forgeries_are_published(
    harness: ForgedWorktrees, name: str
) -> None:
    reported, victim = _told_after(harness, FORGERIES[name])
    assert (victim in reported) is FORGERIES[name].lives


def test_control_worktrees_made_by_git_in_such_places_are_published(
    harness: ForgedWorktrees,
) -> None:
    harness.approve(harness.tool)
    places = {"docs", "docs\nold", " docs", "tool/.claude/worktrees/x", "group/deep/inner"}
    for place in places:
        harness.git_adds(harness.src / place)
    assert harness.reported() == {"tool", *places}
