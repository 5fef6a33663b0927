"""Read the files of one client: what is wired, wrapped, and allowed there, and what of it is ours.

Ours is what the record has, and what has exactly the form of ours without a record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.agents import files_with
from rootsd.agents.forms.client import ENTRY_NAME, JSON
from rootsd.agents.forms.place import SettingsPlace
from rootsd.connect.adopt import (
    adopted_entries,
    adopted_hooks,
    adopted_items,
    hook_use,
    hook_words,
    worktree_maker,
)
from rootsd.connect.base import ClientEnvironment, HookUse, McpClient, WorktreeMaker, members
from rootsd.connect.edits import (
    BESIDE,
    AddedEntry,
    AgentCommand,
    AppendedItems,
    Change,
    WrappedServer,
    agent_command,
    agent_entries,
    all_servers,
    hook_commands,
    relayed_agents,
    wrap_of,
    wrap_server,
)
from rootsd.connect.record import ChangedFile, ConnectRecord
from rootsd.connect.servers import (
    ACP,
    ServerEntry,
    ServerId,
    is_bridge,
    is_relayed,
    is_wrapped,
    list_servers,
)
from rootsd.connect.wraps import ServerWrap
from rootsd.core.launchers import launched_program
from rootsd.disk.reader import CONFIG_CAP, read_small
from rootsd.files.private_files import display_path
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import SettingsFormat
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable

_RELAY = (ACP, "--")


class ToolAccess(Enum):
    """Whether the client asks before its model calls our three tools."""

    ASK = "ask"
    ALLOW = "allow"


class Wired(StrEnum):
    """Whether a client has an entry for rootsd, and who wrote it.

    With BROKEN, a person wrote it, and its program does not exist.
    """

    NO = "no"
    YES = "yes"
    BY_HAND = "by hand"
    BROKEN = "broken"


class Wiring(Struct, frozen=True):
    """What rootsd writes into the configuration of a client: as a person wants it, or as it is.

    `rootsd` is the program of our entry, which sets `variables`. `wraps` has the wrapped servers,
    and `agents` what rootsd runs in the entries of an editor's agents.
    """

    rootsd: str
    tools: ToolAccess = ToolAccess.ASK
    wraps: Mapping[ServerId, ServerWrap] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    hook: HookUse = HookUse.NO
    agents: Mapping[str, AgentCommand] = field(default_factory=dict)
    worktrees: WorktreeMaker = WorktreeMaker.CLIENT


class WiringState(Struct, frozen=True):
    """What is in the configuration of a client now: `ours`, and all its `servers`."""

    wired: Wired = Wired.NO
    ours: Wiring = Wiring("")
    servers: tuple[ServerEntry, ...] = ()
    problem: str = ""


class ClientFiles:
    """The configuration files of `client` in one environment. `record` has our changes there."""

    def __init__(
        self, client: McpClient, environment: ClientEnvironment, record: ConnectRecord
    ) -> None:
        self._client = client
        self._environment = environment
        self._record = record
        self.settings = client.settings(environment)
        self._home = environment.home_of(client.facts)
        self._home_place = str(environment.locate(client.facts.places[0]))

    def state(self) -> WiringState:
        """Return what is there. A file that cannot be read makes a problem, not an error."""
        changed = self._record.files(self._client.facts.name)
        try:
            texts = self._texts()
            every = {k: entry for text in texts.values() for k, entry in self._all(text).items()}
        except SettingsUnusable as error:
            return WiringState(problem=error.message)
        except NotEditable as error:
            return WiringState(problem=f"{display_path(self.settings)}: {error}")
        form = self._client.facts.form
        entries = {server.name: entry for server, entry in every.items() if not server.project}
        own = [changed[str(path)] for path in self._files() if str(path) in changed]
        changes = [change for each in own for change in each.changes]
        wired = Wired.NO
        bridges = [
            (words[0], form.variables(entry))
            for entry in entries.values()
            if isinstance(entry, dict) and is_bridge(words := form.words(entry) or ())
        ]
        if bridges:
            is_ours = any(isinstance(change, AddedEntry) for change in changes)
            is_broken = all(_is_gone(program) for program, _ in bridges)
            wired = Wired.YES if is_ours else Wired.BROKEN if is_broken else Wired.BY_HAND
        rootsd, variables = bridges[0] if bridges else ("", {})
        agents = relayed_agents(self._client, texts.get(self.settings, "{}"))
        if agents and not self._client.facts.keys:
            wired = Wired.YES
        tools, hooks = self._tools(entries, changed), self._hooks(changed)
        hook, maker = hook_use(hooks), worktree_maker(hooks)
        ours = Wiring(rootsd, tools, wraps_in(changes), variables, hook, agents, maker)
        servers = tuple(self._servers(texts.get(self.settings, ""), every))
        return WiringState(wired, ours, servers)

    def _files(self) -> list[Path]:
        """Return the settings files of the client, also those that another shell named."""
        known = self._record.files(self._client.facts.name)
        ours = [
            Path(path)
            for path, changed in known.items()
            if self._home_place in changed.homes and wraps_in(changed.changes)
        ]
        return list(dict.fromkeys((*ours, *self._client.settings_files(self._environment))))

    def _texts(self) -> dict[Path, str]:
        """Return the texts of the settings files. Raises SettingsUnusable."""
        found = {path: SettingsFile(path).read() for path in self._files()}
        return {path: text for path, text in found.items() if text}

    def _all(self, text: str) -> dict[ServerId, Any]:
        return all_servers(self._client, text)

    def rootsd_entries(self) -> list[ServerEntry]:
        """Return the entries that start a bridge or a run proxy, also those of one project.

        The list is empty if the file cannot be read; `state` then says why.
        """
        found: dict[ServerId, Any] = {}
        try:
            for text in self._texts().values():
                found |= {**self._all(text), **self._in_project_files(text)}
        except (NotEditable, SettingsUnusable):
            return []
        form = self._client.facts.form
        return [
            ServerEntry(server, words, form.variables(entry))
            for server, entry in found.items()
            if isinstance(entry, dict)
            and (words := form.words(entry)) is not None
            and (is_bridge(words) or is_wrapped(words))
        ]

    def project_file_servers(self) -> list[ServerEntry]:
        """Return the servers in files of projects. They are never wrapped.

        Such a file is under version control, and others use it.
        """
        facts = self._client.facts
        try:
            found = self._in_project_files(SettingsFile(self.settings).read() or "")
        except (NotEditable, SettingsUnusable):
            return []
        return [
            replace(server, obstacle=f"{facts.project_file} is a file of the project")
            for server in list_servers(facts.form, found)
            if not is_wrapped(server.words)
        ]

    def _in_project_files(self, text: str) -> dict[ServerId, Any]:
        """Return the servers in the file of each project that the settings name."""
        facts, found = self._client.facts, {}
        for project in self._client.project_servers(text) if facts.project_file and text else ():
            path = os.path.join(project, facts.project_file)
            with suppress(NotEditable, UnicodeDecodeError):  # a file that is not valid has none
                content = (read_small(os.fsencode(path), CONFIG_CAP) or b"").decode()
                entries = members(facts.language.values(content), facts.keys)
                found.update({ServerId(name, path): entry for name, entry in entries.items()})
        return found

    def _servers(self, text: str, entries: Mapping[ServerId, Any]) -> Iterator[ServerEntry]:
        """Yield the servers. Whether a command can be edited is known only after the edit.

        That would take seconds in the JSON of some clients, with its many megabytes.
        """
        is_sure = self._client.facts.language.edits_every_value
        for server in list_servers(self._client.facts.form, entries):
            project = server.server.project
            if project and not os.path.isdir(project) and not server.obstacle:
                yield replace(server, obstacle="the folder of its project is gone")
                continue
            if server.obstacle or is_sure:
                yield server
                continue
            try:
                wrap_server(self._client, text, server.server, ServerWrap(), ENTRY_NAME)
            except NotEditable as error:
                yield replace(server, obstacle=f"its command is not edited: {error}")
            else:
                yield server

    def adopted(self, path: Path) -> list[Change]:
        """Return what has exactly the form of ours in a file of this home, recorded or not.

        A file that cannot be read has none.
        """
        try:
            return self._adopted_in(path, SettingsFile(path).read() or "")
        except (NotEditable, SettingsUnusable):
            return []

    def agents_to_relay(self) -> dict[str, AgentCommand]:
        """Return what rootsd is to run as agents of an editor, by the names of new entries.

        These are the ones that the editor has, and those on the PATH. Raises NotEditable and
        SettingsUnusable.
        """
        if self._client.facts.agents is None:
            return {}
        text = SettingsFile(self.settings).read()
        found: dict[str, AgentCommand] = {}
        for name, entry in (agent_entries(self._client, text) if text else {}).items():
            words, variables = agent_command(self._client, entry)
            if words and not is_relayed(words):
                found[name + BESIDE] = AgentCommand((*_RELAY, *words), variables)
        known = {launched_program(words[len(_RELAY) :]) for words, _ in found.values()}
        for agent in files_with("ACP"):
            program = self._environment.program(agent.ACP[:1])
            if program is not None and agent.ACP[0] not in known:
                words = (*_RELAY, str(program), *agent.ACP[1:])
                found[agent.LABEL + BESIDE] = AgentCommand(words)
        return found

    def own_files(self) -> list[Path]:
        """Return the files of this home in which `connect` may write. They may be missing."""
        tools, hook = self._client.facts.tools, self._client.facts.hook
        places = [tools.place] if tools is not None and tools.place is not None else []
        places += [hook.place] if hook is not None else []
        others = [self._environment.locate(place) for place in places]
        return list(dict.fromkeys((self.settings, *self._files(), *others)))

    def _adopted_in(self, path: Path, text: str) -> list[Change]:
        facts = self._client.facts
        if not self._language(path).values(text):
            return []
        found = adopted_entries(self._client, text) if path in self._files() else []
        tools, hook = facts.tools, facts.hook
        if tools is not None and tools.place and path == self._environment.locate(tools.place):
            found += adopted_items(text, tools.keys, tools.items)
        if hook is not None and path == self._environment.locate(hook.place):
            found += adopted_hooks(facts.name, text, hook)
        return found

    def _language(self, path: Path) -> SettingsFormat:
        """Return the language of a file. Those beside the settings are in JSON."""
        hook = self._client.facts.hook
        if path in self._files():
            return self._client.facts.language
        return hook.language if hook is not None else JSON

    def _places(self) -> dict[ServerId, Path]:
        """Return the file of each server: the last one that has it.

        A file that cannot be read has none. Writing it fails with the reason.
        """
        found: dict[ServerId, Path] = {}
        for path in self._files():
            with suppress(NotEditable, SettingsUnusable):
                text = SettingsFile(path).read()
                found |= dict.fromkeys(self._all(text) if text else (), path)
        return found

    def _tools(self, entries: Mapping[str, Any], known: Mapping[str, ChangedFile]) -> ToolAccess:
        """Return whether we allowed our tools, in another file or in our entry."""
        tools = self._client.facts.tools
        if tools is None:
            return ToolAccess.ASK
        if tools.place is not None:
            ours = self._changes_in(tools.place, known)
            lists = (change.keys for change in ours if isinstance(change, AppendedItems))
            is_allowed = tools.keys in lists
        else:
            entry = entries.get(ENTRY_NAME)
            is_allowed = isinstance(entry, dict) and tools.members.items() <= entry.items()
        return ToolAccess.ALLOW if is_allowed else ToolAccess.ASK

    def _hooks(self, known: Mapping[str, ChangedFile]) -> Sequence[Change]:
        """Return our changes in the file of the client's hooks."""
        hook = self._client.facts.hook
        return self._changes_in(hook.place, known) if hook else ()

    def _changes_in(
        self, place: SettingsPlace, known: Mapping[str, ChangedFile]
    ) -> Sequence[Change]:
        own = known.get(str(self._environment.locate(place)))
        return own.changes if own is not None else ()

    def hook_programs(self) -> list[str]:
        """Return the program of each permission hook that runs rootsd.

        The list is empty if the file cannot be read.
        """
        hook = self._client.facts.hook
        if hook is None:
            return []
        try:
            text = SettingsFile(self._environment.locate(hook.place)).read() or ""
            values = hook.language.values(text) if text else {}
        except (NotEditable, SettingsUnusable):
            return []
        found = [hook_words(command) for command in hook_commands(values.get("hooks"))]
        return list(dict.fromkeys(words[0] for words in found if words))


def _is_gone(program: str) -> bool:
    """Return whether a program does not exist. Only the client knows where it looks for a name."""
    return os.path.isabs(program) and not os.access(program, os.X_OK)


def wraps_in(changes: Sequence[Change]) -> dict[ServerId, ServerWrap]:
    """Return the servers that these changes wrapped."""
    return {
        change.server: wrap_of(change) for change in changes if isinstance(change, WrappedServer)
    }
