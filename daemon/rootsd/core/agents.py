"""What tells the processes of a coding agent from others. `rootsd.agents` has the known agents.

The guard asks about every program that it does not know as a person's (`core.known_programs`). A
known agent is refused instead, and by its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Agent(Struct, frozen=True):
    """A coding agent, with the words that `rootsd.agents` describes."""

    label: str
    names: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ()
    markers: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()


# Tools ask agents to set this variable (vercel/vercel: packages/detect-agent). Crush, Pi, and
# Claude Code set it. A terminal with a built-in agent may also set it for people.
SAYS_SO = Agent("an agent that says so", hints=frozenset({"AI_AGENT"}))


def further_agents(names: tuple[str, ...], markers: tuple[str, ...]) -> tuple[Agent, ...]:
    """Return the agents that the configuration adds to the known ones."""
    named = tuple(Agent(name, frozenset({name})) for name in names)
    marked = tuple(
        Agent(f"an agent that sets {marker}", markers=frozenset({marker})) for marker in markers
    )
    return (*named, *marked)


def markers_of(agents: Iterable[Agent]) -> frozenset[str]:
    """Return all markers and hints of these agents, which to look for in an environment."""
    return frozenset(marker for agent in agents for marker in agent.markers | agent.hints)
