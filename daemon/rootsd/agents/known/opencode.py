"""opencode. sst/opencode: packages/opencode/src/global and config, version 1.18.33."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "opencode",
    folders=(
        AgentFolder(
            ".config/opencode",
            variable="XDG_CONFIG_HOME",
            below="opencode",
            loads=(
                "*.json", "*.jsonc", "AGENTS.md", "agent", "agents", "bun.lock", "command",
                "commands", "mode", "modes", "node_modules", "plugin", "plugins", "skill",
                "skills", "themes", "tool", "tools",
            ),
        ),
        AgentFolder(
            ".local/share/opencode",
            variable="XDG_DATA_HOME",
            below="opencode",
            loads=("bin",),
            credentials=("auth.json", "mcp-auth.json"),
        ),
        AgentFolder(".local/state/opencode", variable="XDG_STATE_HOME", below="opencode"),
    ),
    reads=(".opencode", ".agents", ".claude/CLAUDE.md", ".claude/skills"),
    caches=(".cache/opencode",),
    variables={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
)  # fmt: skip
