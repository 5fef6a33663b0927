"""The coding agents and MCP clients that rootsd knows. Each module in `known` is one, as data.

To add an agent, add a file. Nothing else lists them. What the file may say, all of it optional but
the first line:

* `LABEL`: its name for people.
* What the guard knows it by. `PROGRAMS`: the names of its programs, or of the script that an
  interpreter runs. `PACKAGES`: parts of the path of that script. `MARKERS`: the environment
  variables that it sets for its commands, as `NAME` or `NAME=value`. `HINTS`: the same, but a
  person's terminal may also have these. `SOURCE`: how that is known, for docs/AGENTS.md. An
  editor has no `PROGRAMS`, because people type in its terminals.
* `RUNS`: files of a project with commands that it runs, and folders, with `/` at the end. `rootsd
  show` names them. `OBEYS`: all that it takes from a project as settings, commands, or
  instructions. This is read-only behind the wall.
* `ACP`: the command that runs it for an editor (Agent Client Protocol).
* `FOLDER_FLAG`: its flag for one more folder of a session.
* `state()`: what it needs behind the wall.
* `clients()`: its configuration files, and our entry there (`rootsd connect`).
* `access()`: the format of its access lists (`rootsd sync`).
* `hook()`: how it asks before each call of a tool (`rootsd hook`).
* `reach()`: what its settings let it read and write without a question (`rootsd exposure`), with
  those `inside` a project, if any. `SETTINGS`: their paths there, the one that wins last.
  `started_servers()`: which servers of a project's file it starts without a question.

What needs a form is a function, so that a program loads only what it reads (`forms`).

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
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

from rootsd.agents import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def agent_files() -> list[ModuleType]:
    """Return the modules of all agents, in the order of the alphabet."""
    return [_load(name) for name in _file_names()]


def files_with(facet: str) -> list[ModuleType]:
    """Return the modules that have a facet, such as `state`."""
    return [agent for agent in agent_files() if hasattr(agent, facet)]


def project_files(facet: str) -> list[bytes]:
    """Return what all agents have in `RUNS` or `OBEYS`."""
    return [path.encode() for agent in files_with(facet) for path in getattr(agent, facet)]


def named(name: str, facet: str) -> ModuleType | None:
    """Return the module with `facet` of the agent with this name in commands, or None."""
    file = name.replace("-", "_")
    agent = _load(file) if file in _file_names() else None
    return agent if hasattr(agent, facet) else None


def name_of(agent: ModuleType) -> str:
    """Return the name of an agent in commands: that of its file, with `-` for `_`."""
    return agent.__name__.rpartition(".")[2].replace("_", "-")


def with_program(name: str, facet: str) -> ModuleType | None:
    """Return the module with `facet` of the agent whose program has this name, or None."""
    found = (agent for agent in files_with(facet) if name in getattr(agent, "PROGRAMS", ()))
    return next(found, None)


def is_adapter(agent: ModuleType, program: str) -> bool:
    """Return whether a program only runs the agent for editors, without its options."""
    return (program,) == getattr(agent, "ACP", ())


@cache
def _file_names() -> list[str]:
    names = (name for folder in known.__path__ for name in os.listdir(folder))
    return sorted(name[:-3] for name in names if name.endswith(".py") and not name.startswith("_"))


def _load(file: str) -> ModuleType:
    return import_module(f"{known.__name__}.{file}")
