"""The agents as the guard knows them: the names of their processes, and what they set."""

from __future__ import annotations

from rootsd.agents import files_with
from rootsd.core.agents import SAYS_SO, Agent, further_agents


def guarded_agents(
    names: tuple[str, ...] = (), markers: tuple[str, ...] = ()
) -> tuple[Agent, ...]:
    """Return all agents. The configuration adds `names` of programs, and `markers`."""
    known = (
        Agent(
            agent.LABEL,
            frozenset(agent.PROGRAMS),
            getattr(agent, "PACKAGES", ()),
            frozenset(getattr(agent, "MARKERS", ())),
            frozenset(getattr(agent, "HINTS", ())),
        )
        for agent in files_with("PROGRAMS")
    )
    return (*known, SAYS_SO, *further_agents(names, markers))
