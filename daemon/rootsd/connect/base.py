"""Work with the configuration of an MCP client. `rootsd.agents` has what is known about each."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from rootsd import agents
from rootsd.agents.forms.client import (
    ENTRY_NAME,
    HOOK_COMMAND,
    ClientFacts,
    HookFile,
    nested_hook,
)
from rootsd.agents.forms.place import Platform, SettingsPlace
from rootsd.files.private_files import display_path
from rootsd.settings.formats import Keys

STRICT = "--strict"
_MOVE_TIMEOUT_S = 5
_WORKTREE_TIMEOUT_S = 600
"""How long a client waits for a worktree. A large checkout takes minutes."""


class ClientEnvironment(Struct, frozen=True):
    """The surroundings in which clients are looked for: a home folder, and the variables there."""

    home: Path
    variables: Mapping[str, str]
    platform: Platform

    def locate(self, place: SettingsPlace) -> Path:
        """Return the absolute path of a file or a folder of a client."""
        return Path(place.locate(str(self.home), self.variables, self.platform))

    def in_home(self, home: ClientHome) -> ClientEnvironment:
        """Return these surroundings with another home of a client."""
        others = {k: v for k, v in self.variables.items() if k not in home.variables}
        named = {name: value for name, value in home.variables.items() if value}
        return ClientEnvironment(Path(home.user_home), {**others, **named}, self.platform)

    def home_of(self, facts: ClientFacts) -> ClientHome:
        """Return the home of a client that the variables name."""
        places = [*facts.places, *([facts.folder] if facts.folder is not None else [])]
        places += [facts.tools.place] if facts.tools is not None and facts.tools.place else []
        places += [facts.hook.place] if facts.hook is not None else []
        places += [facts.worktrees] if facts.worktrees is not None else []
        names = {
            variable.name
            for place in places
            for variable in place.variables
            if self.platform in variable.platforms
        }
        values = {name: self.variables.get(name, "") for name in sorted(names)}
        kept = {name: value if os.path.isabs(value) else "" for name, value in values.items()}
        return ClientHome(str(self.home), kept)

    def others(self, facts: ClientFacts) -> list[str]:
        """Return a sentence for each folder with settings that `connect` does not change."""
        found = []
        for other in facts.others:
            pattern = self.locate(other.place)
            folders = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_dir())
            found += [other.what.format(display_path(each)) for each in folders]
        return found

    def program(self, names: Sequence[str]) -> Path | None:
        """Return the first program of these names on the PATH."""
        for name in names:
            found = shutil.which(name, path=self.variables.get("PATH", ""))
            if found is not None:
                return Path(found)
        return None


class ClientHome(Struct, frozen=True):
    """One of the homes of a client: the folders in which it has all of its settings.

    `user_home` is the home folder of the user. `variables` has each variable that can name another
    home, with an empty value if it is not set.
    """

    user_home: str
    variables: Mapping[str, str]

    def command(self, words: str, shell: Mapping[str, str]) -> str:
        """Return a command as a person types it for this home, in a `shell` of these variables."""
        unset = [name for name, value in self.variables.items() if not value and shell.get(name)]
        front = ["env", *(f"-u {name}" for name in unset)] if unset else []
        named = {name: value for name, value in self.variables.items() if value}
        return " ".join([*front, *(f"{k}={shlex.quote(v)}" for k, v in named.items()), words])


class HookUse(Enum):
    """Whether a client asks rootsd before each call of a file tool.

    With STRICT, it refuses a call whose hook fails.
    """

    NO = "no"
    YES = "yes"
    STRICT = "strict"


class WorktreeMaker(Enum):
    """Who makes the worktrees of a client with our hook, and deletes them."""

    CLIENT = "client"
    ROOTSD = "rootsd"


def possible_use(hook: HookFile, use: HookUse) -> HookUse:
    """Return `use`, or YES if the client has no strict hooks."""
    return HookUse.YES if use is HookUse.STRICT and hook.strict is None else use


def hook_entry(hook: HookFile, use: HookUse, command: str) -> dict[str, Any]:
    """Return the entry that runs `command`."""
    is_strict = use is HookUse.STRICT and hook.strict is not None
    entry: dict[str, Any] = _with_command(hook.strict if is_strict else hook.entry, command)
    return entry


def hook_items(
    client: str,
    hook: HookFile,
    use: HookUse,
    words: Sequence[str],
    maker: WorktreeMaker = WorktreeMaker.CLIENT,
) -> dict[Keys, list[dict[str, Any]]]:
    """Return our entries that run `words`, by the keys of the array that gets them."""
    agent = agents.named(client, "hook")
    if agent is None:
        return {}
    dialect, strict = agent.hook(), [STRICT] if use is HookUse.STRICT else []
    entry = hook_entry(hook, use, shlex.join([*words, *strict]))
    items: dict[Keys, list[dict[str, Any]]] = {
        ("hooks", event): [entry] for event in dialect.events
    }
    for event, tools in dialect.moves.items():
        told = _with_command(nested_hook(_MOVE_TIMEOUT_S, tools), shlex.join(words))
        items.setdefault(("hooks", event), []).append(told)
    for event in dialect.worktrees if maker is WorktreeMaker.ROOTSD else ():
        made = _with_command(nested_hook(_WORKTREE_TIMEOUT_S, ""), shlex.join(words))
        items["hooks", event] = [made]
    return items


def _with_command(value: Any, command: str) -> Any:  # noqa: ANN401 - a JSON value
    match value:
        case str():
            return value.replace(HOOK_COMMAND, command)
        case list():
            return [_with_command(each, command) for each in value]
        case dict():
            return {key: _with_command(each, command) for key, each in value.items()}
        case _:
            return value


def members(value: Any, keys: Keys) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    """Return the members of the object at `keys`, none if it is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


