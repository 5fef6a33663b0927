"""Qwen Code. QwenLM/qwen-code: packages/core/src/config/storage.ts, run in version 0.15.10."""

from __future__ import annotations

from rootsd.agents.profile import TOP, AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Qwen Code",
    folders=(
        AgentFolder(
            ".qwen",
            loads=(
                ".env", "QWEN.md", "agents", "commands", "extensions", "hooks",
                "output-language.md", "policies", "skills",
            ),
            copies=(
                CopiedFile("settings.json"),
                CopiedFile("trustedFolders.json", by_project=(TOP,)),
            ),
            credentials=("oauth_creds.json", "mcp-oauth-tokens.json", "installation_id"),
        ),
    ),
    reads=(".agents",),
)  # fmt: skip
