"""opencode. sst/opencode: packages/opencode/src/global and config, version 1.18.33."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "opencode"
PROGRAMS = ("opencode",)
PACKAGES = ("/opencode-ai/",)
# sst/opencode: packages/opencode/src/index.ts; forks of it keep the variable
MARKERS = ("OPENCODE=1",)
SOURCE = "run, 1.18.33"


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
    )  # fmt: skip


def access() -> forms.access.ListFormat:
    """Return the format of its access lists.

    It merges the settings of projects after ~/.config/opencode, and before this folder.
    """
    keys = ("permission", "external_directory")
    return forms.access.ListFormat(
        forms.place.moved_by("OPENCODE_CONFIG_DIR", ".opencode", "opencode.json"),
        # It knows only the wildcards, has no escapes, and reads \ as /.
        denial=(forms.access.ListLine(keys, "{}/**", "deny", special="*?\\"),),
        applies="at its next start",
        not_covered=(
            "a project that the session itself began in, and paths that a shell command hides"
        ),
        merged_with=("opencode.json", "opencode.jsonc"),
    )
