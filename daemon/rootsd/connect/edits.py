"""Change the text of a client's configuration, and take each change back. Pure.

Each change keeps what is needed to take it back later, when a person or the client has changed the
rest of the file. What was changed itself is left alone, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.agents.forms.client import ENTRY_NAME, JSON
from rootsd.connect.base import McpClient, members
from rootsd.connect.servers import ServerId, is_bridge, is_relayed, is_wrapped
from rootsd.connect.wraps import ServerWrap
from rootsd.settings import json_spans
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import Keys

BESIDE = " (rootsd)"
"""The end of the name of an agent under `rootsd acp`, beside the one without."""


class AgentCommand(NamedTuple):
    """A command of an editor, and the variables that its entry sets."""

    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})


class EntryTaken(NotEditable):
    """Another server has the name of our entry."""


class AddedEntry(Struct, frozen=True, tag="entry"):
    """Our entry was inserted, with the containers `made` around it."""

    made: tuple[Keys, ...]


class AddedAgents(Struct, frozen=True, tag="agents"):
    """Agents under `rootsd acp` were inserted by these names, with the containers `made`."""

    names: tuple[str, ...]
    made: tuple[Keys, ...]


class WrappedServer(Struct, frozen=True, tag="wrapped"):
    """Words were put before the command of a server.

    `keys` lead to the object with the command, and `front` are the words after the program.
    `program` is the raw text of the program from before, or None if it stands in the list, too.
    `arguments` is the raw text of the list, or None if there was none. `added` are the members
    that the entry got.
    """

    server: ServerId
    keys: Keys
    front: tuple[str, ...]
    program: str | None
    arguments: str | None
    added: Mapping[str, Any] = field(default_factory=dict)


class AppendedItems(Struct, frozen=True, tag="items"):
    """JSON values were appended to an array, with the containers `made` around it."""

    keys: Keys
    items: tuple[Any, ...]
    made: tuple[Keys, ...]


Change = AddedEntry | AddedAgents | WrappedServer | AppendedItems


def add_entry(
    client: McpClient,
    text: str,
    words: Sequence[str],
    extra: Mapping[str, Any],
    variables: Mapping[str, str],
) -> tuple[str, list[Change]]:
    """Return the text with our entry, and the change; no change if a person wrote the entry.

    Raises EntryTaken and NotEditable.
    """
    entries = client.servers(text)
    if _bridge_in(client, entries) is not None:
        return text, []
    if ENTRY_NAME in entries:
        raise EntryTaken(f"another server is named {ENTRY_NAME}")
    after, made = client.insert(text, client.facts.form.entry(words, extra, variables))
    return after, [AddedEntry(tuple(made))]


def agent_entries(client: McpClient, text: str) -> dict[str, Any]:
    """Return the entries of an editor's agents by name. Raises NotEditable."""
    agents = client.facts.agents
    return {} if agents is None else members(client.facts.language.values(text), agents.keys)


def agent_command(client: McpClient, entry: object) -> AgentCommand:
    """Return the command in an agent's entry; an empty one if it has none."""
    agents = client.facts.agents
    if agents is None or not isinstance(entry, dict):
        return AgentCommand()
    return AgentCommand(agents.form.words(entry) or (), agents.form.variables(entry))


def relayed_agents(client: McpClient, text: str) -> dict[str, AgentCommand]:
    """Return what rootsd runs in the entries of our form, by name. Raises NotEditable."""
    found = agent_entries(client, text)
    commands = {name: agent_command(client, entry) for name, entry in found.items()}
    return {
        name: AgentCommand(words[1:], variables)
        for name, (words, variables) in commands.items()
        if name.endswith(BESIDE) and is_relayed(words)
    }


def add_agents(
    client: McpClient,
    text: str,
    commands: Mapping[str, AgentCommand],
    rootsd: str,
    variables: Mapping[str, str],
) -> tuple[str, list[Change]]:
    """Return the text with an entry for each command of `rootsd`, by its name.

    An entry that is there already stays as it is. Raises NotEditable.
    """
    agents = client.facts.agents
    there = agent_entries(client, text)
    new = {name: command for name, command in commands.items() if name not in there}
    if agents is None or not new:
        return text, []
    containers: list[Keys] = []
    for name, (words, own) in new.items():
        entry = agents.form.entry((rootsd, *words), {}, {**own, **variables})
        text, made = client.facts.language.insert(text, agents.keys, name, entry)
        containers += made
    return text, [AddedAgents(tuple(new), tuple(containers))]


