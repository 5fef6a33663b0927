"""Cursor's agent, by its documentation. It was not run."""

from __future__ import annotations

import itertools

from rootsd.agents import forms

LABEL = "Cursor agent"
PROGRAMS = ("cursor-agent",)
PACKAGES = ("/cursor-agent/",)
MARKERS = ("CURSOR_AGENT",)  # vercel/vercel: packages/detect-agent/src/index.ts
SOURCE = "programs that look for it"
RUNS = (".cursor/mcp.json", ".cursor/hooks.json")
OBEYS = (".cursor",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.SettingsPlace(".cursor"),
                loads=(
                    "agents", "commands", "hooks", "hooks.json", "mcp.json", "permissions.json",
                    "plugins", "rules", "sandbox.json", "skills", "skills-cursor",
                ),
                copies=(forms.state.CopiedFile("cli-config.json"),),
            ),
            forms.state.AgentFolder(
                forms.place.CONFIG.at("cursor"),
                credentials=("auth.json",),
            ),
        ),
        reads=(".local/share/cursor-agent",),
    )  # fmt: skip


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook.

    The keys of a path in `preToolUse` are not documented, so several are tried. Its own lists say
    what needs no question, so nothing is allowed.
    """
    keys = ("file_path", "path", "target_file", "target_directory")
    return forms.hook.HookDialect(
        events=("beforeReadFile", "preToolUse"),
        decision="permission",
        reasons=("user_message", "agent_message"),
        readers={"beforeReadFile": ("file_path",), "Read": keys, "Grep": keys},
        writers={"Delete": keys, "Write": keys},
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Sources: the vendor's documentation of MCP and of hooks."""
    form = forms.client
    return (
        form.ClientFacts(
            name="cursor",
            title="Cursor",
            places=(forms.place.SettingsPlace(".cursor/mcp.json"),),
            keys=("mcpServers",),
            reading=form.EntryReading((form.Placeholder.ENV, form.Placeholder.EDITOR)),
            programs=("cursor", *PROGRAMS),
            hook=form.HookFile(
                forms.place.SettingsPlace(".cursor/hooks.json"),
                {"command": form.HOOK_COMMAND, "timeout": 10},
                form.NewJsonFile('{"version": 1}\n'),
            ),
            not_synced=form.NO_DENIALS,
            worktrees=forms.place.SettingsPlace(".cursor/worktrees"),
        ),
    )


SETTINGS = (".cursor/cli.json", ".cursor/permissions.json")


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow, by its documentation. It reads without a question."""
    form, extent = forms.reach, forms.reach.Extent
    name = "cli-config.json"
    places = (
        forms.place.SettingsPlace(f".cursor/{name}"),
        forms.place.SettingsPlace(".cursor/permissions.json"),
        forms.place.in_config_home(f"cursor/{name}", f".cursor/{name}"),
    )
    files = (*inside, *map(home.read, places))
    usual = (
        form.by_default(extent.EVERYTHING, "Cursor reads without asking"),
        form.by_default(extent.ASKS_ELSEWHERE, "Cursor asks before commands by default"),
    )
    modes = dict.fromkeys(("auto-review", "unrestricted"), (extent.EVERYTHING, extent.EVERYTHING))
    said = form.by_mode(files, ("approvalMode",), modes, usual)
    for file in files:
        said = form.widened(said, file, file.texts("permissions", "allow"), _widened_by)
        said = form.widened(said, file, file.texts("terminalAllowlist"), _any_with)
    known = ("permissions", "approvalMode", "sandbox")
    found = itertools.chain.from_iterable(
        form.misspelled_keys(file, (), known) for file in inside or files
    )
    return form.AgentReach(*said, (), found)


def _any_with(command: str) -> str:
    """Return what a command allows that any words may follow."""
    return forms.reach.command_reach(f"{command.rstrip(' *')} *")


def _widened_by(rule: str) -> str:
    """Return what a rule allows everywhere. `Shell(x)` allows x with any words."""
    tool, what = forms.reach.tool_rule(rule)
    if tool == "Shell":
        return _any_with(what.replace(":", " "))
    return "w" if tool == "Write" and what.strip("/~") in ("*", "**") else ""
