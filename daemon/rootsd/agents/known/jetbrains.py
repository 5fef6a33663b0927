"""The IDEs of JetBrains, which run agents by ACP.

Source: the vendor's documentation of ACP. Their MCP servers are in settings of each IDE.
"""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "JetBrains"


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return the file with their agents. It has no MCP servers."""
    form = forms.client
    return (
        form.ClientFacts(
            name="jetbrains",
            title=LABEL,
            places=(forms.place.SettingsPlace(".jetbrains/acp.json"),),
            keys=(),
            agents=form.AgentList(("agent_servers",)),
            not_synced="their agents have access lists of their own",
        ),
    )