def wrap_server(
    client: McpClient, text: str, server: ServerId, wrap: ServerWrap, rootsd: str
) -> tuple[str, list[Change]]:
    """Return the text with the words of `wrap` before the command of a server.

    `rootsd` is the path of the command. Raises NotEditable.
    """
    language, form = client.facts.language, client.facts.form
    front = wrap.front(rootsd)
    place = place_of(client, server)
    entry = all_servers(client, text).get(server)
    words = form.words(entry) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or words is None:
        return text, []
    missing = {key: value for key, value in form.wrapped.items() if key not in entry}
    if missing:
        text, _ = json_spans.insert(text, json_spans.Items(place, missing))
    keys = (*place, *form.command_keys(entry))
    if form.arguments is None:
        raw = _raw(client, text, (*keys, form.program))
        text = language.replace(text, (*keys, form.program), language.prepend(raw, front))
        return text, [WrappedServer(server, keys, front, None, raw, missing)]
    program = _raw(client, text, (*keys, form.program))
    after = [*front[1:], *(wrap.program or words[:1])]
    arguments = (*keys, form.arguments)
    raw_arguments = language.raw(text, arguments)
    if raw_arguments is None:
        text = language.insert_beside(text, (*keys, form.program), form.arguments, after)
    else:
        text = language.replace(text, arguments, language.prepend(raw_arguments, after))
    text = language.replace(text, (*keys, form.program), language.literal(front[0]))
    return text, [WrappedServer(server, keys, tuple(after), program, raw_arguments, missing)]


def place_of(client: McpClient, server: ServerId) -> Keys:
    """Return the keys that lead to the entry of a server."""
    project = (*client.facts.projects, server.project) if server.project else ()
    return (*project, *client.facts.keys, server.name)


def all_servers(client: McpClient, text: str) -> dict[ServerId, Any]:
    """Return the entries of all servers, those for all projects first. Raises NotEditable."""
    found = {ServerId(name): entry for name, entry in client.servers(text).items()}
    for project, entries in client.project_servers(text).items():
        found |= {ServerId(name, project): entry for name, entry in entries.items()}
    return found


def wrap_of(change: WrappedServer) -> ServerWrap:
    """Return how a server was wrapped."""
    if change.program is None:
        return ServerWrap.parse((*change.front, ENTRY_NAME)) or ServerWrap()
    found = ServerWrap.parse((ENTRY_NAME, *change.front)) or ServerWrap()
    program = change.front[len(found.front(ENTRY_NAME)) - 1 :]
    return replace(found, program=program if len(program) > 1 else ())


def append_items(text: str, keys: Keys, items: Sequence[Any]) -> tuple[str, list[Change]]:
    """Return JSON text with those of `items` that the array at `keys` lacks.

    Raises NotEditable.
    """
    whole, object_made = JSON.with_object(text)
    there = json_spans.contents(whole, keys, is_mapping=False)
    missing = [item for item in items if item not in there]
    if not missing:
        return text, []
    after, made = json_spans.insert(whole, json_spans.Items(keys, missing))
    return after, [AppendedItems(keys, tuple(missing), (*object_made, *made))]


def with_containers(changes: Sequence[Change], earlier: Sequence[Change]) -> list[Change]:
    """Return the changes with the containers that we made `earlier` for the same entries.

    Others may have entries in such a container by now. It still goes when it is empty.
    """
    found: list[Change] = []
    for change in changes:
        match change:
            case AddedEntry(made):
                before = [each.made for each in earlier if isinstance(each, AddedEntry)]
                found.append(AddedEntry(_united(*before, made)))
            case AddedAgents(_, made):
                before = [each.made for each in earlier if isinstance(each, AddedAgents)]
                found.append(replace(change, made=_united(*before, made)))
            case AppendedItems(keys, _, made):
                before = [
                    each.made
                    for each in earlier
                    if isinstance(each, AppendedItems) and each.keys == keys
                ]
                found.append(replace(change, made=_united(*before, made)))
            case _:
                found.append(change)
    return found


def _united(*made: Sequence[Keys]) -> tuple[Keys, ...]:
    return tuple(dict.fromkeys(keys for each in made for keys in each))


def take_back(client: McpClient, text: str, changes: Sequence[Change]) -> tuple[str, list[str]]:
    """Return the text without our changes, and a sentence for each that a person replaced.

    Raises NotEditable.
    """
    left: list[str] = []
    for change in reversed(changes):
        match change:
            case AddedEntry(made):
                text, kept = _without_entry(client, text, made)
            case AddedAgents(names, made):
                text, kept = _without_agents(client, text, names, made)
            case WrappedServer():
                found = _renamed(client, text, change, changes)
                text, kept = _unwrapped(client, text, found)
                if found.added and not kept:
                    place = place_of(client, found.server)
                    text = json_spans.remove(text, json_spans.Items(place, found.added))
            case AppendedItems(keys, items, made):
                text = json_spans.remove(text, json_spans.Items(keys, items))
                text = JSON.without_made(text, made)
                kept = _changed_hook(text, change)
        left += [kept] if kept else []
    return text, left


