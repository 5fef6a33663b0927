"""Qwen Code. QwenLM/qwen-code: packages/core/src/config/storage.ts, run in version 0.15.10."""

from __future__ import annotations

from rootsd.agents import forms
from rootsd.agents.known import gemini

LABEL = "Qwen Code"
PROGRAMS = ("qwen",)
ACP = ("qwen", "--acp")
FOLDER_FLAG = "--add-dir"
PACKAGES = ("@qwen-code/qwen-code/",)
# QwenLM/qwen-code: packages/core/src/services/shellExecutionService.ts
MARKERS = ("QWEN_CODE",)
SOURCE = "run, 0.24.4"
OBEYS = (".qwen",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("QWEN_HOME", ".qwen"),
                loads=(
                    ".env", "QWEN.md", "agents", "commands", "extensions", "hooks",
                    "output-language.md", "policies", "skills",
                ),
                copies=(
                    forms.state.CopiedFile("settings.json"),
                    forms.state.CopiedFile("trustedFolders.json", by_project=(forms.state.TOP,)),
                ),
                credentials=("oauth_creds.json", "mcp-oauth-tokens.json", "installation_id"),
            ),
        ),
        reads=(".agents",),
        is_tried=True,
    )  # fmt: skip


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook. Most tools have the names of Gemini CLI."""
    like = gemini.hook()
    return forms.hook.HookDialect(
        events=("PreToolUse",),
        inside="hookSpecificOutput",
        decision="permissionDecision",
        reasons=("permissionDecisionReason",),
        readers=like.readers,
        writers=like.writers,
        searchers=like.searchers,
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Its model finds our tools only after a search."""
    form = forms.client
    settings = forms.place.moved_by("QWEN_HOME", ".qwen", "settings.json")
    (like,) = gemini.clients()
    return (
        form.ClientFacts(
            name="qwen",
            title=LABEL,
            places=(settings,),
            keys=("mcpServers",),
            reading=form.EntryReading(
                (form.Placeholder.BRACES, form.Placeholder.BARE),
                frozenset((form.EntryPart.FOLDER,)),
            ),
            programs=PROGRAMS,
            trial=form.ClientTrial.TRIED,
            tools=like.tools,
            hook=form.HookFile(settings, form.nested_hook(10_000)),
            health=form.HealthCheck(
                ("mcp", "list"),
                listed=rf" {form.ENTRY_NAME}: ",
                connected=rf" {form.ENTRY_NAME}: .*- Connected",
            ),
            not_synced=form.NO_DENIALS,
        ),
    )


SETTINGS = (".qwen/settings.json",)


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow, by the source of 0.24.4."""
    extent = forms.reach.Extent
    folder = forms.place.moved_by("QWEN_HOME", ".qwen")
    auto = (extent.EVERYTHING, extent.EVERYTHING)  # a model decides then, and not a person
    modes = {
        "yolo": auto, "auto": auto,
        "default": (extent.ASKS_ELSEWHERE, extent.ASKS),
        "plan": (extent.ASKS_ELSEWHERE, extent.ASKS),
        "auto-edit": (extent.ASKS_ELSEWHERE, extent.ASKS_ELSEWHERE),
        "auto_edit": (extent.ASKS_ELSEWHERE, extent.ASKS_ELSEWHERE),
    }  # fmt: skip
    mode = ("tools", "approvalMode")
    fork = forms.like_gemini.GeminiFork(LABEL, folder, mode, modes, auto, is_trusting=False)
    return forms.like_gemini.reach_of_fork(home, inside, fork)
