"""Say in a sentence why discovery leaves a folder out, and which command includes it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.labels import safe_label


def explain_exclusion(found: Exclusion, path: bytes) -> str:
    """Return a clause that says why `path` is not found, with the command that helps."""
    clause, remedy = _CLAUSES[found.reason](found), remedy_for(found, path)
    return f"{clause} ({remedy})" if remedy else clause


def left_out_sentence(found: Exclusion) -> str:
    """Return a sentence that names the folder that is left out, and the command that helps."""
    sentence, shown = explain_exclusion(found, found.at), _shown(found.at)
    return sentence if shown in clause_of(found) else f"{shown}: {sentence}"


def clause_of(found: Exclusion) -> str:
    """Return the clause of `explain_exclusion` without the command."""
    return _CLAUSES[found.reason](found)


def remedy_for(found: Exclusion, path: bytes) -> str:
    """Return the command that includes the folder `path`, or lets a person find out more."""
    match found.reason:
        case ExclusionReason.NO_FOLDER:
            return ""
        case ExclusionReason.UNREADABLE:
            return f"ls -ld {_word(found.at)}"
        case ExclusionReason.UNRESPONSIVE:
            return f"findmnt --target {_word(found.at)}"
        case ExclusionReason.DEPTH:
            return f"rootsd parent set {_word(found.other)} --depth {found.levels}"
        case ExclusionReason.MOUNT:
            return f"rootsd parent set {_word(found.other)} --mounts local"
        case ExclusionReason.REMOTE_MOUNT:
            return f"rootsd parent set {_word(found.other)} --mounts all"
        case ExclusionReason.LINK:
            target = os.path.normpath(os.path.join(os.path.dirname(found.at), found.other))
            return f"rootsd parent add {_word(target)}"
        case ExclusionReason.HIDDEN | ExclusionReason.SKIPPED_NAME if found.at == path:
            return f"rootsd parent add {_word(path)}"
        case ExclusionReason.OUTSIDE:
            return f"rootsd add {_word(found.at)}"
        case _:
            return f"rootsd add {_word(path)}"


def _word(path: bytes) -> str:
    """Return a path as a word for a shell."""
    return shlex.quote(safe_label(path, limit=None))


def _in_project(found: Exclusion) -> str:
    inside = _shown(found.other) if found.other else "another project"
    return f"it lies in {inside}, and rootsd proposes nothing inside a project"


def _no_marker(found: Exclusion) -> str:
    if found.other:
        return f"it is a part of {_shown(found.other)}"
    return f"{_shown(found.at)} is neither a repository nor a folder with a project file"


def _depth(found: Exclusion) -> str:
    return (
        f"it is {found.levels} levels below {_shown(found.other)}, which is deeper than rootsd"
        " looks there"
    )


def _shown(path: bytes) -> str:
    return safe_label(path, limit=None)


def _about(text: str) -> Callable[[Exclusion], str]:
    return lambda found: text.format(at=_shown(found.at), other=_shown(found.other))


_CLAUSES: Mapping[ExclusionReason, Callable[[Exclusion], str]] = MappingProxyType(
    {
        ExclusionReason.HIDDEN: _about("rootsd does not look into hidden folders such as {at}"),
        ExclusionReason.SKIPPED_NAME: _about(
            "rootsd does not look into {at}, because folders of that name hold dependencies or"
            " build output"
        ),
        ExclusionReason.DISCARDED: _about(
            "{at} is a recycle bin, or is kept by the file system, and rootsd proposes nothing"
            " in it"
        ),
        ExclusionReason.SKIP_SETTING: _about("the setting skip of the parent leaves out {at}"),
        ExclusionReason.CACHE: _about("it lies in a cache: a CACHEDIR.TAG marks {at}"),
        ExclusionReason.MOUNT: _about(
            "another file system is mounted at {at}, and rootsd stays on that of the parent"
        ),
        ExclusionReason.REMOTE_MOUNT: _about(
            "a file system of another machine or program is mounted at {at}, and rootsd stays on"
            " that of the parent"
        ),
        ExclusionReason.PARENT: _about("{at} is another parent"),
        ExclusionReason.DEPTH: _depth,
        ExclusionReason.LINK: _about(
            "{at} is a symbolic link to {other}, and rootsd follows no links"
        ),
        ExclusionReason.IN_PROJECT: _in_project,
        ExclusionReason.UNREADABLE: _about("{at} cannot be read by you"),
        ExclusionReason.UNRESPONSIVE: _about("the file system of {at} does not respond"),
        ExclusionReason.NO_FOLDER: _about("there is nothing at {at}"),
        ExclusionReason.NO_MARKER: _no_marker,
        ExclusionReason.OUTSIDE: _about("no watched folder contains {at}"),
    }
)
