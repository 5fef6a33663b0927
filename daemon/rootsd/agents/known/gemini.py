"""Gemini CLI. google-gemini/gemini-cli: packages/core/src/config/storage.ts, version 0.61.0."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Gemini CLI"
PROGRAMS = ("gemini",)
ACP = ("gemini", "--acp")
FOLDER_FLAG = "--include-directories"
PACKAGES = ("@google/gemini-cli/",)
# google-gemini/gemini-cli: packages/core/src/services/shellExecutionService.ts
MARKERS = ("GEMINI_CLI",)
SOURCE = "run, 0.61.0"
RUNS = (".gemini/settings.json",)
OBEYS = (".gemini",)


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
        is_tried=True,
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


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. In a folder that it does not trust, it starts no server."""
    form = forms.client
    # The variable replaces the home folder (`packages/core/src/utils/paths.ts`).
    settings = forms.place.moved_by("GEMINI_CLI_HOME", ".gemini", "settings.json", ".gemini")
    return (
        form.ClientFacts(
            name="gemini",
            title=LABEL,
            places=(settings,),
            keys=("mcpServers",),
            # In a variable, it replaces each other `${...}` by nothing.
            reading=form.EntryReading(
                (form.Placeholder.BRACES, form.Placeholder.DEFAULT, form.Placeholder.BARE),
                frozenset((form.EntryPart.FOLDER, form.EntryPart.OTHER_PLACEHOLDERS)),
            ),
            programs=PROGRAMS,
            trial=form.ClientTrial.TRIED,
            tools=form.ToolPermission(form.ToolFile.ENTRY, members={"trust": True}),
            hook=form.HookFile(settings, form.nested_hook(10_000)),
            health=form.HealthCheck(
                ("mcp", "list"),
                listed=rf" {form.ENTRY_NAME}: ",
                connected=rf" {form.ENTRY_NAME}: .*- Connected",
                problems={
                    rf" {form.ENTRY_NAME}: .*- Disabled": "it does not trust your home folder",
                },
                # The listing runs in the home folder, whose settings are those of the user anyway.
                variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
            ),
            not_synced=form.NO_DENIALS,
            notes=("Gemini CLI starts servers only in folders that you trust.",),
        ),
    )


SETTINGS = (*RUNS, ".gemini/policies/auto-saved.toml")


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what the settings allow. Its file tools were run in 0.61.0."""
    extent = forms.reach.Extent
    folder = forms.place.moved_by("GEMINI_CLI_HOME", ".gemini", inside=".gemini")
    usual = (extent.ASKS_ELSEWHERE, extent.ASKS)
    modes = {"auto_edit": (extent.ASKS_ELSEWHERE,) * 2}  # it ignores `yolo` in settings
    mode = ("general", "defaultApprovalMode")
    fork = forms.like_gemini.GeminiFork(LABEL, folder, mode, modes, usual, is_trusting=True)
    return forms.like_gemini.reach_of_fork(home, inside, fork)
