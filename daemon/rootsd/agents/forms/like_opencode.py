"""The settings that opencode merges, and what they allow. Programs made from it do the same."""

from __future__ import annotations

import itertools
import os
from typing import NamedTuple

from rootsd.agents.forms import access, client, place, reach


class OpencodeFork(NamedTuple):
    """opencode itself, or a program that was made from it.

    * `name`: of its folders, and in capitals that of its variables.
    * `names`: of its settings in a folder, the one that wins last. It also reads `config.json` in
      the folder for all projects.
    * `folders`: in which it has settings, too, below the home folder and in a project.
      `names_in_folders` is the order there, which may be another one.
    """

    label: str
    name: str
    names: tuple[str, ...]
    folders: tuple[str, ...]
    names_in_folders: tuple[str, ...]
    trial: client.ClientTrial

    def own_file(self, name: str) -> place.SettingsPlace:
        """Return the place of a file in its own folder."""
        return place.CONFIG.at(f"{self.name}/{name}")

    @property
    def before_project(self) -> tuple[place.SettingsPlace, ...]:
        """Its files for all projects that it merges before those of a project."""
        own = map(self.own_file, ("config.json", *self.names))
        return (*own, place.moved_by(f"{self.name.upper()}_CONFIG", ""))

    @property
    def after_project(self) -> tuple[place.SettingsPlace, ...]:
        """Those that it merges after those of a project."""
        variable = f"{self.name.upper()}_CONFIG_DIR"
        own = (f"{folder}/{name}" for folder in self.folders for name in self.names_in_folders)
        moved = (place.moved_by(variable, "", inside=name) for name in self.names_in_folders)
        return (*map(place.SettingsPlace, own), *moved)

    @property
    def in_project(self) -> tuple[str, ...]:
        """Its files in a project."""
        inside = (f"{folder}/{name}" for folder in self.folders for name in self.names_in_folders)
        return (*self.names, *inside)


def lists_of_fork(fork: OpencodeFork) -> access.ListFormat:
    """Return the format of its access lists, and what else it merges."""
    prefix, keys = fork.name.upper(), ("permission", "external_directory")
    macos = f"/Library/Application Support/{fork.name}"
    managed = (
        place.SettingsPlace(f"/etc/{fork.name}/{name}", f"{macos}/{name}") for name in fork.names
    )
    return access.ListFormat(
        place.moved_by(f"{prefix}_CONFIG_DIR", fork.folders[-1], fork.names[0]),
        # It knows only the wildcards, has no escapes, and reads \ as /.
        denial=(access.ListLine(keys, "{}/**", "deny", special="*?\\"),),
        applies="at its next start",
        not_covered=(
            "a project that the session itself began in, and paths that a shell command hides"
        ),
        merged_with=fork.names_in_folders,
        merges=(
            *fork.before_project,
            *map(access.InProject, fork.in_project),
            *fork.after_project,
            access.InVariable(f"{prefix}_CONFIG_CONTENT"),
            *managed,
            access.InVariable(f"{prefix}_PERMISSION", keys[:1]),
        ),
    )


def client_of_fork(fork: OpencodeFork, *used: str) -> client.ClientFacts:
    """Return its configuration files, which may have comments and end in `.json` or `.jsonc`.

    Our entry is in the later one of the files `used`. Servers in the others are wrapped, too.
    """
    return client.ClientFacts(
        name=fork.name,
        title=fork.label,
        places=tuple(map(fork.own_file, used)),
        merged=(*fork.before_project, *fork.after_project),
        keys=("mcp",),
        form=client.EntryForm(
            fixed={"type": "local"},
            more={"enabled": True},
            arguments=None,
            environment="environment",
        ),
        reading=client.EntryReading(
            (client.Placeholder.CURLY, client.Placeholder.FILE),
            frozenset((client.EntryPart.FOLDER,)),
        ),
        programs=(fork.name,),
        trial=fork.trial,
        no_hook="its hooks are code that it loads, and run no command",
        health=client.HealthCheck(
            ("mcp", "list"),
            listed=rf"{client.ENTRY_NAME} ",
            connected=rf"{client.ENTRY_NAME} +connected",
        ),
    )


