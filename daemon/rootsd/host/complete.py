"""Tells from the disk alone how far along a project of any kind is."""

from __future__ import annotations

import os
import re
import time

from rootsd.core.model import ProjectKind
from rootsd.host.gitdir import TEMPORARY, git_stage, locate, locate_bare
from rootsd.host.markers import VCS_MARKERS
from rootsd.host.reader import (
    CONFIG_CAP,
    PACKED_REFS_CAP,
    REF_CAP,
    join,
    names_in,
    read_small,
)
from rootsd.host.stages import Complete, Nothing, Pending, Stage, State

_REMOTE = re.compile(rb"^[ \t]*\[remote ", re.MULTILINE)
_GIT_KINDS = frozenset(
    (ProjectKind.GIT, ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE, ProjectKind.GIT_BARE)
)


def is_git(kind: ProjectKind) -> bool:
    """Whether git itself made a project of this kind."""
    return kind in _GIT_KINDS


def state_of(path: bytes, kind: ProjectKind) -> State:
    """How far along the project of `kind` at `path` is.

    The kind in the answer may be another: `.git` may be a worktree's, and a `.jj` beside it wins.
    Reads a few small files, about 30 us; raises nothing.
    """
    match kind:
        case ProjectKind.PROJECT | ProjectKind.URI:
            return Complete(kind)
        case ProjectKind.GIT_BARE:
            return _bare_state(path)
        case ProjectKind.GIT | ProjectKind.GIT_WORKTREE | ProjectKind.GIT_SUBMODULE:
            return _git_state(path)
        case ProjectKind.JJ:
            return _of(ProjectKind.JJ, _jj_stage(path))
        case ProjectKind.HG:
            return _of(ProjectKind.HG, _hg_stage(path))
        case _:
            return _other_state(path, kind)


def folders_at_work(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    """The folders whose events tell that a project of `kind` at `path` gets on."""
    match kind:
        case ProjectKind.PROJECT | ProjectKind.URI:
            return ()
        case ProjectKind.JJ:
            return (path + b"/.jj/repo", path + b"/.jj/working_copy")
        case ProjectKind.HG:
            return (path + b"/.hg",)
        case ProjectKind.SVN:
            return (path + b"/.svn",)
        case ProjectKind.GIT_BARE:
            return (path, path + b"/objects/pack")
        case _:
            place = locate(path) if is_git(kind) else None
            if place is None:
                return (path,)
            return (place.folder, place.common + b"/objects/pack")


def untouched_for(path: bytes, kind: ProjectKind) -> float:
    """Seconds since anything changed in the folder itself or in those where work would show.

    By change times, which nobody can set back; 0 where nothing can be told.
    """
    newest = None
    for folder in (path, *folders_at_work(path, kind)):
        for entry in (folder, *(folder + b"/" + name for name in names_in(folder))):
            try:
                changed = os.lstat(entry).st_ctime
            except OSError:
                continue
            newest = changed if newest is None else max(newest, changed)
    return 0.0 if newest is None else max(0.0, time.time() - newest)


def _of(kind: ProjectKind, stage: Stage | None) -> State:
    return Complete(kind) if stage is None else Pending(kind, stage)


def _git_state(path: bytes) -> State:
    if os.path.lexists(path + b"/.jj"):
        return _of(ProjectKind.JJ, _jj_stage(path))
    place = locate(path)
    if place is None:
        if os.path.lexists(path + b"/.git"):
            return Pending(ProjectKind.GIT, Stage.NO_GIT_DIR)
        return Nothing()
    stage = git_stage(place)
    if stage is None:
        return Complete(place.kind, place.main_checkout)
    return Pending(place.kind, stage, place.main_checkout)


def _bare_state(path: bytes) -> State:
    if not os.path.lexists(path + b"/HEAD") or not os.path.isdir(path + b"/objects"):
        return Nothing()
    return _of(ProjectKind.GIT_BARE, git_stage(locate_bare(path)))


def _jj_stage(path: bytes) -> Stage:
    """jj holds no lock while it fetches, so that even a whole repository must be quiet first."""
    repo = path + b"/.jj/repo"
    if not os.path.isdir(repo):
        # A second workspace: a file that names the first one's repository.
        text = read_small(repo, REF_CAP)
        if not text:
            return Stage.JJ_STARTING
        repo = join(path + b"/.jj", text.strip())
    if not os.path.lexists(repo + b"/store/type"):
        return Stage.JJ_STARTING
    working = names_in(path + b"/.jj/working_copy")
    if b"checkout" not in working or b"working_copy.lock" in working:
        return Stage.JJ_STARTING
    if os.path.lexists(repo + b"/git_import_export.lock"):
        return Stage.JJ_STARTING
    target = read_small(repo + b"/store/git_target", REF_CAP)
    if not target:
        return Stage.JJ
    git = join(repo + b"/store", target.strip())
    packs = names_in(git + b"/objects/pack")
    if any(name.startswith(TEMPORARY) or name.endswith(b".keep") for name in packs):
        return Stage.FETCHING
    packed = read_small(git + b"/packed-refs", PACKED_REFS_CAP) or b""
    fetched = os.path.lexists(git + b"/refs/remotes") or b"refs/remotes" in packed
    if not fetched and _REMOTE.search(read_small(git + b"/config", CONFIG_CAP) or b""):
        return Stage.CONNECTING
    return Stage.JJ


def _hg_stage(path: bytes) -> Stage | None:
    names = names_in(path + b"/.hg")
    if not names >= {b"requires", b"store"}:
        return Stage.HG_STARTING
    if not names.isdisjoint((b"wlock", b"updatestate")):
        return Stage.HG_LOCKED
    if os.path.lexists(path + b"/.hg/store/lock"):
        return Stage.HG_LOCKED
    return None if b"dirstate" in names else Stage.HG_NO_DIRSTATE


def _other_state(path: bytes, kind: ProjectKind) -> State:
    markers = (marker for marker, its_kind in VCS_MARKERS.items() if its_kind is kind)
    if any(os.path.lexists(path + b"/" + marker) for marker in markers):
        return Pending(kind, Stage.OTHER)
    return Nothing()
