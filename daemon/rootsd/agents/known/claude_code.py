"""Claude Code. Its documentation of settings, and its files in use, version 2.1.330."""

from __future__ import annotations

import itertools
import os

from rootsd.agents import forms

LABEL = "Claude Code"
# npm installs the second one, on every system. The third one is for editors (ACP).
PROGRAMS = ("claude", "claude.exe", "claude-agent-acp")
PACKAGES = ("@anthropic-ai/claude-code/", "@agentclientprotocol/claude-agent-acp/")
# Its documentation of the Bash tool's environment, from 2.1.172 on.
MARKERS = ("CLAUDE_CODE_CHILD_SESSION",)
HINTS = ("CLAUDECODE",)  # editor extensions also set it, in terminals that people use
SOURCE = "run, 2.1.330"
ACP = ("claude-agent-acp",)
FOLDER_FLAG = "--add-dir"
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
        moves={"PreToolUse": "mcp__.*", "DirectoryAdded": ""},
        worktrees=("WorktreeCreate", "WorktreeRemove"),
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


SETTINGS = RUNS[1:3]
_MANAGED_ON_MACOS = "/Library/Application Support/ClaudeCode/managed-settings"
_MODE = ("permissions", "defaultMode")
_NO_BYPASS = ("permissions", "disableBypassPermissionsMode")
_SANDBOX = ("sandbox", "enabled")
_NO_QUESTION = ("sandbox", "autoAllowBashIfSandboxed")
_RULES = ("allow", "deny", "ask")
_TOOLS = (
    "Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read",
    "WebFetch", "WebSearch", "Write",
)  # fmt: skip
_FILE_TOOLS = frozenset(("Edit", "Glob", "Grep", "MultiEdit", "NotebookEdit", "Read", "Write"))


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its settings allow. Rules, and `default` mode, were run in 2.1.330.

    Its file tools ask before they leave the project, and so do commands such as `cat` and `cp`
    that name a path elsewhere, even if a rule allows them. A rule to edit a path also reads it.
    Its sandbox reads the whole disk by default. It asks before each command in there, too, unless
    a setting turns that off.
    """
    form, extent = forms.reach, forms.reach.Extent
    managed, user = _files(home)
    files = (*managed, *reversed(inside), user)
    said: forms.reach.Accesses = (
        form.by_default(extent.ASKS_ELSEWHERE, "Claude Code asks by default"),
        form.by_default(extent.ASKS, "Claude Code asks by default"),
    )
    modes = {
        "acceptEdits": (extent.ASKS_ELSEWHERE, extent.ASKS_ELSEWHERE),
        "auto": (extent.EVERYTHING, extent.EVERYTHING),  # a model decides, and not a person
        "bypassPermissions": (extent.EVERYTHING, extent.EVERYTHING),
        "dontAsk": (extent.PROJECT, extent.NOTHING),
    }
    if form.first_with(files, *_NO_BYPASS) is not None:
        del modes["bypassPermissions"]
    said = form.by_mode(files, _MODE, modes, said)
    opened: dict[str, str] = {}
    for file in files:
        allowed = file.texts("permissions", "allow")
        said = form.widened(said, file, allowed, lambda rule: _widened_by(home, rule))
        typed = [*_opened(file).values(), *filter(None, map(_folder_of, allowed.values()))]
        opened |= dict.fromkeys(typed, file.path)
    boxed, asking = (form.first_with(files, *keys) for keys in (_SANDBOX, _NO_QUESTION))
    is_boxed = boxed is not None and boxed.at(*_SANDBOX) is True
    if is_boxed and asking is not None and asking.at(*_NO_QUESTION) is True:
        reads, writes = said
        denied = (
            each for f in files for each in f.texts("sandbox", "filesystem", "denyRead").values()
        )
        if not any(home.holds_home(home.expand(each) or "-") for each in denied):
            reads = form.said_by(extent.EVERYTHING, asking, *_NO_QUESTION)
        if writes["extent"] != extent.EVERYTHING:  # it limits commands, not the file tools
            writes = form.said_by(extent.ASKS_ELSEWHERE, asking, *_NO_QUESTION)
        said = reads, writes
    found = itertools.chain.from_iterable(_findings(home, files, file) for file in inside or files)
    if not inside:
        found = itertools.chain(found, _about_trust(home))
    return form.AgentReach(*said, tuple(opened), found)


def started_servers(home: forms.reach.AgentHome, project: str) -> forms.reach.ServerTest:
    """Return which servers of a project's `.mcp.json` it starts without a question."""
    managed, user = _files(home)
    inside = [home.read_in_project(f"{project}/{name}") for name in SETTINGS]
    own = forms.reach.AgentFile(
        "", forms.client.JSON, values=_own(home).at("projects", project) or {}
    )
    files = (*managed, user, *inside, own)
    key, keys = "enableAllProjectMcpServers", ("enabledMcpjsonServers", "disabledMcpjsonServers")
    is_any = any(file.at(key) is True for file in files)
    named, refused = ({each for f in files for each in f.texts(key).values()} for key in keys)
    return lambda name: (is_any or name in named) and name not in refused


