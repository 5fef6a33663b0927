"""pi. badlogic/pi-mono: packages/coding-agent/src/config.ts. It was not run behind the wall."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "pi",
    folders=(
        AgentFolder(
            ".pi/agent",
            variable="PI_CODING_AGENT_DIR",
            loads=(
                "AGENTS.md", "APPEND_SYSTEM.md", "CLAUDE.md", "SYSTEM.md", "commands",
                "extensions", "hooks", "keybindings.json", "models.json", "npm", "prompts",
                "skills", "themes", "tools",
            ),
            copies=(CopiedFile("settings.json"),),
            credentials=("auth.json",),
        ),
    ),
    reads=(".agents",),
)  # fmt: skip
