"""Amp, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Amp"
PROGRAMS = ("amp",)
PACKAGES = ("@sourcegraph/amp/",)
MARKERS = ("AGENT=amp", "AMP_CURRENT_THREAD_ID")  # ascorbic/am-i-vibing: its table of providers
SOURCE = "programs that look for it"
RUNS = (".amp/settings.json",)
OBEYS = (".amp",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.CONFIG.at("amp"),
                loads=(
                    "AGENT.md", "AGENTS.md", "checks", "commands", "plugins", "skills", "tools",
                ),
                copies=(
                    forms.state.CopiedFile("settings.json"),
                    forms.state.CopiedFile("settings.jsonc"),
                ),
            ),
            forms.state.AgentFolder(
                forms.place.DATA.at("amp"),
                credentials=("secrets.json", "device-id.json"),
            ),
        ),
        reads=(".config/AGENTS.md", ".config/agents", ".agents"),
    )  # fmt: skip


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Its MCP servers start only after a login."""
    return (
        forms.client.ClientFacts(
            name="amp",
            title=LABEL,
            places=(forms.place.CONFIG.at("amp/settings.json"),),
            keys=("amp.mcpServers",),
            programs=PROGRAMS,
        ),
    )