def _files(
    home: forms.reach.AgentHome,
) -> tuple[list[forms.reach.AgentFile], forms.reach.AgentFile]:
    """Return the managed settings, those that win first, and those of the user."""
    place = forms.place
    linux, macos = "/etc/claude-code/managed-settings", _MANAGED_ON_MACOS
    more = home.read_folder(place.SettingsPlace(f"{linux}.d", f"{macos}.d"), ".json")
    managed = home.read(place.SettingsPlace(f"{linux}.json", f"{macos}.json"))
    user = home.read(place.moved_by("CLAUDE_CONFIG_DIR", ".claude", "settings.json"))
    return [*reversed(more), managed], user


def _own(home: forms.reach.AgentHome) -> forms.reach.AgentFile:
    return home.read(forms.place.moved_by("CLAUDE_CONFIG_DIR", "", ".claude.json"))


def _folder_of(rule: str) -> str:
    """Return the folder outside of the project that a rule opens, or an empty text."""
    tool, path = forms.reach.tool_rule(rule)
    if tool not in ("Read", "Edit") or not path.startswith(("//", "~/")):
        return ""
    return forms.reach.folder_of(path.replace("//", "/", 1))


def _widened_by(home: forms.reach.AgentHome, rule: str) -> str:
    """Return `r`, `w`, or both, if a rule allows that everywhere."""
    tool, what = forms.reach.tool_rule(rule)
    if tool == "Bash":  # it asks for the paths of commands that only read or write files
        return "rw" if "x" in forms.reach.command_reach(what or "*") else ""
    if what and not home.holds_home(home.expand(_folder_of(rule)) or "-"):
        return ""
    return {"Read": "r", "Edit": "rw" if what else "w", "Write": "w"}.get(tool, "")


def _findings(
    home: forms.reach.AgentHome,
    files: forms.reach.AgentFiles,
    file: forms.reach.AgentFile,
) -> forms.reach.Findings:
    """Yield what is wrong with one of the files."""
    form, kinds = forms.reach, forms.reach.ExposureKind
    switch = form.first_with(files, *_NO_BYPASS)
    if switch is not None and file.at(*_MODE) == "bypassPermissions":
        text = f'"bypassPermissions" has no effect: {switch.path} disables it'
        yield form.finding(kinds.OVERRIDDEN, file, _MODE, text)
    yield from form.misspelled_keys(file, (), ("permissions", "hooks", "sandbox", "env"))
    known = (*_RULES, "additionalDirectories", "defaultMode")
    yield from form.misspelled_keys(file, ("permissions",), known)
    yield from _about_rules(home, file)
    yield from form.about_folders(home, file, _opened(file), "opens")
    if file.at("enableAllProjectMcpServers") is True:
        text = "it starts the servers that any project brings, without a question"
        yield form.finding(kinds.ANY_PROJECT, file, ("enableAllProjectMcpServers",), text)
    if file.at("sandbox", "filesystem") and not file.at("sandbox", "enabled"):
        text = "sandbox.filesystem has no effect: sandbox.enabled is not true"
        yield form.finding(kinds.INACTIVE, file, ("sandbox", "filesystem"), text)


def _about_rules(home: forms.reach.AgentHome, file: forms.reach.AgentFile) -> forms.reach.Findings:
    form, kinds = forms.reach, forms.reach.ExposureKind
    denied = set(file.texts("permissions", "deny").values())
    for name in _RULES:
        for keys, rule in file.texts("permissions", name).items():
            tool, path = form.tool_rule(rule)
            like = form.nearest(tool, _TOOLS)
            if name == "allow" and rule in denied:
                text = f"{rule} is also denied, and the denial wins"
                yield form.finding(kinds.CONTRADICTED, file, keys, text)
            elif tool not in _TOOLS and like and not tool.startswith("mcp__"):
                text = f"{rule} matches nothing: Claude Code has no tool {tool}; is it {like}?"
                yield form.finding(kinds.MISSPELLED, file, keys, text)
            elif tool in _FILE_TOOLS and path.startswith("/") and not path.startswith("//"):
                # It means a path beside the settings. Nobody keeps a /home or a /Users there.
                top = path[1:].partition("/")[0]
                beside = os.path.dirname(os.path.dirname(file.path))
                if top and os.path.isdir(f"/{top}") and not os.path.lexists(f"{beside}/{top}"):
                    text = f"{rule} is relative to {beside}; for the disk, write /{path}"
                    yield form.finding(kinds.MATCHES_NOTHING, file, keys, text)
            elif tool in _FILE_TOOLS and path.startswith(("//", "~/")):
                disk = {keys: path.replace("//", "/", 1)}
                yield from form.misspelled_paths(home, file, disk)


def _about_trust(home: forms.reach.AgentHome) -> forms.reach.Findings:
    own = _own(home)
    trusted: forms.reach.TextsByKeys = {
        ("projects", path): path
        for path, entry in own.members("projects").items()
        if isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True
    }
    return forms.reach.about_folders(home, own, trusted, "trusts")


def _opened(file: forms.reach.AgentFile) -> forms.reach.TextsByKeys:
    return file.texts("permissions", "additionalDirectories")
