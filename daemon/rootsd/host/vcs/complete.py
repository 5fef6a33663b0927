"""Tells from the disk alone how far along a project of any kind is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

from rootsd.core.model import Incomplete, ProjectKind
from rootsd.host.disk.markers import VCS_MARKERS
from rootsd.host.disk.opened import Opened
from rootsd.host.disk.reader import is_folder_inside
from rootsd.host.vcs import foreign
from rootsd.host.vcs.copies import broken_off
from rootsd.host.vcs.gitdir import git_stage, is_git, locate
from rootsd.host.vcs.look import Look
from rootsd.host.vcs.stages import Complete, Nothing, Pending, Stage, State
from rootsd.host.vcs.submodules import lacks_submodules

# Where the tools write while they make a repository of a kind, from the folder itself.
_WORKSHOPS: Mapping[ProjectKind, tuple[bytes, ...]] = MappingProxyType(
    {
        ProjectKind.GIT_BARE: (b"", b"/objects/pack"),
        ProjectKind.JJ: (b"/.jj/repo", b"/.jj/working_copy"),
        ProjectKind.HG: (b"/.hg", b"/.hg/store"),
        ProjectKind.SAPLING: (b"/.sl", b"/.sl/store"),
        ProjectKind.SVN: (b"/.svn",),
        ProjectKind.FOSSIL: (b"",),
        ProjectKind.BZR: (b"/.bzr", b"/.bzr/checkout", b"/.bzr/repository/upload"),
        ProjectKind.PIJUL: (b"/.pijul", b"/.pijul/pristine"),
        ProjectKind.DARCS: (b"/_darcs",),
    }
)


def state_of(look: Look, kind: ProjectKind) -> State:
    """How far along the project of `kind` is.

    The kind in the answer may be another: `.git` may be a worktree's, and a `.jj` beside it wins.
    Reads a few small files, about 25 us; raises nothing.
    """
    match kind:
        case ProjectKind.PROJECT | ProjectKind.URI:
            return Complete(kind)
        case ProjectKind.GIT_BARE:
            return _bare_state(look)
        case ProjectKind.GIT | ProjectKind.GIT_WORKTREE | ProjectKind.GIT_SUBMODULE:
            return _git_state(look)
        case _:
            if not _has_marker(look, kind):
                return Nothing()
            return _of(kind, _foreign_stage(look.path, kind))


def what_is_missing(look: Look, kind: ProjectKind, stage: Stage | None) -> Incomplete | None:
    """What a project is to be called that stays in `stage`, None for a whole one's: the reason
    why it is none, or None. The same whoever asks, and whenever."""
    if stage is not None and (stage.wait.outcome is not None or stage is Stage.UNBORN):
        return stage.wait.outcome
    lacking = broken_off(look, kind)
    if lacking is None and lacks_submodules(look, kind):
        return Incomplete.NOT_CHECKED_OUT
    return lacking


def folders_at_work(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    """The folders, of those there are, whose events tell that a project of `kind` at `path` gets
    on."""
    return tuple(filter(is_folder_inside, _folders_at_work(path, kind)))


def _folders_at_work(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    if is_git(kind) and kind is not ProjectKind.GIT_BARE:
        place = locate(path)
        if place is None:
            return (path,)
        # The folder itself as well: a clone without any file beside its .git got stuck.
        return (path, place.folder, place.common + b"/objects/pack")
    return tuple(path + inside for inside in _WORKSHOPS.get(kind, ()))


def untouched_for(path: bytes, kind: ProjectKind) -> float:
    """Seconds since anything changed in the folder itself or in those where work would show.

    By change times, which nobody can set back; 0 where nothing can be told.
    """
    newest = None
    for each in (path, *folders_at_work(path, kind)):
        with Opened(each) as folder:
            for name in (b".", *folder.names()):
                try:
                    changed = folder.stat(name).st_ctime
                except OSError:
                    continue
                newest = changed if newest is None else max(newest, changed)
    return 0.0 if newest is None else max(0.0, time.time() - newest)


def _of(kind: ProjectKind, stage: Stage | None) -> State:
    return Complete(kind) if stage is None else Pending(kind, stage)


def _git_state(look: Look) -> State:
    if look.exists(b".jj"):
        return _of(ProjectKind.JJ, foreign.jj_stage(look.path))
    git = look.git(ProjectKind.GIT)
    if git is None:
        return Pending(ProjectKind.GIT, Stage.NO_GIT_DIR) if look.exists(b".git") else Nothing()
    kind, main_checkout = git.place.kind, git.place.main_checkout
    stage = git_stage(git)
    if stage is None:
        return Complete(kind, main_checkout)
    return Pending(kind, stage, main_checkout)


def _bare_state(look: Look) -> State:
    git = look.git(ProjectKind.GIT_BARE)
    if git is None or not look.exists(b"HEAD") or not look.is_folder(b"objects"):
        return Nothing()
    return _of(ProjectKind.GIT_BARE, git_stage(git))


def _has_marker(look: Look, kind: ProjectKind) -> bool:
    return any(look.exists(name) for name, its_kind in VCS_MARKERS.items() if its_kind is kind)


def _foreign_stage(path: bytes, kind: ProjectKind) -> Stage | None:
    match kind:
        case ProjectKind.JJ:
            return foreign.jj_stage(path)
        case ProjectKind.HG:
            return foreign.hg_stage(path + b"/.hg")
        case ProjectKind.SAPLING:
            return foreign.hg_stage(path + b"/.sl")
        case ProjectKind.SVN:
            return foreign.svn_stage(path + b"/.svn")
        case ProjectKind.FOSSIL:
            return foreign.fossil_stage(path)
        case ProjectKind.BZR:
            return foreign.bzr_stage(path + b"/.bzr")
        case ProjectKind.DARCS:
            return foreign.darcs_stage(path + b"/_darcs")
        case ProjectKind.PIJUL:
            return foreign.pijul_stage(path + b"/.pijul")
        case _:
            raise AssertionError(f"{kind} is told by git or by a project file")