def _bridge_in(client: McpClient, entries: Mapping[str, Any]) -> str | None:
    """Return the name of a server that connects to rootsd, or None."""
    form = client.facts.form
    commands = {
        name: form.words(entry) for name, entry in entries.items() if isinstance(entry, dict)
    }
    return next((name for name, words in commands.items() if is_bridge(words or ())), None)


def _changed_hook(text: str, change: AppendedItems) -> str:
    """Return a sentence if a hook of ours stays, because a person changed it."""
    there = json_spans.contents(text, change.keys, is_mapping=False)
    own = {command for item in change.items for command in hook_commands(item)}
    if any(own.intersection(hook_commands(item)) for item in there):
        return f"a hook of rootsd in {'.'.join(change.keys)} was changed, so it stays"
    return ""


def hook_commands(value: object) -> list[str]:
    """Return the strings in an entry that run `rootsd hook`."""
    match value:
        case str():
            return [value] if " hook " in value else []
        case dict():
            return hook_commands(list(value.values()))
        case list():
            return [command for each in value for command in hook_commands(each)]
        case _:
            return []


def _without_entry(client: McpClient, text: str, made: Sequence[Keys]) -> tuple[str, str]:
    entries = client.servers(text)
    entry = entries.get(ENTRY_NAME)
    words = client.facts.form.words(entry) if isinstance(entry, dict) else ()
    if entry is None and (name := _bridge_in(client, entries)) is not None:
        return text, f"the entry {name} connects to rootsd under another name, so it stays"
    if entry is not None and not is_bridge(words or ()):
        return text, f"the entry {ENTRY_NAME} runs another program now, so it stays"
    return client.remove(text, made), ""


def _without_agents(
    client: McpClient, text: str, names: Sequence[str], made: Sequence[Keys]
) -> tuple[str, str]:
    agents, changed = client.facts.agents, ""
    for name in names:
        entry = agent_entries(client, text).get(name)
        if agents is None or entry is None:
            continue
        if is_relayed(agent_command(client, entry).words):
            text = client.facts.language.remove(text, (*agents.keys, name), made)
        else:
            changed = f"the agent {name} runs another program now, so it stays"
    return text, changed


def _renamed(
    client: McpClient, text: str, change: WrappedServer, changes: Sequence[Change]
) -> WrappedServer:
    """Return the change with the new name of its server, if a person renamed the server."""
    entries = all_servers(client, text)
    if change.server in entries:
        return change
    known = {each.server for each in changes if isinstance(each, WrappedServer)}
    above = len(place_of(client, change.server))
    for server, entry in entries.items():
        words = client.facts.form.words(entry) if isinstance(entry, dict) else None
        if server in known or server.project != change.server.project:
            continue
        if is_wrapped(words or ()) and _is_front(words or (), change):
            keys = (*place_of(client, server), *change.keys[above:])
            return replace(change, server=server, keys=keys)
    return change


def _unwrapped(client: McpClient, text: str, change: WrappedServer) -> tuple[str, str]:
    language, form = client.facts.language, client.facts.form
    entry = all_servers(client, text).get(change.server)
    words = form.words(entry) if isinstance(entry, dict) else None
    if words is None or not is_wrapped(words):
        return text, ""  # a person removed or unwrapped it
    program, arguments = (*change.keys, form.program), (*change.keys, form.arguments or "")
    count = len(change.front)
    raw = language.raw(text, program if change.program is None else arguments)
    if raw is None or not _is_front(words, change):
        return (
            text,
            f"the command of {change.server.label} was changed, so it stays under rootsd run",
        )
    if change.program is None:
        return language.replace(text, program, _arguments(client, raw, change)), ""
    if change.arguments is not None or len(words) > count + 1:
        text = language.replace(text, arguments, _arguments(client, raw, change))
    else:
        text = language.remove_beside(text, arguments)
    is_same = words[count] == change.front[-1]
    raw = change.program if is_same else language.literal(words[count])
    return language.replace(text, program, raw), ""


def _arguments(client: McpClient, raw: str, change: WrappedServer) -> str:
    """Return the raw text of the list without our words. A client may have reformatted it."""
    left = client.facts.language.without_first(raw, len(change.front))
    is_empty = not left[1:-1].strip()
    had_none = change.arguments is not None and not change.arguments[1:-1].strip()
    return (change.arguments or left) if is_empty and had_none else left


def _is_front(words: Sequence[str], change: WrappedServer) -> bool:
    """Return whether a command still begins with our words.

    rootsd itself may have another path by now, and a person may have replaced the program.
    """
    front = change.front[1:] if change.program is None else change.front[:-1]
    return tuple(words[1 : len(front) + 1]) == front and len(words) > len(front) + 1


def _raw(client: McpClient, text: str, keys: Keys) -> str:
    raw = client.facts.language.raw(text, keys)
    if raw is None:
        raise NotEditable(f"{'.'.join(keys)} is not a plain value there")
    return raw
