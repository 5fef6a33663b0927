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


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook.

    It has a variable, too, but with the working directory of the call. So nothing is allowed.
    """
    return forms.hook.HookDialect(
        events=("BeforeTool",),
        decision="decision",
        reasons=("reason",),
        readers={
            "read_file": ("file_path", "absolute_path"),
            "read_many_files": ("include", "paths"),
            "list_directory": ("dir_path", "path"),
            "glob": ("dir_path", "path"),
            "grep_search": ("dir_path", "path"),
            "search_file_content": ("dir_path", "path"),
        },
        writers={
            "edit": ("file_path",),
            "notebook_edit": ("notebook_path",),
            "replace": ("file_path",),
            "write_file": ("file_path",),
        },
        searchers={
            "glob": "pattern",
            "grep_search": "glob",
            "list_directory": "",
            "search_file_content": "include",
        },
    )