def reach_of_fork(
    home: reach.AgentHome, inside: reach.AgentFiles, fork: OpencodeFork
) -> reach.AgentReach:
    """Return what its settings allow, run in opencode 1.18.33. The last rule that matches wins.

    It runs commands and edits without a question by default. It asks before it uses a folder
    elsewhere, if a tool or a plain command names it: a script in between is not seen.
    """
    extent = reach.Extent
    reason = f"{fork.label} runs commands without asking by default"
    by_default = reach.by_default(extent.EVERYTHING, reason)
    actions = {"bash": "allow", "external_directory": "ask", "edit": "allow", "read": "allow"}
    sources = dict.fromkeys(actions, by_default)
    opened: dict[str, str] = {}
    files = _files(home, inside, fork)
    for file, keys, tool, pattern, action in _rules(files):
        folder = reach.folder_of(pattern)
        is_any = pattern.strip("*/") == "" or home.holds_home(home.expand(folder) or "-")
        for own in actions:
            runs = own == "bash" and action == "allow" and "x" in reach.command_reach(pattern)
            if tool in ("*", own) and (is_any or runs):
                actions[own] = action
                sources[own] = reach.said_by(extent.EVERYTHING, file, *keys)
        if (tool, action) == ("external_directory", "allow") and home.expand(folder):
            opened[folder] = file.path
    said: list[reach.ExposedAccess] = []
    for own in ("read", "edit"):
        decides = "bash"
        wide = extent.EVERYTHING
        if actions["bash"] != "allow":
            decides = own if actions[own] != "allow" else "external_directory"
            wide = {
                ("allow", "allow"): extent.EVERYTHING, ("allow", "ask"): extent.ASKS_ELSEWHERE,
                ("allow", "deny"): extent.PROJECT, ("deny", "deny"): extent.NOTHING,
            }.get((actions[own], actions["external_directory"]), extent.ASKS)  # fmt: skip
            decides = decides if sources[decides]["file"] else "bash"
        access = sources[decides].copy()
        access["extent"] = wide
        said.append(access)
    found = itertools.chain.from_iterable(_findings(home, file) for file in inside or files)
    return reach.AgentReach(said[0], said[1], tuple(opened), found)


def _files(
    home: reach.AgentHome, inside: reach.AgentFiles, fork: OpencodeFork
) -> list[reach.AgentFile]:
    """Return all settings, the ones that win last."""
    found = [*inside]
    files: list[reach.AgentFile] = []
    for source in lists_of_fork(fork).merges:
        if isinstance(source, access.InProject):
            files += found
            found = []
        elif isinstance(source, place.SettingsPlace):
            files.append(home.read(source))
        elif text := home.variables.get(source.name):
            files.append(reach.from_variable(source.name, text, source.keys))
    return files


def _rules(files: reach.AgentFiles) -> reach.ToolRules:
    """Yield each rule in the order in which they count: its keys, tool, pattern, and action."""
    for keys in (("permission",), ("agent", "build", "permission")):
        for file in files:
            whole = file.at(*keys)
            for tool, given in whole.items() if isinstance(whole, dict) else [("*", whole)]:
                front = (*keys, tool) if isinstance(whole, dict) else keys
                for pattern, action in (
                    given.items() if isinstance(given, dict) else [("*", given)]
                ):
                    if action in ("allow", "ask", "deny"):
                        where = (*front, pattern) if isinstance(given, dict) else front
                        yield file, where, tool, pattern, action


def _findings(home: reach.AgentHome, file: reach.AgentFile) -> reach.Findings:
    keys = ("permission", "external_directory")
    patterns: reach.TextsByKeys = {(*keys, each): each for each in file.members(*keys)}
    yield from reach.misspelled_paths(home, file, patterns)
    for where, pattern in patterns.items():
        path = home.expand(pattern)
        if path is not None and os.path.isdir(path):
            text = f"{pattern} does not match the files in that folder; add /**"
            yield reach.finding(reach.ExposureKind.MATCHES_NOTHING, file, where, text)
    yield from reach.misspelled_keys(file, (), ("permission", "mcp", "provider", "agent"))
    known = ("external_directory", "bash", "edit", "read", "webfetch", "*")
    yield from reach.misspelled_keys(file, ("permission",), known)
