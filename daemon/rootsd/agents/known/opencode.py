"""opencode. sst/opencode: packages/opencode/src/global and config, version 1.18.33."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "opencode"
PROGRAMS = ("opencode",)
ACP = ("opencode", "acp")
PACKAGES = ("/opencode-ai/",)
# sst/opencode: packages/opencode/src/index.ts; forks of it keep the variable
MARKERS = ("OPENCODE=1",)
SOURCE = "run, 1.18.33"
RUNS = ("opencode.json",)
OBEYS = (".opencode", ".opencode.json", "opencode.json", "opencode.jsonc")

_NAMES = ("opencode.json", "opencode.jsonc")
_FOLDERS = (".opencode",)


def state(name: str = "opencode", folders: tuple[str, ...] = _FOLDERS) -> forms.state.AgentState:
    """Return what it needs behind the wall, or a program that was made from it."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.CONFIG.at(name),
                loads=(
                    "*.json", "*.jsonc", "AGENTS.md", "agent", "agents", "bun.lock", "command",
                    "commands", "mode", "modes", "node_modules", "plugin", "plugins", "skill",
                    "skills", "themes", "tool", "tools",
                ),
            ),
            forms.state.AgentFolder(
                forms.place.DATA.at(name),
                loads=("bin",),
                credentials=("auth.json", "mcp-auth.json"),
            ),
            forms.state.AgentFolder(forms.place.STATE.at(name)),
        ),
        reads=(*folders, ".agents", ".claude/CLAUDE.md", ".claude/skills"),
        caches=(f".cache/{name}",),
        variables={f"{name.upper()}_DISABLE_AUTOUPDATE": "1"},
        is_tried=True,
    )  # fmt: skip


def access() -> forms.access.ListFormat:
    """Return the format of its access lists."""
    return forms.like_opencode.lists_of_fork(_fork())


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration files."""
    return (forms.like_opencode.client_of_fork(_fork(), *_NAMES),)


SETTINGS = (*_NAMES, *(f".opencode/{name}" for name in _NAMES))


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow."""
    return forms.like_opencode.reach_of_fork(home, inside, _fork())


def _fork() -> forms.like_opencode.OpencodeFork:
    return forms.like_opencode.OpencodeFork(
        label=LABEL,
        name="opencode",
        names=_NAMES,
        folders=_FOLDERS,
        names_in_folders=_NAMES,
        trial=forms.client.ClientTrial.TRIED,
    )
