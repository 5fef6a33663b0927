"""Tells whether `git clone --recurse-submodules` has come to its end.

git finishes the checkout of the repository itself, index and all, before it clones the first
submodule. That it was asked to is in the configuration from the start: `submodule.active`.
Source: gitmodules(5), git-config(1).
"""

from __future__ import annotations

import re

from rootsd.core.model import ProjectKind
from rootsd.host.disk.leads import may_follow
from rootsd.host.disk.reader import CONFIG_CAP, exists_inside, join, read_small
from rootsd.host.vcs.gitdir import GitPlace, git_stage, locate

_ACTIVE = re.compile(rb"^[ \t]*\[submodule\][^\[]*^[ \t]*active[ \t]*=", re.MULTILINE)
_PATH = re.compile(rb'^[ \t]*path[ \t]*=[ \t]*"?([^"\r\n]+?)"?[ \t]*$', re.MULTILINE)
_MOST = 200


def lacks_submodules(path: bytes, kind: ProjectKind) -> bool:
    """Whether a clone that is to have all its submodules lacks one of them still."""
    if kind is not ProjectKind.GIT or not exists_inside(path + b"/.gitmodules"):
        return False
    place = locate(path)
    return place is not None and _lacks_submodules(place)


def _lacks_submodules(place: GitPlace) -> bool:
    config = read_small(place.common + b"/config", CONFIG_CAP) or b""
    if not _ACTIVE.search(config):
        return False
    todo, left = [place.work], _MOST
    while todo and left:
        work = todo.pop()
        modules = read_small(work + b"/.gitmodules", CONFIG_CAP) or b""
        for path in _PATH.findall(modules):
            left -= 1
            inner = join(work, path)
            if not inner.startswith(work + b"/") or left <= 0:
                continue
            found = locate(inner) if may_follow(inner) else None
            if found is None or git_stage(found) is not None:
                return True
            todo.append(inner)
    return False
