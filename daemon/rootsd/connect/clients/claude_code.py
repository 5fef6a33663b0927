"""Claude Code. It rewrites `~/.claude.json` all the time, and holds a lock meanwhile.

It makes worktrees in `.claude/worktrees` of the checkout itself, so they need no parent.

Sources: its documentation of settings and MCP, and runs of version 2.1.330.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ENTRY_NAME,
    TOOLS,
    ClientFacts,
    ClientLock,
    ClientTrial,
    DescribedClient,
    EntryForm,
    EntryReading,
    HealthCheck,
    HookFile,
    Placeholder,
    ToolFile,
    ToolPermission,
    nested_hook,
)

_SETTINGS = SettingsPlace(
    ".claude/settings.json", variables=(HomeVariable("CLAUDE_CONFIG_DIR", "settings.json"),)
)
_FILE_TOOLS = "Read|Grep|Glob|LS|Edit|MultiEdit|Write|NotebookRead|NotebookEdit"

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="claude-code",
            title="Claude Code",
            places=(
                SettingsPlace(
                    ".claude.json", variables=(HomeVariable("CLAUDE_CONFIG_DIR", ".claude.json"),)
                ),
            ),
            keys=("mcpServers",),
            projects=("projects",),
            project_file=".mcp.json",
            form=EntryForm(fixed={"type": "stdio"}),
            # It starts a server in the folder of the session, also if the entry has a `cwd`.
            reading=EntryReading((Placeholder.BRACES, Placeholder.DEFAULT), frozenset()),
            programs=("claude",),
            folder=SettingsPlace(".claude", variables=(HomeVariable("CLAUDE_CONFIG_DIR"),)),
            trial=ClientTrial.TRIED,
            tools=ToolPermission(
                ToolFile.LIST,
                place=_SETTINGS,
                keys=("permissions", "allow"),
                items=tuple(f"mcp__{ENTRY_NAME}__{tool}" for tool in TOOLS),
            ),
            hook=HookFile(
                _SETTINGS,
                nested_hook("PreToolUse", 10, _FILE_TOOLS),
                strict=nested_hook("PreToolUse", 10, _FILE_TOOLS, {"onFailure": "block"}),
                strict_since=(2, 1, 295),
                gap=(
                    "Claude Code runs no hook in a project whose own settings have"
                    ' "disableAllHooks": true.'
                ),
            ),
            health=HealthCheck(
                ("mcp", "list"),
                listed=rf"(?m)^{ENTRY_NAME}: ",
                connected=rf"(?m)^{ENTRY_NAME}: .*Connected",
            ),
            lock=ClientLock.FOLDER,
        )
    ),
)
