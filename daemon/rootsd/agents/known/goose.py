"""Goose. block/goose: crates/goose/src/config. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Goose"
PROGRAMS = ("goose", "goosed")
ACP = ("goose", "acp")
# block/goose: crates/goose-mcp/src/developer/shell.rs
MARKERS = ("GOOSE_TERMINAL", "AGENT=goose")
SOURCE = "its source"
OBEYS = (".goose",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.CONFIG.at("goose"),
                loads=(
                    ".goosehints", "*.yaml", "AGENTS.md", "agents", "custom_providers",
                    "declarative_*", "memory", "prompts", "recipes", "skills",
                ),
            ),
            forms.state.AgentFolder(forms.place.DATA.at("goose")),
            forms.state.AgentFolder(forms.place.STATE.at("goose")),
        ),
        reads=(".agents",),
    )  # fmt: skip


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Each entry repeats its name.

    Source: the vendor's documentation of its configuration files.
    """
    form = forms.client
    return (
        form.ClientFacts(
            name="goose",
            title=LABEL,
            places=(forms.place.CONFIG.at("goose/config.yaml"),),
            keys=("extensions",),
            language=form.YAML,
            form=form.EntryForm(
                fixed={"enabled": True, "type": "stdio", "name": form.ENTRY_NAME},
                more={"timeout": 300},
                program="cmd",
                environment="envs",
            ),
            programs=PROGRAMS[:1],
        ),
    )


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its mode allows, by its documentation. The variable wins over the file."""
    del inside
    form, extent = forms.reach, forms.reach.Extent
    place = forms.place.CONFIG.at("goose/config.yaml")
    keys, files = ("GOOSE_MODE",), [home.read(place, forms.client.YAML)]
    if mode := home.variables.get("GOOSE_MODE"):
        files = [form.from_variable("GOOSE_MODE", f'"{mode}"', keys)]
    usual = (form.by_default(extent.EVERYTHING, "Goose asks nothing by default"),) * 2
    modes = {
        "auto": (extent.EVERYTHING, extent.EVERYTHING),
        "approve": (extent.ASKS, extent.ASKS),
        "smart_approve": (extent.EVERYTHING, extent.ASKS),
        "chat": (extent.NOTHING, extent.NOTHING),
    }
    return form.AgentReach(*form.by_mode(files, keys, modes, usual))
