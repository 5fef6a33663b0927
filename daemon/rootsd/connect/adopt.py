"""Recognize our own changes in a settings file when their record is gone. Pure.

After a restored backup, or on a second machine, our entries are there without the record. Those in
exactly the form that we write are taken back as if we had recorded them. Only the record knows the
layout from before, and which containers we made. Without it, a container that ends up empty is
removed, which means the same to a client.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rootsd import agents
from rootsd.agents.forms.client import ENTRY_NAME, EntryForm, HookFile, ToolFile
from rootsd.connect.base import (
    STRICT,
    HookUse,
    McpClient,
    WorktreeMaker,
    hook_items,
    possible_use,
)
from rootsd.connect.edits import (
    AddedAgents,
    AddedEntry,
    AppendedItems,
    Change,
    WrappedServer,
    all_servers,
    hook_commands,
    place_of,
    relayed_agents,
)
from rootsd.connect.servers import HOOK, ServerId, is_bridge, is_rootsd
from rootsd.connect.wraps import ServerWrap
from rootsd.places.runtime_dir import OVERRIDE
from rootsd.settings import json_spans
from rootsd.settings.formats import Keys


def adopted_entries(client: McpClient, text: str) -> list[Change]:
    """Return our entry and the wrapped servers in settings. Raises NotEditable."""
    entries = all_servers(client, text)
    found: list[Change] = []
    if _is_ours(client, entries.get(ServerId(ENTRY_NAME))):
        found.append(AddedEntry(_containers(client.facts.keys)))
    found += _adopted_agents(client, text)
    for server, entry in entries.items():
        words = client.facts.form.words(entry) if isinstance(entry, dict) else None
        wrap = ServerWrap.parse(words) if words is not None else None
        if words is not None and wrap is not None:
            found.append(_wrapped(client, server, entry, words, len(wrap.front(words[0]))))
    return found


def _adopted_agents(client: McpClient, text: str) -> list[Change]:
    agents, names = client.facts.agents, tuple(relayed_agents(client, text))
    if agents is None or not names:
        return []
    return [AddedAgents(names, _containers(agents.keys))]


def adopted_items(text: str, keys: Keys, items: tuple[Any, ...]) -> list[Change]:
    """Return the permission to call our tools, in JSON. Raises NotEditable."""
    there = json_spans.contents(text, keys, is_mapping=False)
    is_there = all(item in there for item in items)
    return [AppendedItems(keys, items, _containers(keys))] if is_there else []


def adopted_hooks(client: str, text: str, hook: HookFile) -> list[Change]:
    """Return the hooks that run `rootsd hook CLIENT`, in JSON. Raises NotEditable."""
    found: list[Change] = []
    for keys in hook_items(client, hook, HookUse.YES, (), WorktreeMaker.ROOTSD):
        there = json_spans.contents(text, keys, is_mapping=False)
        ours = [item for item in there if _is_our_hook(client, hook, keys, item)]
        found += [AppendedItems(keys, tuple(ours), _containers(keys))] if ours else []
    return found


def _containers(keys: Keys) -> tuple[Keys, ...]:
    return tuple(keys[: end + 1] for end in range(len(keys)))


def _is_ours(client: McpClient, entry: Any) -> bool:  # noqa: ANN401 - a JSON value
    form, tools = client.facts.form, client.facts.tools
    words = form.words(entry) if isinstance(entry, dict) else None
    if words is None or not is_bridge(words) or len(words) != 2:  # noqa: PLR2004 - no options
        return False
    variables = form.variables(entry)
    members: list[Mapping[str, Any]] = [{}]
    members += [tools.members] if tools is not None and tools.where is ToolFile.ENTRY else []
    is_known = variables.keys() <= {OVERRIDE}
    return is_known and any(entry == form.entry(words, each, variables) for each in members)


def _wrapped(
    client: McpClient,
    server: ServerId,
    entry: Mapping[str, Any],
    words: tuple[str, ...],
    count: int,
) -> WrappedServer:
    """Return the change that put `count` words before the command of a server."""
    form: EntryForm = client.facts.form
    keys = (*place_of(client, server), *form.command_keys(entry))
    if form.arguments is None:
        return WrappedServer(server, keys, words[:count], None, None)
    program = client.facts.language.literal(words[count])
    return WrappedServer(server, keys, words[1 : count + 1], program, None)


def hook_use(changes: Iterable[Change]) -> HookUse:
    """Return which hook of ours is among the changes of a client."""
    commands = [
        command
        for change in changes
        if isinstance(change, AppendedItems) and change.keys[:1] == ("hooks",)
        for item in change.items
        for command in hook_commands(item)
    ]
    if any(STRICT in hook_words(command) for command in commands):
        return HookUse.STRICT
    return HookUse.YES if commands else HookUse.NO


def worktree_maker(changes: Iterable[Change]) -> WorktreeMaker:
    """Return who makes the worktrees of a client with these changes."""
    ours = (change.keys[-1] for change in changes if isinstance(change, AppendedItems))
    made = {event for agent in agents.files_with("hook") for event in agent.hook().worktrees}
    return WorktreeMaker.CLIENT if made.isdisjoint(ours) else WorktreeMaker.ROOTSD


def hook_words(command: str) -> list[str]:
    """Return the words of a command that runs `rootsd hook`, or none for another command."""
    words = _shell_words(command)
    if words[:1] == ["env"] and words[1:2] and words[1].startswith(f"{OVERRIDE}="):
        words = words[2:]
    return words if is_rootsd(words) and words[1:2] == [HOOK] else []


def _shell_words(command: str) -> list[str]:
    """Return the words of a command of a shell, or none if they cannot be told."""
    try:
        return shlex.split(command.removesuffix(" || true"))
    except ValueError:
        return []


def _is_our_hook(client: str, hook: HookFile, keys: Keys, item: object) -> bool:
    for command in _commands(item):
        words = _shell_words(command)
        plain = words[:-1] if words[-1:] == [STRICT] else words
        if hook_words(command)[1:3] != [HOOK, client]:
            continue
        uses = (use for use in HookUse if possible_use(hook, use) is use)
        maker = WorktreeMaker.ROOTSD
        if any(item in hook_items(client, hook, use, plain, maker).get(keys, ()) for use in uses):
            return True
    return False


def _commands(item: object) -> Iterator[str]:
    for command in hook_commands(item):
        yield command
        yield command.removesuffix(" || true")
