"""Tell whether a recursive clone still lacks submodules.

git completes the checkout of a repository, including the index, before it clones the first
submodule. But a recursive clone sets `submodule.active` in the configuration at its start.

A submodule that is not there proves nothing: it may be private or deleted, or nobody wants it. So
`lacks_submodules` only says that git may be about to clone one. If git is not at work, a submodule
counts as interrupted only if git has begun to clone it: `has_interrupted_submodule`.

Sources: gitmodules(5), git-config(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice

from rootsd.core.model import ProjectKind
from rootsd.disk.git_pointer import GIT
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import (
    CONFIG_CAP,
    OpenFolder,
    exists_no_follow,
    read_small,
    resolve_path,
)
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import GitRepository, git_stage, open_bare_repository
from rootsd.vcs.stages import Stage

_ACTIVE = re.compile(rb"^[ \t]*\[submodule\][^\[]*^[ \t]*active[ \t]*=", re.MULTILINE)
_PATH = re.compile(rb'^[ \t]*path[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.MULTILINE)
_MAX_SUBMODULES = 200


class _SubmoduleState(Enum):
    """What a submodule is if it has no stage."""

    WHOLE = auto()
    ABSENT = auto()


_WHOLE = _SubmoduleState.WHOLE


def lacks_submodules(project: OpenProject, kind: ProjectKind) -> bool:
    """Return whether a recursive clone lacks a submodule, which git may be about to clone."""
    return any(stage is not _WHOLE for stage in _submodules(project, kind))


def absent_submodules(top: bytes) -> Iterator[bytes]:
    """Yield the paths of the submodules of the checkout at `top` that are not there.

    Nothing on the disk says whether somebody wants them: git may have been killed before them.
    """
    modules = read_small(top + b"/.gitmodules", CONFIG_CAP) or b""
    for path in islice(_PATH.findall(modules), _MAX_SUBMODULES):
        inner = resolve_path(top, path)
        if not inner.startswith(top + b"/") or not may_follow(inner):
            continue
        if not exists_no_follow(inner + b"/" + GIT):
            yield inner[len(top) + 1 :]


def has_interrupted_submodule(project: OpenProject, kind: ProjectKind) -> bool:
    """Return whether git has begun to clone or check out a submodule, and has not finished."""
    if any(map(_is_cut_off, _submodules(project, kind))):
        return True
    git = _recursive_clone(project, kind)
    return git is not None and any(map(_is_cut_off, _module_stages(git.common)))


def _is_cut_off(stage: Stage | _SubmoduleState) -> bool:
    return isinstance(stage, Stage) and stage.quiet_period.outcome is not None


def _recursive_clone(project: OpenProject, kind: ProjectKind) -> GitRepository | None:
    if kind is not ProjectKind.GIT or not project.exists(b".gitmodules"):
        return None
    git = project.git(kind)
    config = b"" if git is None else git.common.read(b"config", CONFIG_CAP) or b""
    return git if _ACTIVE.search(config) else None


def _submodules(project: OpenProject, kind: ProjectKind) -> Iterator[Stage | _SubmoduleState]:
    """Yield the stage of each submodule of a recursive clone, also of nested ones."""
    if _recursive_clone(project, kind) is None:
        return
    todo, left = [project.path], _MAX_SUBMODULES
    while todo and left:
        work = todo.pop()
        modules = read_small(work + b"/.gitmodules", CONFIG_CAP) or b""
        for path in _PATH.findall(modules):
            left -= 1
            inner = resolve_path(work, path)
            if not inner.startswith(work + b"/") or left <= 0:
                continue
            stage = _stage_of(inner) if may_follow(inner) else _SubmoduleState.ABSENT
            yield stage
            if stage is _WHOLE:
                todo.append(inner)


def _stage_of(inner: bytes) -> Stage | _SubmoduleState:
    with OpenProject(inner) as project:
        git = project.git(ProjectKind.GIT)
        return _SubmoduleState.ABSENT if git is None else git_stage(git) or _WHOLE


def _module_stages(common: OpenFolder) -> Iterator[Stage | _SubmoduleState]:
    """Yield the stage of each git directory of a submodule. Their names may have slashes."""
    todo, left = [b"modules"], _MAX_SUBMODULES
    while todo and left:
        group = todo.pop()
        for name in sorted(common.names_in(group)):
            left -= 1
            if left <= 0:
                return
            inside = group + b"/" + name
            with common.folder(inside) as folder:
                if folder.failure is not None:
                    continue
                names = folder.names()
                is_git = b"HEAD" in names or b"objects" in names
                todo.append(inside + b"/modules" if is_git else inside)
                if is_git:
                    yield git_stage(open_bare_repository(folder)) or _WHOLE
