"""Claude Code. Its documentation of settings, and its files in use, version 2.1.330."""

from __future__ import annotations

import os

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


# Commands that run any other command, and commands that print any file.
_RUNNERS = (
    "bash", "sh", "zsh", "env", "xargs", "sudo", "python", "python3", "node", "perl",
    "ruby", "npx", "uvx", "docker", "find", "awk",
)  # fmt: skip
_PRINTERS = ("cat", "head", "tail", "less", "grep", "rg", "sed", "cp")
_RULES = ("allow", "deny", "ask")
_TOOLS = (
    "Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read",
    "WebFetch", "WebSearch", "Write",
)  # fmt: skip
_FILE_TOOLS = frozenset(("Edit", "Glob", "Grep", "MultiEdit", "NotebookEdit", "Read", "Write"))
_WHOLE_DISK = frozenset(("", "*", "**", "//**", "~/**"))


def reach(home: forms.reach.AgentHome) -> forms.reach.AgentReach:
    """Return what its settings allow. `default` and `auto` were run in 2.1.330.

    Its file tools ask before they leave the project. The command line `--permission-mode` and a
    project's own settings can say otherwise.
    """
    form, place = forms.reach, forms.place
    user = home.read(place.moved_by("CLAUDE_CONFIG_DIR", ".claude", "settings.json"))
    managed = home.read(
        place.SettingsPlace(
            "/etc/claude-code/managed-settings.json",
            "/Library/Application Support/ClaudeCode/managed-settings.json",
        )
    )
    own = home.read(place.moved_by("CLAUDE_CONFIG_DIR", "", ".claude.json"))
    files = (managed, user)
    reads, writes, found = _by_mode(files)
    for file in files:
        for keys, rule in file.texts("permissions", "allow").items():
            if widens := _widened_by(rule):
                said = form.said_by(form.Extent.EVERYTHING, file, *keys)
                reads = said if "r" in widens else reads
                writes = said if "w" in widens else writes
        found += _about_rules(home, file)
        found += form.misspelled_keys(file, (), ("permissions", "hooks", "sandbox", "env"))
        found += form.misspelled_keys(
            file, ("permissions",), (*_RULES, "additionalDirectories", "defaultMode")
        )
    found += _about_lists(home, files, own)
    sandbox = form.first_with(files, "sandbox", "enabled")
    if sandbox is not None and sandbox.at("sandbox", "enabled") is True:
        is_asked = sandbox.at("sandbox", "autoAllowBashIfSandboxed") is False
        denied = sandbox.texts("sandbox", "filesystem", "denyRead").values()
        is_denied = any(home.holds_home(home.expand(each) or "-") for each in denied)
        if not (is_asked or is_denied):  # its sandbox reads the whole disk
            reads = form.said_by(form.Extent.EVERYTHING, sandbox, "sandbox", "enabled")
        if writes["extent"] != form.Extent.EVERYTHING:  # it limits commands, not the file tools
            writes = form.said_by(form.Extent.ASKS_ELSEWHERE, sandbox, "sandbox", "enabled")
    opened = [each for file in files for each in _opened(file).values()]
    return form.AgentReach(reads, writes, tuple(opened), tuple(found))


def reach_in(home: forms.reach.AgentHome, project: str) -> forms.reach.Findings:
    """Yield what the settings of a project change for the sessions in it."""
    form, keys = forms.reach, ("permissions", "defaultMode")
    paths = (f"{project}/{name}" for name in RUNS[1:3])
    for file in map(home.read_in_project, filter(os.path.lexists, paths)):
        if file.at(*keys) in ("acceptEdits", "auto", "bypassPermissions"):
            text = f"a session there runs in the mode {file.at(*keys)}, whatever your settings say"
            yield form.finding(form.ExposureKind.OVERRIDDEN, file, keys, text)
        if file.at("disableAllHooks") is True:
            text = "a session there runs none of your hooks"
            yield form.finding(form.ExposureKind.HOOKS_OFF, file, ("disableAllHooks",), text)
        yield from form.first_few(_about_rules(home, file))
        yield from form.about_folders(home, file, _opened(file), "opens")


