"""What the settings of Gemini CLI allow, and those of a program that was made from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain, product
from typing import NamedTuple

from rootsd.agents.forms import client, place, reach


class GeminiFork(NamedTuple):
    """A program that was made from Gemini CLI, or itself.

    * `mode`: the keys of the mode, `modes` what each reads and writes, and `usual` the same
      without a mode.
    * `is_trusting`: whether it asks for trust in folders by default.
    """

    label: str
    folder: place.SettingsPlace
    mode: tuple[str, ...]
    modes: Mapping[str, tuple[reach.Extent, reach.Extent]]
    usual: tuple[reach.Extent, reach.Extent]
    is_trusting: bool


def reach_of_fork(
    home: reach.AgentHome, inside: reach.AgentFiles, fork: GeminiFork
) -> reach.AgentReach:
    """Return what the settings of a fork allow.

    Its file tools are refused outside of the project and `includeDirectories`.
    """
    extent, at = reach.Extent, place.SettingsPlace
    top = fork.folder.locate(home.home, home.variables, home.platform)
    system = home.read(at(f"/etc/{fork.label.lower().replace(' ', '-')}/settings.json"))
    user = home.read_path(f"{top}/settings.json")
    files = (system, *reversed(inside), user)
    reason = f"{fork.label} asks by default"
    if fork.usual[1] is extent.EVERYTHING:
        reason = f"a model decides in {fork.label} by default, and not you"
    reads, writes = (reach.by_default(each, reason) for each in fork.usual)
    said = reach.by_mode(files, fork.mode, fork.modes, (reads, writes))
    for file, keys in product(files, (("tools", "allowed"), ("permissions", "allow"))):
        said = reach.widened(said, file, file.texts(*keys), _widened_by)
    for file in (*inside, *home.read_folder(at(f"{top}/policies"), ".toml", client.TOML)):
        said = reach.widened(said, file, _allowed_commands(file))
    boxed = reach.first_with(files, "tools", "sandbox")
    box = _sandbox(home, fork, boxed.at("tools", "sandbox")) if boxed is not None else ""
    if boxed is not None and box:
        reads, writes = said
        limited = reach.said_by(extent.PROJECT, boxed, "tools", "sandbox")
        if writes["extent"] == extent.EVERYTHING:
            writes = limited
        is_mac = home.platform is place.Platform.MACOS
        reads_all = box == "sandbox-exec" or (box == "true" and is_mac)
        said = (reads if reads_all else limited, writes)
    found = chain.from_iterable(_findings(home, file) for file in inside or (system, user))
    if not inside:
        switch = user.at("security", "folderTrust", "enabled")
        is_on = fork.is_trusting if switch is None else switch is True
        trusts = home.read_path(f"{top}/trustedFolders.json")
        found = chain(found, _about_trust(home, trusts, is_on=is_on))
    opened = [each for file in files for each in file.texts(*_OPENS).values()]
    return reach.AgentReach(*said, tuple(opened), found)


_OPENS = ("context", "includeDirectories")


def _widened_by(rule: str) -> str:
    """Return what a rule for a tool allows everywhere. A command allows all that begin with it."""
    tool, _, rest = rule.partition("(")
    is_shell = tool in ("run_shell_command", "ShellTool", "Shell", "Bash")
    return reach.command_reach(f"{rest.rstrip(')*: ')} *") if is_shell else ""


def _allowed_commands(file: reach.AgentFile) -> reach.TextsByKeys:
    """Return the commands that a policy file allows, as patterns."""
    found: reach.TextsByKeys = {}
    rules = file.at("rule")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        if not isinstance(rule, dict) or rule.get("decision") != "allow":
            continue
        tools, prefixes = rule.get("toolName", "*"), rule.get("commandPrefix", "")
        named = tools if isinstance(tools, list) else [tools]
        if ("*" in named or "run_shell_command" in named) and "argsPattern" not in rule:
            for prefix in prefixes if isinstance(prefixes, list) else [prefixes]:
                pattern = rule.get("commandRegex", prefix)
                found["rule", number] = f"{str(pattern).rstrip('.*')} *"
    return found


def _sandbox(home: reach.AgentHome, fork: GeminiFork, setting: object) -> str:
    """Return the command of its sandbox, `true` for the usual one, or an empty text."""
    if isinstance(setting, dict):
        setting = setting.get("command", "true") if setting.get("enabled") else ""
    variable = f"{fork.label.partition(' ')[0].upper()}_SANDBOX"
    said = str(home.variables.get(variable) or setting).lower().strip()
    return {"1": "true", "0": "", "false": "", "none": ""}.get(said, said)


def _findings(home: reach.AgentHome, file: reach.AgentFile) -> reach.Findings:
    yield from reach.about_folders(home, file, file.texts(*_OPENS), "opens")
    known = ("tools", "context", "security", "general", "mcpServers", "hooks", "mcp", "ui")
    yield from reach.misspelled_keys(file, (), known)


def _about_trust(home: reach.AgentHome, trusts: reach.AgentFile, *, is_on: bool) -> reach.Findings:
    trusted: reach.TextsByKeys = {
        (path,): os.path.dirname(path) if how == "TRUST_PARENT" else path
        for path, how in trusts.values.items()
        if how != "DO_NOT_TRUST"
    }
    yield from reach.about_folders(home, trusts, trusted, "trusts")
    if trusts.values and not is_on:
        text = "trustedFolders has no effect: security.folderTrust.enabled is not true"
        keys = (next(iter(trusts.values)),)
        yield reach.finding(reach.ExposureKind.INACTIVE, trusts, keys, text)
