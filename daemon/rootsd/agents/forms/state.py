"""What an agent gets behind the wall: its state, and how it starts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from rootsd.agents.forms.place import SettingsPlace


class OwnSandbox(Enum):
    """Whether an agent may make a sandbox of its own inside."""

    OFF = "off"
    ALLOWED = "allowed"


TOP: tuple[str, ...] = ()
"""The keys of the object that is the file."""


class CopiedFile(NamedTuple):
    """A file of settings that the agent writes. It is JSON, JSON with comments, or TOML.

    * `by_project`: the objects and lists in it whose members are named by folders, each as the
      keys that lead there. Members about folders that are not visible are left out.
    * `without`: members of the whole that are left out.
    * `beside`: where it is below the home folder, unless a variable moves the agent's folder.
    """

    path: str
    by_project: tuple[tuple[str, ...], ...] = ()
    without: tuple[str, ...] = ()
    beside: str = ""


class SandboxSwitch(NamedTuple):
    """A boolean in a JSON file that turns on a sandbox, which cannot work inside."""

    path: str
    keys: tuple[str, ...]


class AgentFolder(NamedTuple):
    """A folder of an agent's state.

    * `place`: where it is. A variable that names this very folder is always set inside.
    * `loads`: what is read-only, as names or patterns of names.
    * `copies` and `credentials`: files that are copied in.
    * `sandboxes`: switches in `loads` that turn the agent's own sandbox on.
    """

    place: SettingsPlace
    loads: tuple[str, ...] = ()
    copies: tuple[CopiedFile, ...] = ()
    credentials: tuple[str, ...] = ()
    sandboxes: tuple[SandboxSwitch, ...] = ()


class WithoutSandbox(NamedTuple):
    """How an agent starts whose own sandbox cannot work inside.

    * `arguments`: to be inserted before the user's, but not for an adapter.
    * `settings`: what copied files have in place of the user's settings of the same names, as
      lines of TOML without headers, by the path of the file.
    * `adapter_variable`: where an adapter gets the same settings as members of a JSON object.
    * `remark`: the sentence to print about it.
    """

    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})
    adapter_variable: str = ""
    remark: str = ""


class AgentState(NamedTuple):
    """What an agent needs behind the wall.

    * `folders`: its state.
    * `reads`: what it reads besides, below the home folder: its program, and shared instructions.
    * `caches`: its caches below the home folder, copy-on-write.
    * `variables`: to be set inside unless the user has set them.
    * `without_sandbox`: what replaces its own sandbox.
    * `is_tried`: whether it was run behind the wall.
    """

    folders: tuple[AgentFolder, ...]
    reads: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    without_sandbox: WithoutSandbox = WithoutSandbox()
    is_tried: bool = False
