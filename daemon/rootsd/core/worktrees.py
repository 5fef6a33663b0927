"""When a linked worktree inherits the approval of its main checkout.

Anybody can write a `.git` file that names an approved repository, and an archive can hold the
link back as well. Two things cannot be forged by a file: the birth time of a folder, and the
moment at which a person approved. A worktree inherits only if all of these hold:

* The repository links back to it. `rootsd.host.vcs.gitdir` checks that.
* `git worktree add` made it: the folder, its `.git` file, and its entry in the repository were
  born within two seconds.
* It is not a parent, and it holds no parent, no main checkout and no other known project. It may
  hold worktrees that inherit from the same main checkout: they are published anyway.
* Neither its `.git` file nor its entry was replaced since the last grant.
* Its entry was born after the approval, or the person saw the folder and confirmed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rootsd.core.model import Identity
from rootsd.core.paths import contains

TOGETHER_NS = 2 * 10**9


class Doubt(StrEnum):
    """Why a worktree of an approved main checkout does not inherit the approval."""

    NO_BIRTH_TIMES = "its file system does not record when files were created"
    BORN_APART = "its folder, its .git file and its entry in git were not created together"
    REPLACED = "its .git file or its entry in git was replaced"
    PARENT = "it is a parent, or holds one"
    HOLDS_MAIN = "it holds its main checkout"
    HOLDS_PROJECT = "it holds another project"
    OLDER = "it existed before its main checkout was approved"


def entry_born_ns(identity: Identity | None) -> int | None:
    """Return when the repository got its entry for a worktree, or None if nothing tells."""
    target = identity.git_target if identity is not None else None
    return target.born_ns if target is not None else None


def doubt_about_birth(identity: Identity | None) -> Doubt | None:
    """Return why a folder may not have been made by `git worktree add`, or None if it was."""
    if identity is None:
        return Doubt.NO_BIRTH_TIMES
    births = [identity.born_ns, identity.git_born_ns, entry_born_ns(identity)]
    known = [born for born in births if born is not None]
    if len(known) < len(births):
        return Doubt.NO_BIRTH_TIMES
    return Doubt.BORN_APART if max(known) - min(known) > TOGETHER_NS else None


def doubt_about_place(path: bytes, main: bytes, parents: Iterable[bytes]) -> Doubt | None:
    """Return why a folder at `path` would show more than a worktree of `main`, or None."""
    if any(contains(path, parent) for parent in parents):
        return Doubt.PARENT
    return Doubt.HOLDS_MAIN if contains(path, main) else None
