"""Copilot CLI. Its help topics, and its files in use, version 1.0.102."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Copilot CLI"
PROGRAMS = ("copilot",)
FOLDER_FLAG = "--add-dir"
PACKAGES = ("@github/copilot/",)
# Observed in its commands, but not in every version: dynatrace-oss/dtctl issue 288.
MARKERS = ("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID")
# microsoft/vscode, toolTerminalCreator.ts: also in terminals that people use.
HINTS = ("COPILOT_AGENT",)
SOURCE = "run, 1.0.102; the one in italics by the source of VS Code"
OBEYS = (".github/copilot-instructions.md",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("COPILOT_HOME", ".copilot"),
                loads=(
                    "agents", "copilot-instructions.md", "extensions", "hooks",
                    "installed-plugins", "instructions", "lsp-config.json", "mcp-config.json",
                    "permissions-config.json", "plugins", "settings.json", "skills",
                ),
                # The login is in there, too.
                copies=(forms.state.CopiedFile("config.json", by_project=(("trustedFolders",),)),),
                credentials=("mcp-oauth-config", "mcp-oauth-config.json"),
            ),
        ),
        reads=(".agents", ".config/github-copilot"),
        caches=(".cache/copilot",),
        variables={"COPILOT_AUTO_UPDATE": "false"},
        is_tried=True,
    )  # fmt: skip


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook.

    For an event with this name, it sends the tool names of Claude Code, with its own keys. Its own
    lists say what needs no question, so nothing is allowed.
    """
    return forms.hook.HookDialect(
        events=("PreToolUse",),
        decision="permissionDecision",
        reasons=("permissionDecisionReason",),
        readers={"Read": ("path",), "Grep": ("path", "paths"), "Glob": ("path", "paths")},
        writers={"Edit": ("path",), "Write": ("path",)},
        searchers={"Grep": "glob", "Glob": "pattern"},
    )


def access() -> forms.access.ListFormat:
    """Return the format of its access lists.

    Its paths have no wildcards: `copilot help sandbox`, and tests/e2e/agents/test_sync_lists.py.
    """
    keys = ("sandbox", "userPolicy", "filesystem", "deniedPaths")
    return forms.access.ListFormat(
        forms.place.moved_by("COPILOT_HOME", ".copilot", "settings.json"),
        denial=(forms.access.ListLine(keys, "{}", special=forms.access.EXPANDED),),
        applies="at its next start",
        not_covered="anything, unless its sandbox is on",
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Its listing starts no server."""
    form = forms.client
    return (
        form.ClientFacts(
            name="copilot",
            title=LABEL,
            places=(forms.place.moved_by("COPILOT_HOME", ".copilot", "mcp-config.json"),),
            keys=("mcpServers",),
            form=form.EntryForm(fixed={"type": "local", "tools": ["*"]}),
            reading=form.EntryReading(
                (form.Placeholder.BRACES, form.Placeholder.DEFAULT, form.Placeholder.BARE),
                frozenset((form.EntryPart.FOLDER, form.EntryPart.HOME_FOLDER)),
            ),
            programs=PROGRAMS,
            trial=form.ClientTrial.TRIED,
            hook=form.HookFile(
                forms.place.moved_by("COPILOT_HOME", ".copilot", "hooks/rootsd.json"),
                # It refuses each call whose hook fails, so a missing rootsd would refuse them all.
                {"type": "command", "bash": f"{form.HOOK_COMMAND} || true", "timeoutSec": 10},
                form.NewJsonFile('{"version": 1}\n'),
            ),
            health=form.HealthCheck(("mcp", "list"), listed=rf"(?m)^\s+{form.ENTRY_NAME} \("),
        ),
    )


_YES = ("1", "on", "true", "y", "yes")


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow, by its help topics and runs of 1.0.102."""
    del inside
    form, extent = forms.reach, forms.reach.Extent
    settings = home.read(access().place)
    config = home.read(forms.place.moved_by("COPILOT_HOME", ".copilot", "config.json"))
    reason, usual = "Copilot CLI asks by default", (extent.ASKS_ELSEWHERE, extent.ASKS)
    if home.variables.get("COPILOT_ALLOW_ALL", "").strip().lower() in _YES:
        reason, usual = "the variable COPILOT_ALLOW_ALL", (extent.EVERYTHING, extent.EVERYTHING)
    # With `assisted`, a model decides, and not a person.
    modes = dict.fromkeys(("allow-all", "assisted"), (extent.EVERYTHING, extent.EVERYTHING))
    said = form.by_mode(
        (settings, config), ("defaultPermissionMode",), modes,
        (form.by_default(usual[0], reason), form.by_default(usual[1], reason)),
    )  # fmt: skip
    return form.AgentReach(*said, (), _findings(home, settings, config))


def _findings(
    home: forms.reach.AgentHome, settings: forms.reach.AgentFile, config: forms.reach.AgentFile
) -> forms.reach.Findings:
    form = forms.reach
    for file in (settings, config):
        yield from form.about_folders(home, file, file.texts("trustedFolders"), "trusts")
    policy = ("sandbox", "userPolicy", "filesystem")
    if settings.at(*policy) and settings.at("sandbox", "enabled") is not True:
        needed = "its sandbox is on only with --sandbox, or with sandbox.enabled"
        text = f"sandbox.userPolicy has no effect: {needed}"
        yield form.finding(form.ExposureKind.INACTIVE, settings, policy, text)
    yield from form.misspelled_paths(home, settings, settings.texts(*policy, "deniedPaths"))
