"""Copilot CLI. Its help topics, and its files in use, version 1.0.102."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Copilot CLI",
    folders=(
        AgentFolder(
            ".copilot",
            variable="COPILOT_HOME",
            loads=(
                "agents", "copilot-instructions.md", "extensions", "hooks", "installed-plugins",
                "instructions", "lsp-config.json", "mcp-config.json", "permissions-config.json",
                "plugins", "settings.json", "skills",
            ),
            # The login is in there, too.
            copies=(CopiedFile("config.json", by_project=(("trustedFolders",),)),),
            credentials=("mcp-oauth-config", "mcp-oauth-config.json"),
        ),
    ),
    reads=(".agents", ".config/github-copilot"),
    caches=(".cache/copilot",),
    variables={"COPILOT_AUTO_UPDATE": "false"},
)  # fmt: skip
