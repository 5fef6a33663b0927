"""Codex CLI. openai/codex: codex-rs/core/src/config, and its files in use, version 0.169.0."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Codex CLI",
    folders=(
        AgentFolder(
            ".codex",
            variable="CODEX_HOME",
            loads=(
                "*.config.toml", ".env", "AGENTS.md", "AGENTS.override.md", "agents", "hooks",
                "hooks.json", "managed_config.toml", "plugins", "prompts", "requirements.toml",
                "rules", "themes",
            ),
            # It records there that a folder is trusted.
            copies=(CopiedFile("config.toml", by_project=(("projects",),)),),
            credentials=("auth.json", ".credentials.json"),
        ),
    ),
    reads=(".agents",),
    # Its sandbox is bubblewrap, which needs mounts: "Failed to make / slave". The older one, with
    # Landlock, refuses every restricted mode in this version.
    arguments=("-c", 'sandbox_mode="danger-full-access"'),
    remark=(
        "Codex's own sandbox cannot work inside and is off, so its commands can use the network; "
        "--no-network would take it from Codex itself, too"
    ),
)  # fmt: skip
