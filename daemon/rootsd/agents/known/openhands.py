"""OpenHands CLI, version 1.16.0: its source, and its files in use."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "OpenHands"
PROGRAMS = ("openhands", "openhands-acp")
PACKAGES = ("/openhands_cli/",)
SOURCE = "its source: it sets none"
RUNS = (".openhands/hooks.json",)
OBEYS = (".openhands",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("OPENHANDS_PERSISTENCE_DIR", ".openhands"),
                loads=("hooks.json", "mcp.json", "microagents", "skills"),
                copies=(forms.state.CopiedFile("cli_config.json"),),
                # The key of the model's service is in there, too.
                credentials=("agent_settings.json",),
            ),
        ),
        reads=(".agents",),
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file."""
    form, moved_by = forms.client, forms.place.moved_by
    return (
        form.ClientFacts(
            name="openhands",
            title=LABEL,
            places=(moved_by("OPENHANDS_PERSISTENCE_DIR", ".openhands", "mcp.json"),),
            keys=("mcpServers",),
            form=form.EntryForm(fixed={"transport": "stdio"}),
            programs=PROGRAMS[:1],
            not_synced=form.NO_DENIALS,
        ),
    )
