"""Make and delete worktrees for an agent that lets its hook do so, as Claude Code can.

A hook for this event replaces the agent's own `git worktree add`. So the worktree has the place
and the branch that Claude Code would give it. It starts at the commit of the folder where the
agent works. The agent takes the path on standard output, and any other exit status than 0 for a
refusal, whose reason is on standard error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress

from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import is_utf8

TYPE_CHECKING = False  # an import of typing would take a seventh of the whole run
if TYPE_CHECKING:
    from collections.abc import Callable

_PLACE = ".claude/worktrees"
_BRANCH = "worktree-"
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._+-]{1,64}")
_OF_ANOTHER_REPOSITORY = (
    "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX", "GIT_WORK_TREE",
)  # fmt: skip


class WorktreeRefused(RootsdError):
    """An error: rootsd did not make or delete a worktree."""

    code = ErrorCode.REFUSED


def answer(event: object, refuse_denied: Callable[[str], None]) -> int:
    """Do what one event asks for, and return the exit status.

    `refuse_denied` raises RootsdError for a path in a folder that a person denied.
    """
    try:
        match event:
            case {"cwd": str() as here} if os.path.isabs(here):
                refuse_denied(here)
            case _:
                pass
        match event:
            case {"hook_event_name": "WorktreeCreate", "name": str() as name, "cwd": str() as cwd}:
                sys.stdout.write(f"{make(cwd, name, refuse_denied)}\n")
            case {"hook_event_name": "WorktreeRemove", "worktree_path": str() as tree}:
                remove(tree)
            case _:
                raise WorktreeRefused("the event has an unexpected form", "rootsd doctor")
    except RootsdError as error:
        sys.stderr.write(f"rootsd: {error.message} (try: {error.remedy})\n")
        return Exit.FAILED
    return Exit.OK


def make(here: str, name: str, refuse_denied: Callable[[str], None]) -> str:
    """Return the path of the worktree `name` of the repository around `here`, made if need be.

    Raises WorktreeRefused, and what `refuse_denied` raises.
    """
    flat = name.replace("/", "+")
    if not _NAME.fullmatch(flat):
        shown = safe_label(name)
        raise WorktreeRefused(f"{shown} is no name of a worktree", "letters, digits, and . _ -")
    checkout = _main_checkout(here)
    tree, branch = os.path.join(_place_in(checkout), flat), _BRANCH + flat
    refuse_denied(tree)  # `here` may be in another worktree, which is approved
    if os.path.isfile(os.path.join(tree, ".git")) and _main_checkout(tree) == checkout:
        return tree
    known = _git(here, "branch", "--list", "--format=%(refname:short)", branch)
    _git(here, "worktree", "add", *([tree, branch] if known else ["-b", branch, tree]))
    return tree


def remove(tree: str) -> None:
    """Delete a worktree that `make` made, and its branch unless that has commits of its own.

    Raises WorktreeRefused.
    """
    tree = os.path.realpath(tree)
    checkout = _main_checkout(tree)
    if os.path.dirname(tree) != _place_in(checkout):
        shown = safe_label(os.fsencode(tree), limit=None)
        raise WorktreeRefused(f"{shown} is not in {_PLACE}", "git worktree remove")
    _git(checkout, "worktree", "remove", "--force", tree)
    with suppress(WorktreeRefused):  # the branch has commits that no other one has, or is gone
        _git(checkout, "branch", "--delete", _BRANCH + os.path.basename(tree))


def _place_in(checkout: str) -> str:
    """Return the folder of the worktrees. A link in the repository could lead anywhere."""
    place = os.path.join(checkout, _PLACE)
    if os.path.realpath(place) != place:
        shown = safe_label(os.fsencode(place), limit=None)
        raise WorktreeRefused(f"{shown} leads elsewhere through a link", f"rm {shown}")
    return place


def _main_checkout(here: str) -> str:
    """Return the folder of the repository around `here` that is no linked worktree.

    Raises WorktreeRefused for a path that git or the agent could not pass on as it is.
    """
    words = ("--path-format=absolute", "--git-common-dir", "--show-toplevel")
    common, *tops = _git(here, "rev-parse", *words).split("\n")
    is_plain = os.path.basename(common) == ".git"
    checkout = os.path.realpath(os.path.dirname(common) if is_plain else tops[-1])
    if len(tops) != 1 or not is_utf8(os.fsencode(checkout)):
        shown = safe_label(os.fsencode(checkout), limit=None)
        raise WorktreeRefused(f"{shown} has a newline or is not UTF-8", "git worktree add")
    return checkout


def _git(here: str, *words: str) -> str:
    """Return what git prints in the folder `here`. Raises WorktreeRefused."""
    variables = {k: v for k, v in os.environ.items() if k not in _OF_ANOTHER_REPOSITORY}
    command = ["git", "-C", here, *words]
    try:
        done = subprocess.run(  # noqa: S603 - the agent asks for just this
            command, stdin=subprocess.DEVNULL, capture_output=True, env=variables, cwd="/",
            check=False,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise WorktreeRefused(f"git cannot run: {error}", "command -v git") from error
    if done.returncode != 0:
        why = done.stderr.strip().rpartition(b"\n")[2] or b"status %d" % done.returncode
        shown = safe_label(why, limit=300)
        raise WorktreeRefused(f"git {words[0]} failed: {shown}", "git worktree list")
    return os.fsdecode(done.stdout.removesuffix(b"\n"))
