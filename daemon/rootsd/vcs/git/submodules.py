"""Tell whether a recursive clone still lacks submodules.

git completes the checkout of a repository, including the index, before it clones the first
submodule. But a recursive clone sets `submodule.active` in the configuration at its start.
Sources: gitmodules(5), git-config(1).
"""

from __future__ import annotations

import re

from rootsd.core.model import ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import CONFIG_CAP, read_small, resolve_path
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import git_stage

_ACTIVE = re.compile(rb"^[ \t]*\[submodule\][^\[]*^[ \t]*active[ \t]*=", re.MULTILINE)
_PATH = re.compile(rb'^[ \t]*path[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.MULTILINE)
_MAX_SUBMODULES = 200


def lacks_submodules(project: OpenProject, kind: ProjectKind) -> bool:
    """Return whether a recursive clone still lacks a submodule."""
    if kind is not ProjectKind.GIT or not project.exists(b".gitmodules"):
        return False
    git = project.git(kind)
    config = b"" if git is None else git.common.read(b"config", CONFIG_CAP) or b""
    if not _ACTIVE.search(config):
        return False
    todo, left = [project.path], _MAX_SUBMODULES
    while todo and left:
        work = todo.pop()
        modules = read_small(work + b"/.gitmodules", CONFIG_CAP) or b""
        for path in _PATH.findall(modules):
            left -= 1
            inner = resolve_path(work, path)
            if not inner.startswith(work + b"/") or left <= 0:
                continue
            if not may_follow(inner) or not _is_whole(inner):
                return True
            todo.append(inner)
    return False


def _is_whole(inner: bytes) -> bool:
    with OpenProject(inner) as project:
        git = project.git(ProjectKind.GIT)
        return git is not None and git_stage(git) is None
