"""opencode. sst/opencode: packages/opencode/src/global and config, version 1.18.33."""

from __future__ import annotations

import itertools
import os

from rootsd.agents import forms

LABEL = "opencode"
PROGRAMS = ("opencode",)
PACKAGES = ("/opencode-ai/",)
# sst/opencode: packages/opencode/src/index.ts; forks of it keep the variable
MARKERS = ("OPENCODE=1",)
SOURCE = "run, 1.18.33"
RUNS = ("opencode.json",)
OBEYS = (".opencode", ".opencode.json", "opencode.json", "opencode.jsonc")

_NAMES = ("opencode.json", "opencode.jsonc")
_MANAGED_ON_MACOS = "/Library/Application Support/opencode"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_CONFIG_HOME", ".config/opencode", inside="opencode"),
                loads=(
                    "*.json", "*.jsonc", "AGENTS.md", "agent", "agents", "bun.lock", "command",
                    "commands", "mode", "modes", "node_modules", "plugin", "plugins", "skill",
                    "skills", "themes", "tool", "tools",
                ),
            ),
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_DATA_HOME", ".local/share/opencode", inside="opencode"),
                loads=("bin",),
                credentials=("auth.json", "mcp-auth.json"),
            ),
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_STATE_HOME", ".local/state/opencode", inside="opencode")
            ),
        ),
        reads=(".opencode", ".agents", ".claude/CLAUDE.md", ".claude/skills"),
        caches=(".cache/opencode",),
        variables={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        is_tried=True,
    )  # fmt: skip


def _files_before() -> tuple[forms.place.SettingsPlace, ...]:
    """Return its files for all projects that it merges before those of a project."""
    moved_by = forms.place.moved_by
    names = ("config.json", *_NAMES)
    return (
        *(moved_by("XDG_CONFIG_HOME", ".config/opencode", name, "opencode") for name in names),
        moved_by("OPENCODE_CONFIG", ""),
    )


def _files_after() -> tuple[forms.place.SettingsPlace, ...]:
    """Return those that it merges after those of a project."""
    place = forms.place
    return (
        *(place.SettingsPlace(f".opencode/{name}") for name in _NAMES),
        *(place.moved_by("OPENCODE_CONFIG_DIR", "", inside=name) for name in _NAMES),
    )


def access() -> forms.access.ListFormat:
    """Return the format of its access lists, and what else it merges."""
    form, place = forms.access, forms.place
    keys = ("permission", "external_directory")
    return form.ListFormat(
        place.moved_by("OPENCODE_CONFIG_DIR", ".opencode", _NAMES[0]),
        # It knows only the wildcards, has no escapes, and reads \ as /.
        denial=(form.ListLine(keys, "{}/**", "deny", special="*?\\"),),
        applies="at its next start",
        not_covered=(
            "a project that the session itself began in, and paths that a shell command hides"
        ),
        merged_with=_NAMES,
        merges=(
            *_files_before(),
            *(
                form.InProject(f"{folder}{name}")
                for folder in ("", ".opencode/")
                for name in _NAMES
            ),
            *_files_after(),
            form.InVariable("OPENCODE_CONFIG_CONTENT"),
            *(
                place.SettingsPlace(f"/etc/opencode/{name}", f"{_MANAGED_ON_MACOS}/{name}")
                for name in _NAMES
            ),
            form.InVariable("OPENCODE_PERMISSION", keys[:1]),
        ),
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration files, which may have comments and end in `.json` or `.jsonc`.

    Our entry is in the later file of its own folder. Servers in the others are wrapped, too.
    """
    form = forms.client
    return (
        form.ClientFacts(
            name="opencode",
            title=LABEL,
            places=_files_before()[1:3],
            merged=(*_files_before(), *_files_after()),
            keys=("mcp",),
            form=form.EntryForm(
                fixed={"type": "local"},
                more={"enabled": True},
                arguments=None,
                environment="environment",
            ),
            reading=form.EntryReading(
                (form.Placeholder.CURLY, form.Placeholder.FILE),
                frozenset((form.EntryPart.FOLDER,)),
            ),
            programs=PROGRAMS,
            trial=form.ClientTrial.TRIED,
            no_hook="its hooks are code that it loads, and run no command",
            health=form.HealthCheck(
                ("mcp", "list"),
                listed=rf"{form.ENTRY_NAME} ",
                connected=rf"{form.ENTRY_NAME} +connected",
            ),
        ),
    )


SETTINGS = tuple(f"{folder}{name}" for folder in ("", ".opencode/") for name in _NAMES)


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow, run in 1.18.33. The last rule that matches wins.

    It runs commands and edits without a question by default. It asks before it uses a folder
    elsewhere, if a tool or a plain command names it: a script in between is not seen.
    """
    form, extent = forms.reach, forms.reach.Extent
    by_default = form.by_default(
        extent.EVERYTHING, "opencode runs commands without asking by default"
    )
    actions = {"bash": "allow", "external_directory": "ask", "edit": "allow", "read": "allow"}
    sources = dict.fromkeys(actions, by_default)
    opened: dict[str, str] = {}
    files = _files(home, inside)
    for file, keys, tool, pattern, action in _rules(files):
        folder = form.folder_of(pattern)
        is_any = pattern.strip("*/") == "" or home.holds_home(home.expand(folder) or "-")
        for own in actions:
            runs = own == "bash" and action == "allow" and "x" in form.command_reach(pattern)
            if tool in ("*", own) and (is_any or runs):
                actions[own] = action
                sources[own] = form.said_by(extent.EVERYTHING, file, *keys)
        if (tool, action) == ("external_directory", "allow") and home.expand(folder):
            opened[folder] = file.path
    said: list[forms.reach.ExposedAccess] = []
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
    return form.AgentReach(said[0], said[1], tuple(opened), found)


def _files(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles
) -> list[forms.reach.AgentFile]:
    """Return all settings, the ones that win last."""
    form, found = forms.reach, [*inside]
    files: list[forms.reach.AgentFile] = []
    for place in access().merges:
        if isinstance(place, forms.access.InProject):
            files += found
            found = []
        elif isinstance(place, forms.place.SettingsPlace):
            files.append(home.read(place))
        elif text := home.variables.get(place.name):
            files.append(form.from_variable(place.name, text, place.keys))
    return files


def _rules(
    files: forms.reach.AgentFiles,
) -> forms.reach.ToolRules:
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


def _findings(home: forms.reach.AgentHome, file: forms.reach.AgentFile) -> forms.reach.Findings:
    form, keys = forms.reach, ("permission", "external_directory")
    patterns: forms.reach.TextsByKeys = {(*keys, each): each for each in file.members(*keys)}
    yield from form.misspelled_paths(home, file, patterns)
    for where, pattern in patterns.items():
        path = home.expand(pattern)
        if path is not None and os.path.isdir(path):
            text = f"{pattern} does not match the files in that folder; add /**"
            yield form.finding(form.ExposureKind.MATCHES_NOTHING, file, where, text)
    yield from form.misspelled_keys(file, (), ("permission", "mcp", "provider", "agent"))
    known = ("external_directory", "bash", "edit", "read", "webfetch", "*")
    yield from form.misspelled_keys(file, ("permission",), known)
