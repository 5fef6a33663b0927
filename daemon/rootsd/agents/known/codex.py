"""Codex CLI. openai/codex: codex-rs/core/src/config, and its files in use, version 0.169.0."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Codex CLI"
PROGRAMS = ("codex", "codex-exec")
PACKAGES = ("@openai/codex/",)
# openai/codex: codex-rs/core/src/spawn.rs, unified_exec/process_manager.rs, and
# codex-rs/protocol/src/shell_environment.rs
MARKERS = (
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI",
    "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID",
)  # fmt: skip
SOURCE = "run, 0.169.0; CODEX_SANDBOX and CODEX_SANDBOX_NETWORK_DISABLED by its source"
RUNS = (".codex/config.toml",)
OBEYS = (".codex",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("CODEX_HOME", ".codex"),
                loads=(
                    "*.config.toml", ".env", "AGENTS.md", "AGENTS.override.md", "agents", "hooks",
                    "hooks.json", "managed_config.toml", "plugins", "prompts", "requirements.toml",
                    "rules", "themes",
                ),
                # It records there that a folder is trusted.
                copies=(forms.state.CopiedFile("config.toml", by_project=(("projects",),)),),
                credentials=("auth.json", ".credentials.json"),
            ),
        ),
        reads=(".agents",),
        # Its sandbox is bubblewrap, which needs mounts: "Failed to make / slave". The older one,
        # with Landlock, refuses every restricted mode in this version.
        arguments=("-c", 'sandbox_mode="danger-full-access"'),
        remark=(
            "Codex's own sandbox cannot work inside and is off, so its commands can use the"
            " network; --no-network would take it from Codex itself, too"
        ),
        is_tried=True,
    )  # fmt: skip


def hook() -> forms.hook.HookDialect:
    """Return the words of its permission hook. It reads files with shell commands.

    It refuses the answer "allow".
    """
    return forms.hook.HookDialect(
        events=("PreToolUse",),
        inside="hookSpecificOutput",
        decision="permissionDecision",
        reasons=("permissionDecisionReason",),
        patchers={"apply_patch": "command", "Bash": "command"},
    )


def access() -> forms.access.ListFormat:
    """Return the format of its access lists, in a profile of our own."""
    line, keys = forms.access.ListLine, ("permissions", "rootsd")
    return forms.access.ListFormat(
        forms.place.moved_by("CODEX_HOME", ".codex", "rootsd.config.toml"),
        # It reads a path with one of these as a pattern, and denies only the files found then.
        denial=(line((*keys, "filesystem"), "{}", "deny", special="*?[]"),),
        applies="at its next start with codex -p rootsd",
        not_covered="a session without -p rootsd or with another sandbox, and MCP servers",
        kept_in=forms.access.ListFile.PROFILE,
        # Codex's own default, to which denials are added.
        always=(line(keys, "extends", ":workspace"),),
        replaced_by=forms.access.ReplacingKeys(
            RUNS[0],
            ("default_permissions", "permissions", "sandbox_mode"),
            "wins if Codex trusts it",
        ),
    )


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file.

    It asks for no permission to call our tools, and its listing starts no server.
    """
    form = forms.client
    return (
        form.ClientFacts(
            name="codex",
            title="Codex",
            places=(forms.place.moved_by("CODEX_HOME", ".codex", "config.toml"),),
            keys=("mcp_servers",),
            language=form.TOML,
            # Otherwise it waits about a second, and its first request then has no rootsd tools.
            form=form.EntryForm(more={"required": True}),
            reading=form.EntryReading(parts=frozenset((form.EntryPart.FOLDER,))),
            programs=PROGRAMS[:1],
            trial=form.ClientTrial.TRIED,
            hook=form.HookFile(
                forms.place.moved_by("CODEX_HOME", ".codex", "hooks.json"),
                form.nested_hook(10, "apply_patch|Bash"),
            ),
            health=form.HealthCheck(("mcp", "list"), listed=rf"(?m)^{form.ENTRY_NAME}\s"),
            worktrees=forms.place.moved_by("CODEX_HOME", ".codex", "worktrees"),
        ),
    )


def reach(home: forms.reach.AgentHome) -> forms.reach.AgentReach:
    """Return what its sandbox allows, which was run in 0.169 and 0.171.

    Every mode reads the whole disk. In a folder that is not trusted, it starts read-only.
    """
    form = forms.reach
    file = home.read(
        forms.place.moved_by("CODEX_HOME", ".codex", "config.toml"), forms.client.TOML
    )
    profile = str(file.at("default_permissions") or "")
    keys = ("default_permissions",) if profile else ("sandbox_mode",)
    named = file.at("permissions", profile, "extends") if profile[:1] != ":" else profile
    mode = str(named or "").removeprefix(":") if profile else str(file.at(*keys) or "")
    extent = form.Extent
    found: forms.reach.Found = []
    is_asked = file.at("approval_policy") != "never"
    writes = {
        "danger-full-access": extent.EVERYTHING,
        "read-only": extent.ASKS if is_asked else extent.NOTHING,
    }.get(mode, extent.ASKS_ELSEWHERE if is_asked else extent.PROJECT)
    reason = "Codex's sandbox reads everything and writes the project"
    reads = form.by_default(extent.EVERYTHING, reason)
    trusted: forms.reach.TextsByKeys = {
        ("projects", path): path
        for path in file.members("projects")
        if file.at("projects", path, "trust_level") == "trusted"
    }
    found += form.about_folders(home, file, trusted, "trusts")
    roots = ("sandbox_workspace_write", "writable_roots")
    opened = file.texts(*roots)
    found += form.about_folders(home, file, opened, "opens")
    if opened and mode in ("read-only", "danger-full-access"):
        needed = f"{keys[0]} is not workspace-write"
        found += form.about_switch(file, roots, "writable_roots", needed)
    rules = file.members("permissions", profile, "filesystem")
    if any(use == "deny" and home.holds_home(home.expand(at) or "-") for at, use in rules.items()):
        reads = form.said_by(extent.ASKS_ELSEWHERE, file, "permissions", profile, "filesystem")
    known = (
        "sandbox_mode", "approval_policy", "sandbox_workspace_write", "default_permissions",
        "mcp_servers", "projects", "permissions", "profile", "profiles",
    )  # fmt: skip
    found += form.misspelled_keys(file, (), known)
    profile_file = home.read(access().place, forms.client.TOML)
    if profile_file.members("permissions", "rootsd", "filesystem") and profile != "rootsd":
        found += form.about_switch(
            profile_file, ("permissions", "rootsd"), "this profile", "start Codex with -p rootsd"
        )
    said = form.said_by(writes, file, *keys) if mode else form.by_default(writes, reason)
    return form.AgentReach(reads, said, tuple(opened.values()), tuple(found))
