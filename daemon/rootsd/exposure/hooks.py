"""Find the permission hooks of a client that never run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from itertools import product

from rootsd import agents
from rootsd.agents.forms.reach import AgentHome, ExposureFinding, ExposureKind, finding
from rootsd.connect.base import McpClient
from rootsd.core.suggestions import nearest
from rootsd.settings.formats import KeyPath

SWITCHES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("disableAllHooks",), True),
    (("hooksConfig", "enabled"), False),
    (("features", "hooks"), False),
)
_COMMAND_KEYS = ("command", "bash")
_INTERPRETERS = ("bash", "sh", "zsh", "python", "python3", "node", "ruby")
_LIKENESS = 0.9


def about_hooks(client: McpClient, home: AgentHome) -> Iterator[ExposureFinding]:
    """Yield the findings about the hooks of a client."""
    facts = client.facts
    agent = agents.named(facts.name, "hook")
    if facts.hook is None or agent is None:
        return
    file = home.read(facts.hook.place, facts.hook.language)
    hooks = file.members("hooks")
    if not hooks:
        return
    files = (file, home.read(facts.places[0], facts.language))
    for switches, (keys, off) in product(files, SWITCHES):
        if switches.at(*keys) is off:
            text = f"{keys[-1]} turns all hooks of {facts.title} off"
            yield finding(ExposureKind.HOOKS_OFF, switches, keys, text)
    known = {event.lower(): event for event in agent.hook().events}
    for event in hooks:
        like = nearest(event.lower(), known, likeness=_LIKENESS)
        if like and event != known[like[0]]:
            text = f"the hook for {event} never runs: is it {known[like[0]]}?"
            yield finding(ExposureKind.MISSPELLED, file, ("hooks", event), text)
    for where, command in _commands(hooks, ("hooks",)):
        paths = [path for word in _programs(command) if (path := home.expand(word)) is not None]
        if gone := [path for path in paths if "$" not in path and not os.path.exists(path)]:
            text = f"a hook runs {gone[0]}, which does not exist"
            yield finding(ExposureKind.PROGRAM_GONE, file, where, text)


def _commands(value: object, keys: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    members = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else members
    for key, inner in items:
        if key in _COMMAND_KEYS and isinstance(inner, str):
            yield (*keys, key), inner
        else:
            yield from _commands(inner, (*keys, key))


def _programs(command: str) -> list[str]:
    """Return the program of a command, and the script that it runs, if it is an interpreter."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    while words and (words[0] == "env" or "=" in words[0]):
        words.pop(0)
    return words[:2] if words and words[0] in _INTERPRETERS else words[:1]
