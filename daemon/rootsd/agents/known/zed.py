"""Zed. Its settings have comments, in one place on both systems.

Sources: the vendor's documentation of context servers, and `crates/paths` of its source.
"""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Zed"
OBEYS = (".zed",)


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. It reads `XDG_CONFIG_HOME` on Linux alone."""
    form = forms.client
    return (
        form.ClientFacts(
            name="zed",
            title=LABEL,
            places=(forms.place.in_config_home("zed/settings.json", ".config/zed/settings.json"),),
            keys=("context_servers",),
            form=form.EntryForm(fixed={"source": "custom"}),
            agents=form.AgentList(("agent_servers",), form.EntryForm(fixed={"type": "custom"})),
            programs=("zed", "zeditor"),
            applies="at once",
            not_synced=(
                "its sandbox limits only what terminal commands write, and it cannot deny a folder"
            ),
            others=(form.from_flatpak("Zed", "dev.zed.Zed"),),
        ),
    )