def _by_mode(
    files: tuple[forms.reach.AgentFile, ...],
) -> tuple[forms.reach.ExposedAccess, forms.reach.ExposedAccess, forms.reach.Found]:
    form, keys = forms.reach, ("permissions", "defaultMode")
    extent = form.Extent
    found: forms.reach.Found = []
    modes = {
        "acceptEdits": (extent.ASKS_ELSEWHERE, extent.ASKS_ELSEWHERE),
        "auto": (extent.EVERYTHING, extent.ASKS_ELSEWHERE),
        "bypassPermissions": (extent.EVERYTHING, extent.EVERYTHING),
        "dontAsk": (extent.PROJECT, extent.NOTHING),
    }
    default = (extent.ASKS_ELSEWHERE, extent.ASKS)
    file = form.first_with(files, *keys)
    mode = file.at(*keys) if file is not None else None
    switch = form.first_with(files, "permissions", "disableBypassPermissionsMode")
    if file is not None and switch is not None and mode == "bypassPermissions":
        text = f'"{mode}" has no effect: {switch.path} disables it'
        found.append(form.finding(form.ExposureKind.OVERRIDDEN, file, keys, text))
        file = None
    if file is None or not isinstance(mode, str):
        reason = "Claude Code asks by default"
        return form.by_default(default[0], reason), form.by_default(default[1], reason), found
    reads, writes = modes.get(mode, default)
    return form.said_by(reads, file, *keys), form.said_by(writes, file, *keys), found


def _widened_by(rule: str) -> str:
    """Return `r`, `w`, or both, if a rule allows that everywhere."""
    tool, _, rest = rule.partition("(")
    what = rest.removesuffix(")").removesuffix(":*").strip()
    if tool == "Bash":
        program = what.split(" ")[0]
        is_any = what in _WHOLE_DISK or program in _RUNNERS
        return "rw" if is_any else "r" if program in _PRINTERS else ""
    if what not in _WHOLE_DISK or (what in ("*", "**") and tool != "Read"):
        return ""
    return {"Read": "r", "Edit": "w", "Write": "w"}.get(tool, "")


def _about_rules(home: forms.reach.AgentHome, file: forms.reach.AgentFile) -> forms.reach.Findings:
    form = forms.reach
    denied = set(file.texts("permissions", "deny").values())
    for name in _RULES:
        for keys, rule in file.texts("permissions", name).items():
            tool, _, rest = rule.partition("(")
            path = rest.removesuffix(")")
            like = form.nearest(tool, _TOOLS)
            if name == "allow" and rule in denied:
                text = f"{rule} is also denied, and the denial wins"
                yield form.finding(form.ExposureKind.CONTRADICTED, file, keys, text)
            elif tool not in _TOOLS and like and not tool.startswith("mcp__"):
                text = f"{rule} matches nothing: Claude Code has no tool {tool}; is it {like}?"
                yield form.finding(form.ExposureKind.MISSPELLED, file, keys, text)
            elif tool in _FILE_TOOLS and path.startswith("/") and not path.startswith("//"):
                # It means a path beside the settings. Nobody keeps a /home or a /Users there.
                top = "/" + path[1:].partition("/")[0]
                base = os.path.dirname(os.path.dirname(file.path))
                beside = os.path.join(base, top[1:])
                if len(top) > 1 and os.path.isdir(top) and not os.path.lexists(beside):
                    text = f"{rule} is relative to {base}; for the disk, write //{path[1:]}"
                    kind = form.ExposureKind.MATCHES_NOTHING
                    yield form.finding(kind, file, keys, text)
            elif tool in _FILE_TOOLS and path.startswith(("//", "~/")):
                meant = form.misspelled(home.expand(path.replace("//", "/", 1)) or "/")
                if meant is not None:
                    text = f"{rule} matches nothing: is it {meant}?"
                    yield form.finding(form.ExposureKind.MISSPELLED, file, keys, text)


def _about_lists(
    home: forms.reach.AgentHome,
    files: tuple[forms.reach.AgentFile, ...],
    own: forms.reach.AgentFile,
) -> forms.reach.Found:
    form = forms.reach
    found: forms.reach.Found = []
    for file in files:
        found += form.about_folders(home, file, _opened(file), "opens")
        if file.at("enableAllProjectMcpServers") is True:
            text = "it starts the servers that any project brings, without a question"
            keys = ("enableAllProjectMcpServers",)
            found.append(form.finding(form.ExposureKind.ANY_PROJECT, file, keys, text))
        if file.at("sandbox", "filesystem") and not file.at("sandbox", "enabled"):
            found += form.about_switch(
                file,
                ("sandbox", "filesystem"),
                "sandbox.filesystem",
                "sandbox.enabled is not true",
            )
    trusted: forms.reach.TextsByKeys = {
        ("projects", path): path
        for path, entry in own.members("projects").items()
        if isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True
    }
    return found + form.about_folders(home, own, trusted, "trusts")


def _opened(file: forms.reach.AgentFile) -> forms.reach.TextsByKeys:
    return file.texts("permissions", "additionalDirectories")
