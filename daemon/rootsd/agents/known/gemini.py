"""Gemini CLI. google-gemini/gemini-cli: packages/core/src/config/storage.ts, version 0.61.0."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Gemini CLI"
PROGRAMS = ("gemini",)
PACKAGES = ("@google/gemini-cli/",)
# google-gemini/gemini-cli: packages/core/src/services/shellExecutionService.ts
MARKERS = ("GEMINI_CLI",)
SOURCE = "run, 0.61.0"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("GEMINI_CLI_HOME", ".gemini", inside=".gemini"),
                loads=(
                    ".env", "GEMINI.md", "agents", "commands", "extensions", "hooks",
                    "mcp-server-enablement.json", "policies", "skills",
                ),
                # It writes both: choices in its dialogs, and the folders that are trusted.
                copies=(
                    forms.state.CopiedFile("settings.json"),
                    forms.state.CopiedFile("trustedFolders.json", by_project=(forms.state.TOP,)),
                ),
                credentials=(
                    "oauth_creds.json", "google_accounts.json", "gemini-credentials.json",
                    "mcp-oauth-tokens.json", "mcp-oauth-tokens-v2.json", "installation_id",
                ),
            ),
        ),
        reads=(".agents",),
    )  # fmt: skip
