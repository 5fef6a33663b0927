"""Continue. continuedev/continue: core/util/paths.ts. It was not run behind the wall."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "Continue",
    folders=(
        AgentFolder(
            ".continue",
            variable="CONTINUE_GLOBAL_DIR",
            loads=(
                ".env", "agents", "assistants", "config.json", "config.ts", "config.yaml",
                "mcpServers", "models", "permissions.yaml", "prompts", "rules", "skills",
            ),
            credentials=("auth.json",),
        ),
    ),
)  # fmt: skip
