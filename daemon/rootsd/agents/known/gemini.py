"""Gemini CLI. google-gemini/gemini-cli: packages/core/src/config/storage.ts, version 0.61.0."""

from __future__ import annotations

from rootsd.agents.profile import TOP, AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Gemini CLI",
    folders=(
        AgentFolder(
            ".gemini",
            variable="GEMINI_CLI_HOME",
            below=".gemini",
            loads=(
                ".env", "GEMINI.md", "agents", "commands", "extensions", "hooks",
                "mcp-server-enablement.json", "policies", "skills",
            ),
            # It writes both: choices in its dialogs, and the folders that are trusted.
            copies=(
                CopiedFile("settings.json"),
                CopiedFile("trustedFolders.json", by_project=(TOP,)),
            ),
            credentials=(
                "oauth_creds.json", "google_accounts.json", "gemini-credentials.json",
                "mcp-oauth-tokens.json", "mcp-oauth-tokens-v2.json", "installation_id",
            ),
        ),
    ),
    reads=(".agents",),
)  # fmt: skip
