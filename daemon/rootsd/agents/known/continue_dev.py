"""Continue. continuedev/continue: core/util/paths.ts. It was not run behind the wall."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Continue"
PROGRAMS = ("cn",)
PACKAGES = ("@continuedev/cli/",)
SOURCE = "its source: it sets none"
OBEYS = (".continue",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("CONTINUE_GLOBAL_DIR", ".continue"),
                loads=(
                    ".env", "agents", "assistants", "config.json", "config.ts", "config.yaml",
                    "mcpServers", "models", "permissions.yaml", "prompts", "rules", "skills",
                ),
                credentials=("auth.json",),
            ),
        ),
    )  # fmt: skip


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Source: the vendor's reference of `config.yaml`."""
    form = forms.client
    return (
        form.ClientFacts(
            name="continue",
            title=LABEL,
            places=(forms.place.moved_by("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml"),),
            keys=("mcpServers",),
            list_of=form.ServerList.ITEMS,
            language=form.YAML,
            form=form.EntryForm(fixed={"name": form.ENTRY_NAME}),
            programs=PROGRAMS,
            applies="at once",
        ),
    )
