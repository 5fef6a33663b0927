"""opencode. sst/opencode: packages/opencode/src/global and config, version 1.18.33."""

from __future__ import annotations

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


def reach(home: forms.reach.AgentHome) -> forms.reach.AgentReach:
    """Return what its settings allow, run in 1.18.33.

    It runs commands and edits without a question by default. It asks before it uses a folder
    elsewhere, if a tool or a plain command names it: a script in between is not seen.
    """
    form, extent = forms.reach, forms.reach.Extent
    files = [home.read(place) for place in (*_files_before(), *_files_after())]
    reason = "opencode runs commands without asking by default"
    reads = writes = form.by_default(extent.EVERYTHING, reason)
    found: forms.reach.Found = []
    opened: dict[str, str] = {}
    for file in files:
        rules = file.members("permission")
        for tool in ("*", "bash"):
            actions = rules.get(tool)
            action = actions.get("*") if isinstance(actions, dict) else actions
            if action in ("ask", "deny"):
                where = extent.ASKS_ELSEWHERE if action == "ask" else extent.PROJECT
                reads = writes = form.said_by(where, file, "permission", tool)
            elif action == "allow":
                reads = writes = form.said_by(extent.EVERYTHING, file, "permission", tool)
        folders = rules.get("external_directory")
        named = folders if isinstance(folders, dict) else {}
        for pattern, action in named.items():
            keys = ("permission", "external_directory", pattern)
            path = home.expand(pattern)
            meant = form.misspelled(path) if path is not None else None
            if meant is not None:
                text = f"{pattern} matches nothing: is it {meant}?"
                found.append(form.finding(form.ExposureKind.MISSPELLED, file, keys, text))
            elif path is not None and os.path.isdir(path):
                text = f"{pattern} does not match the files in that folder; add /**"
                found.append(form.finding(form.ExposureKind.MATCHES_NOTHING, file, keys, text))
            elif path is not None and action == "allow":
                opened[pattern] = pattern.rstrip("*/")
        found += form.misspelled_keys(file, (), ("permission", "mcp", "provider", "agent"))
        known = ("external_directory", "bash", "edit", "read", "webfetch", "*")
        found += form.misspelled_keys(file, ("permission",), known)
    return form.AgentReach(reads, writes, tuple(opened.values()), tuple(found))
