"""Mistral Vibe, version 3.0.2: its source, and its files in use."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Mistral Vibe"
PROGRAMS = ("vibe", "vibe-rs", "vibe-acp", "vibe-app-server")
SOURCE = "its source: it sets none"
ACP = ("vibe-acp",)
FOLDER_FLAG = "--add-dir"
RUNS = (".vibe/config.toml", ".vibe/hooks.toml")
OBEYS = (".vibe",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("VIBE_HOME", ".vibe"),
                loads=("agents", "hooks.toml", "plugins", "prompts", "skills", "tools"),
                copies=(
                    forms.state.CopiedFile("config.toml"),
                    forms.state.CopiedFile("trusted_folders.toml"),
                ),
                credentials=(".env",),
            ),
        ),
        reads=(".agents",),
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. It has an array of servers, and rewrites it as one line."""
    form = forms.client
    return (
        form.ClientFacts(
            name="mistral-vibe",
            title=LABEL,
            places=(forms.place.moved_by("VIBE_HOME", ".vibe", "config.toml"),),
            keys=("mcp_servers",),
            list_of=form.ServerList.ITEMS,
            language=form.TOML,
            form=form.EntryForm(fixed={"name": form.ENTRY_NAME, "transport": "stdio"}),
            programs=PROGRAMS[:1],
            worktrees=forms.place.moved_by("VIBE_HOME", ".vibe", "worktrees"),
            not_synced="its lists of denied paths are in TOML, and rootsd syncs those in JSON",
        ),
    )
