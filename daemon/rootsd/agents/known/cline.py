"""Cline's command line. Its files in use, version 3.0.65; it was not run behind the wall."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Cline"
PROGRAMS = ("cline",)
PACKAGES = ("/node_modules/cline/",)
# Observed in the commands of its command-line program, version 3.0.65.
MARKERS = ("CLINE_CONNECTOR_CLI_LAUNCH",)
# cline/cline: VscodeTerminalRegistry.ts, also in terminals that people use.
HINTS = ("CLINE_ACTIVE",)
SOURCE = "run, 3.0.65; the one in italics by its source"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("CLINE_DIR", ".cline"),
                loads=(
                    "agents", "data/settings/cline_mcp_settings.json", "data/hooks", "data/rules",
                    "data/skills", "data/workflows", "hooks", "plugins", "rules", "skills",
                    "workflows",
                ),
                copies=(forms.state.CopiedFile("data/globalState.json"),),
                credentials=("data/secrets.json", "data/settings/providers.json"),
            ),
        ),
        reads=("Documents/Cline", ".agents"),
    )  # fmt: skip


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return the files of the program for the terminal, and of the extension of VS Code.

    The program reads entries with the command in `transport`. Other installers write it directly
    into the entry, so both forms are understood. Its listing starts no server.

    A server has three seconds to answer. With `timeout`, that is the limit, and the one of each
    request, which is 60 seconds otherwise. Sources: runs of version 3.0.65, and its schema.
    """
    form, variable = forms.client, forms.place.HomeVariable
    file = "cline_mcp_settings.json"
    extension = f"Code/User/globalStorage/saoudrizwan.claude-dev/settings/{file}"
    limit = {"timeout": 60}
    # The first that is set wins (`resolveMcpSettingsPath` of its source).
    settings = forms.place.SettingsPlace(
        f".cline/data/settings/{file}",
        variables=(
            variable("CLINE_MCP_SETTINGS_PATH"),
            variable("CLINE_DATA_DIR", f"settings/{file}"),
            variable("CLINE_DIR", f"data/settings/{file}"),
        ),
    )
    return (
        form.ClientFacts(
            name="cline",
            title=LABEL,
            places=(settings,),
            keys=("mcpServers",),
            form=form.EntryForm(
                fixed={"type": "stdio"}, inside="transport", more=limit, wrapped=limit
            ),
            reading=form.EntryReading(parts=frozenset((form.EntryPart.FOLDER,))),
            programs=PROGRAMS,
            folder=forms.place.moved_by("CLINE_DIR", ".cline"),
            trial=form.ClientTrial.TRIED,
            health=form.HealthCheck(("config", "mcp"), listed=rf"(?m)^ +{form.ENTRY_NAME} \["),
            worktrees=forms.place.moved_by("CLINE_DIR", ".cline", "worktrees"),
        ),
        form.ClientFacts(
            name="cline-vscode",
            title="Cline in VS Code",
            places=(
                forms.place.in_config_home(extension, f"Library/Application Support/{extension}"),
            ),
            keys=("mcpServers",),
        ),
    )
