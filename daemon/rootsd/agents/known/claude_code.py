"""Claude Code. Its documentation of settings, and its files in use, version 2.1.330."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Claude Code"
PROGRAMS = ("claude", "claude.exe")  # npm installs the second one, on every system
PACKAGES = ("@anthropic-ai/claude-code/",)
# Its documentation of the Bash tool's environment, from 2.1.172 on.
MARKERS = ("CLAUDE_CODE_CHILD_SESSION",)
HINTS = ("CLAUDECODE",)  # editor extensions also set it, in terminals that people use
SOURCE = "run, 2.1.330"
RUNS = (".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/")
OBEYS = (
    ".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".claude/commands",
    ".claude/agents", ".claude/hooks", ".claude/skills", ".claude/plugins",
)  # fmt: skip


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                # It replaces .claude.json by rename, in the home folder unless this is set.
                forms.place.moved_by("CLAUDE_CONFIG_DIR", ".claude"),
                loads=(
                    "settings.json", "settings.local.json", "remote-settings.json", "CLAUDE.md",
                    "agents", "commands", "hooks", "keybindings.json", "local", "output-styles",
                    "plugins", "rules", "skills", "statusline*", "workflows",
                ),
                copies=(
                    forms.state.CopiedFile(
                        ".claude.json",
                        by_project=(("projects",),),
                        without=("githubRepoPaths",),
                        beside=".claude.json",
                    ),
                ),
                credentials=(".credentials.json", ".device-keys.json"),
                # With it, each command fails: "bwrap: Failed to make / slave".
                sandboxes=(forms.state.SandboxSwitch("settings.json", ("sandbox", "enabled")),),
            ),
        ),
        variables={"DISABLE_AUTOUPDATER": "1"},
        is_tried=True,
    )  # fmt: skip


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook."""
    return forms.hook.HookDialect(
        events=("PreToolUse",),
        inside="hookSpecificOutput",
        decision="permissionDecision",
        reasons=("permissionDecisionReason",),
        project="CLAUDE_PROJECT_DIR",
        readers={
            "Read": ("file_path",),
            "NotebookRead": ("notebook_path",),
            "Grep": ("path",),
            "Glob": ("path",),
            "LS": ("path",),
        },
        writers={
            "Edit": ("file_path",),
            "MultiEdit": ("file_path",),
            "Write": ("file_path",),
            "NotebookEdit": ("notebook_path",),
        },
        searchers={"Grep": "glob", "Glob": "pattern", "LS": ""},
        asks="ask",
        can_be_strict=True,
    )


def access() -> forms.access.ListFormat:
    """Return the format of its access lists."""
    line, keys = forms.access.ListLine, ("permissions", "deny")
    # It matches as gitignore(5) does, but it does not match an escaped ? or \. The first slash
    # stands for the whole disk.
    read, edit = (
        line(keys, f"{tool}(/{{}}/**)", special="?\\", escaped="*[]", trims_names=True)
        for tool in ("Read", "Edit")
    )
    opened = line(("permissions", "additionalDirectories"), "{}", special=forms.access.EXPANDED)
    return forms.access.ListFormat(
        forms.place.moved_by("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        denial=(read, edit),
        grant=(opened,),
        read_only=(edit,),
        applies="within a second or two, in running sessions",
        not_covered="paths in shell commands, unless its sandbox is on",
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. It rewrites that all the time, and holds a lock meanwhile.

    It makes worktrees in `.claude/worktrees` of the checkout itself, so they need no parent.
    """
    form = forms.client
    settings = forms.place.moved_by("CLAUDE_CONFIG_DIR", ".claude", "settings.json")
    file_tools = "Read|Grep|Glob|LS|Edit|MultiEdit|Write|NotebookRead|NotebookEdit"
    return (
        form.ClientFacts(
            name="claude-code",
            title=LABEL,
            places=(forms.place.moved_by("CLAUDE_CONFIG_DIR", "", ".claude.json"),),
            keys=("mcpServers",),
            projects=("projects",),
            project_file=".mcp.json",
            form=form.EntryForm(fixed={"type": "stdio"}),
            # It starts a server in the folder of the session, also if the entry has a `cwd`.
            reading=form.EntryReading(
                (form.Placeholder.BRACES, form.Placeholder.DEFAULT), frozenset()
            ),
            programs=PROGRAMS[:1],
            folder=forms.place.moved_by("CLAUDE_CONFIG_DIR", ".claude"),
            trial=form.ClientTrial.TRIED,
            tools=form.ToolPermission(
                form.ToolFile.LIST,
                place=settings,
                keys=("permissions", "allow"),
                items=tuple(f"mcp__{form.ENTRY_NAME}__{tool}" for tool in form.TOOLS),
            ),
            hook=form.HookFile(
                settings,
                form.nested_hook(10, file_tools),
                strict=form.nested_hook(10, file_tools, {"onFailure": "block"}),
                strict_since=(2, 1, 295),
                gap=(
                    "Claude Code runs no hook in a project whose own settings have"
                    ' "disableAllHooks": true.'
                ),
            ),
            health=form.HealthCheck(
                ("mcp", "list"),
                listed=rf"(?m)^{form.ENTRY_NAME}: ",
                connected=rf"(?m)^{form.ENTRY_NAME}: .*Connected",
            ),
            lock=form.ClientLock.FOLDER,
        ),
    )
