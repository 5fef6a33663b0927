"""Ask the helper which folders other programs work in."""

from __future__ import annotations

from collections.abc import Collection

from rootsd.helper.client import Helper, NoAnswer, NoHelper, ask_typed
from rootsd.helper.protocol import HelperTask, typed_answer
from rootsd.processes.activity import folders_in_use, folders_of_tools

_FOLDERS_IN_USE_S = 5.0


def ask_folders_in_use(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Return the ones of `folders` to which a process of this user writes (processes.activity).

    Without a helper, return none. Discovery then waits for a quiet period instead. If the helper
    has no answer this time, return all of them.
    """
    return _ask_for_folders(helper, HelperTask.FOLDERS_IN_USE, folders)


def ask_folders_of_tools(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Return the ones of `folders` in which a VCS or copy tool works, as `ask_folders_in_use`."""
    return _ask_for_folders(helper, HelperTask.FOLDERS_OF_TOOLS, folders)


def _ask_for_folders(
    helper: Helper, task: HelperTask, folders: Collection[bytes]
) -> frozenset[bytes]:
    try:
        return ask_typed(helper, task, frozenset(folders), _FOLDERS_IN_USE_S, frozenset[bytes])
    except NoHelper:
        return frozenset()
    except NoAnswer:
        return frozenset(folders)


@typed_answer
def answer_folders_in_use(question: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ones of these folders that are in use."""
    return folders_in_use(question)


@typed_answer
def answer_folders_of_tools(question: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ones of these folders in which a tool works."""
    return folders_of_tools(question)