class McpClient:
    """One MCP client, as `rootsd connect` needs it. Methods on texts raise NotEditable.

    It keeps its servers as named members of one object.
    """

    def __init__(self, facts: ClientFacts) -> None:
        self.facts = facts

    def settings(self, environment: ClientEnvironment) -> Path:
        """Return the path of the file that has the servers. It may be missing."""
        paths = [environment.locate(place) for place in self.facts.places]
        by_weight = reversed(paths) if self.facts.merged else paths
        return next((path for path in by_weight if os.path.lexists(path)), paths[0])

    def settings_files(self, environment: ClientEnvironment) -> list[Path]:
        """Return the existing files whose servers the client merges, and that of `settings`.

        Of two entries with one name, the later file wins.
        """
        own = self.settings(environment)
        found = dict.fromkeys(map(environment.locate, self.facts.merged)) or [own]
        return [path for path in found if path == own or path.is_file()]

    def is_found(self, environment: ClientEnvironment) -> bool:
        """Return whether the program is on the PATH, or the settings or the folder exist."""
        if environment.program(self.facts.programs) is not None:
            return True
        settings = self.settings(environment)
        folder = environment.locate(self.facts.folder) if self.facts.folder else settings.parent
        return os.path.lexists(settings) or folder.is_dir()

    def servers(self, text: str) -> dict[str, Any]:
        """Return the entries of the servers for all projects, by name."""
        if not self.facts.keys:
            return {}
        found: Any = self.facts.language.values(text)
        for key in self.facts.keys:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}

    def project_servers(self, text: str) -> dict[str, dict[str, Any]]:
        """Return the entries that belong to one project each, by its path and by name."""
        if not self.facts.projects:
            return {}
        projects = members(self.facts.language.values(text), self.facts.projects)
        return {path: members(project, self.facts.keys) for path, project in projects.items()}

    def insert(self, text: str, entry: Mapping[str, Any]) -> tuple[str, list[Keys]]:
        """Return the text with our entry, and the keys of the containers that are new."""
        return self.facts.language.insert(text, self.facts.keys, ENTRY_NAME, entry)

    def remove(self, text: str, made: Sequence[Keys]) -> str:
        """Return the text without our entry, and without those of `made` that are empty then."""
        return self.facts.language.remove(text, (*self.facts.keys, ENTRY_NAME), made)

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the lines that a person can paste for our entry."""
        return self.facts.language.snippet(self.facts.keys, ENTRY_NAME, entry)


class ListingClient(McpClient):
    """A client that keeps its servers as a list, in which each one has a name."""

    def servers(self, text: str) -> dict[str, Any]:
        """Return the items of the list by name."""
        found = self.facts.language.values(text).get(self.facts.keys[0])
        items = [item for item in found if isinstance(item, dict)] if found else []
        return {str(item.get("name", item.get("uses", ""))): item for item in items}

    def insert(self, text: str, entry: Mapping[str, Any]) -> tuple[str, list[Keys]]:
        """Return the text with our item, and the keys of the list if it is new."""
        return self.facts.language.insert_item(text, self.facts.keys, entry)

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the list with our item."""
        return self.insert("", entry)[0].rstrip("\n")
