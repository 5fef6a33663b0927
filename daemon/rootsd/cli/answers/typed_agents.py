"""Have agents start behind the wall whenever a person types their names: `[confine] agents`.

The functions of `rootsd shell-init` do that. So a change counts in new shells.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from rootsd.agents import files_with, named, with_program
from rootsd.cli.answers.first_run import shell_line
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import shown_path
from rootsd.connect.trial import has_wall
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.wire.request import ApplyMode

_KEY = "confine.agents"


class UnknownAgent(RootsdError):
    """A name of no agent, or of one that has no profile behind the wall."""

    code = ErrorCode.NOTHING_MATCHED


class NoWall(RootsdError):
    """The wall does not work on this system."""

    code = ErrorCode.REFUSED


def program_of(typed: str) -> str:
    """Return the program of an agent that has a profile behind the wall.

    `typed` is the name of the program or of the agent. Raises UnknownAgent.
    """
    if with_program(typed, "state") is not None:
        return typed
    if (agent := named(typed, "state")) is not None:
        return str(agent.PROGRAMS[0])
    shown = safe_label(typed)
    if with_program(typed, "PROGRAMS") is not None:
        raise UnknownAgent(
            f"{shown} has no profile, so it would have no login and no settings behind the wall",
            f"rootsd confine -- {shown}",
        )
    known = sorted(agent.PROGRAMS[0] for agent in files_with("state"))
    similar = nearest(typed, known)
    hint = did_you_mean(similar) or f"; it knows {', '.join(known)}"
    message = f"rootsd knows no agent called {shown}{hint}"
    raise UnknownAgent(message, "rootsd connect --confine claude", typed=typed, choices=similar)


def programs_of_clients(names: Iterable[str]) -> list[str]:
    """Return the programs of MCP clients."""
    wanted = set(names)
    return [
        program
        for agent in files_with("clients")
        if any(facts.name in wanted for facts in agent.clients())
        for program in getattr(agent, "PROGRAMS", ())
    ]


def set_agents(invocation: Invocation, names: Sequence[str], effect: ApplyMode) -> None:
    """Write which agents start behind the wall, and have a daemon load that. Raises RootsdError.

    Raises NoWall if there are any, and the wall does not work here.
    """
    from rootsd.cli.answers import config_edit, lifecycle
    from rootsd.config.reference import find_key

    if names and not has_wall():
        raise NoWall("the wall does not work here, so no agent could start", "rootsd doctor")
    if names:
        config_edit.set_key(invocation, find_key(_KEY), list(names), effect)
    else:
        config_edit.unset_key(invocation, find_key(_KEY), effect)
    if effect is ApplyMode.APPLY:
        lifecycle.reload_if_running(invocation, f"config set {_KEY} {' '.join(names)}")


def agents_now(invocation: Invocation) -> list[str]:
    """Return the agents that start behind the wall. Raises BadConfig."""
    from rootsd.config.configuration import read_config

    return list(read_config(invocation.places.config_file).wall.agents)


def describe(name: str) -> str:
    """Return a sentence for people about an agent that starts behind the wall."""
    return f"{name} starts behind the wall when you type it; once outside: {name} --outside"


def missing_line() -> str | None:
    """Return a sentence about the line that this person's shell lacks, or None."""
    line = shell_line("shell-init", Path.home(), os.environ)
    if line is None:
        return "This works in bash, zsh, and fish, with a line for each: rootsd shell-init --help"
    if line.is_there():
        return None
    shown = shown_path(line.file)
    return f"Your shell does not know that yet. Add this line to {shown}: {line.line}"
