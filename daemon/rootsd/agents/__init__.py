"""The coding agents that the wall knows: where they keep their state, and what they load from it.

An agent needs its settings, its login, and its history, and all of that lies in the home folder,
where the agents of every project share it. A confined agent that could write there would have its
next start, without a wall, load what it planted: a hook, an MCP server, a skill. One that could
read there would read the transcripts of other projects.

So the folders of a known agent are other folders inside: they belong to one name (`--name`) and
to the project in which the agent was started, and a program outside never loads anything from
them. What the agent needs comes in from outside, in three ways:

* *Loads* are what the agent obeys or runs: settings, instructions, hooks, plugins, skills, MCP
  servers. They are read-only mounts. What does not exist outside is removed at each start.
* *Copies* are such files that the agent also writes. They are copied in when they have changed
  outside, without the parts about projects that the program does not see.
* *Credentials* are copied in likewise, and belong to the name: the newest of its projects serves.

Everything else in these folders is the history of this project, and stays with the name.

Each module in `known` is one agent, as data, and has the name of its program. To add an agent,
add a file. `profile_of` finds it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from rootsd.agents.profile import AgentProfile

_KNOWN = f"{__name__}.known"


def profile_of(program: str) -> AgentProfile | None:
    """Return what is known about the agent whose program has the name `program`, or None."""
    name = program.replace("-", "_")
    if name.startswith("_") or not name.isidentifier() or find_spec(f"{_KNOWN}.{name}") is None:
        return None
    profile: AgentProfile = import_module(f"{_KNOWN}.{name}").PROFILE
    return profile
