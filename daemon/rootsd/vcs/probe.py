"""Probe one folder: which project it holds, and how complete it is.

Tells from the disk alone how far along a project of any kind is.

Looks at one folder and says what project it is, or why nothing can be seen there.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from types import MappingProxyType

from rootsd.core.inputs import (
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
)
from rootsd.core.model import Identity, IncompleteReason, LapseReason, ProjectKind
from rootsd.core.paths import ancestors
from rootsd.disk.identity import PathAbsence, classify_absence
from rootsd.disk.markers import VCS_MARKERS, repository_kind
from rootsd.disk.reader import OpenFolder, is_folder_no_follow
from rootsd.vcs import foreign
from rootsd.vcs.base import CompleteProject, NoProject, PendingProject, ProjectState, Stage
from rootsd.vcs.copies import interrupted_copy
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import find_git_dirs, git_stage, is_git
from rootsd.vcs.git.submodules import lacks_submodules

# Where the tools write while they make a repository of a kind, from the folder itself.
_PROGRESS_FOLDERS: Mapping[ProjectKind, tuple[bytes, ...]] = MappingProxyType(
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


def project_state(look: OpenProject, kind: ProjectKind) -> ProjectState:
    """How far along the project of `kind` is.

    The kind in the answer may be another: `.git` may be a worktree's, and a `.jj` beside it wins.
    Reads a few small files, about 25 us; raises nothing.
    """
    match kind:
        case ProjectKind.PROJECT | ProjectKind.URI:
            return CompleteProject(kind)
        case ProjectKind.GIT_BARE:
            return _bare_state(look)
        case ProjectKind.GIT | ProjectKind.GIT_WORKTREE | ProjectKind.GIT_SUBMODULE:
            return _git_state(look)
        case _:
            if not _has_marker(look, kind):
                return NoProject()
            return _state_at_stage(kind, _foreign_stage(look.path, kind))


def incomplete_reason(
    look: OpenProject, kind: ProjectKind, stage: Stage | None
) -> IncompleteReason | None:
    """What a project is to be called that stays in `stage`, None for a whole one's: the reason
    why it is none, or None. The same whoever asks, and whenever."""
    if stage is not None and (stage.wait.outcome is not None or stage is Stage.UNBORN):
        return stage.wait.outcome
    lacking = interrupted_copy(look, kind)
    if lacking is None and lacks_submodules(look, kind):
        return IncompleteReason.NOT_CHECKED_OUT
    return lacking


def progress_folders(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    """The folders, of those there are, whose events tell that a project of `kind` at `path` gets
    on."""
    return tuple(filter(is_folder_no_follow, _possible_progress_folders(path, kind)))


def _possible_progress_folders(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    if is_git(kind) and kind is not ProjectKind.GIT_BARE:
        place = find_git_dirs(path)
        if place is None:
            return (path,)
        # The folder itself as well: a clone without any file beside its .git got stuck.
        return (path, place.folder, place.common + b"/objects/pack")
    return tuple(path + inside for inside in _PROGRESS_FOLDERS.get(kind, ()))


def seconds_since_change(path: bytes, kind: ProjectKind) -> float:
    """Seconds since anything changed in the folder itself or in those where work would show.

    By change times, which nobody can set back; 0 where nothing can be told.
    """
    newest = None
    for each in (path, *progress_folders(path, kind)):
        with OpenFolder(each) as folder:
            for name in (b".", *folder.names()):
                try:
                    changed = folder.stat(name).st_ctime
                except OSError:
                    continue
                newest = changed if newest is None else max(newest, changed)
    return 0.0 if newest is None else max(0.0, time.time() - newest)


def _state_at_stage(kind: ProjectKind, stage: Stage | None) -> ProjectState:
    return CompleteProject(kind) if stage is None else PendingProject(kind, stage)


def _git_state(look: OpenProject) -> ProjectState:
    if look.exists(b".jj"):
        return _state_at_stage(ProjectKind.JJ, foreign.jj_stage(look.path))
    git = look.git(ProjectKind.GIT)
    if git is None:
        return (
            PendingProject(ProjectKind.GIT, Stage.NO_GIT_DIR)
            if look.exists(b".git")
            else NoProject()
        )
    kind, main_checkout = git.place.kind, git.place.main_checkout
    stage = git_stage(git)
    if stage is None:
        return CompleteProject(kind, main_checkout)
    return PendingProject(kind, stage, main_checkout)


def _bare_state(look: OpenProject) -> ProjectState:
    git = look.git(ProjectKind.GIT_BARE)
    if git is None or not look.exists(b"HEAD") or not look.is_folder(b"objects"):
        return NoProject()
    return _state_at_stage(ProjectKind.GIT_BARE, git_stage(git))


def _has_marker(look: OpenProject, kind: ProjectKind) -> bool:
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


def probe(
    path: bytes, within: bytes | None = None, filesystem: bytes | None = None
) -> Observation:
    """One folder, looked at now, whether or not a parent holds it.

    A folder without any marker is seen as a plain project: it was named by a person. One that is
    still being made is seen as incomplete where its state is not final. `within` and `filesystem`
    are as for `absence`. Raises nothing.
    """
    with OpenProject(path) as look:
        try:
            identity = look.identity()
        except OSError:
            return observe_absent(path, within, filesystem)
        return _observe_open_project(look, identity)


def _observe_open_project(look: OpenProject, identity: Identity) -> ProjectObserved:
    kind = repository_kind(look.names()) or ProjectKind.PROJECT
    match project_state(look, kind):
        case CompleteProject(kind=found, main_checkout=main):
            lacking = incomplete_reason(look, found, None)
            return ProjectObserved(look.path, found, identity, lacking, main)
        case PendingProject(kind=found, stage=stage, main_checkout=main):
            lacking = incomplete_reason(look, found, stage)
            return ProjectObserved(look.path, found, identity, lacking, main)
        case NoProject():
            return ProjectObserved(look.path, ProjectKind.PROJECT, identity)


def observe_absent(path: bytes, within: bytes | None, filesystem: bytes | None) -> Observation:
    """What a folder that could not be identified is: gone, out of reach, or behind a link.

    One that is there and cannot be opened is out of reach.
    """
    if classify_absence(path, within, filesystem) is PathAbsence.GONE:
        return observe_vanished(path)
    if any(map(os.path.islink, ancestors(path))):
        return ProjectUnsafe(path, LapseReason.RETARGETED)
    return ProjectUnreachable(path)


def observe_vanished(path: bytes) -> ProjectGone:
    """The end of a folder that is gone; a link or a file in its place has replaced it."""
    try:
        replaced = not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        replaced = False
    return ProjectGone(path, LapseReason.REPLACED if replaced else None)
