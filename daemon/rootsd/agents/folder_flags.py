"""Tell an agent about more folders in the command that starts it, by its own flag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rootsd.agents import is_adapter, with_program
from rootsd.core.launchers import launched_program


def with_folders(words: Sequence[str], folders: Iterable[str]) -> tuple[str, ...] | None:
    """Return the command of an agent with each folder, or None if it has no flag for that.

    The flags come last, but before `--`. Some agents take every word behind as one more folder.
    """
    program = launched_program(words)
    agent = with_program(program, "FOLDER_FLAG")
    if agent is None or is_adapter(agent, program):
        return None
    at = words.index("--") if "--" in words else len(words)
    flags = (f"{agent.FOLDER_FLAG}={folder}" for folder in folders)
    return (*words[:at], *flags, *words[at:])
