"""Codex CLI. openai/codex: codex-rs/core/src/config, and its files in use, version 0.169.0."""

from __future__ import annotations

import itertools
import re

from rootsd.agents import forms

LABEL = "Codex CLI"
PROGRAMS = ("codex", "codex-exec", "codex-acp")  # the last one is for editors (ACP)
PACKAGES = ("@openai/codex/", "@agentclientprotocol/codex-acp/")
# openai/codex: codex-rs/core/src/spawn.rs, unified_exec/process_manager.rs, and
# codex-rs/protocol/src/shell_environment.rs
MARKERS = (
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI",
    "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID",
)  # fmt: skip
SOURCE = "run, 0.169.0; CODEX_SANDBOX and CODEX_SANDBOX_NETWORK_DISABLED by its source"
RUNS = (".codex/config.toml",)
ACP = ("codex-acp",)
FOLDER_FLAG = "--add-dir"
# Its sandbox is bubblewrap, which needs mounts: "Failed to make / slave". With these permissions,
# it needs none, and still forbids the network. Its older one, with Landlock, limits no files.
_PROFILE = "rootsd-wall"
_SETTINGS = (
    f"default_permissions='{_PROFILE}'",
    f"permissions.{_PROFILE}={{ filesystem = {{ ':root' = 'write' }},"
    " network = { enabled = false },"
    " description = 'The wall limits files. Commands have no network unless you allow it.' }",
)
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
        without_sandbox=forms.state.WithoutSandbox(
            # The settings of a trusted project win over the file, and a command can write to both.
            arguments=tuple(word for line in _SETTINGS for word in ("-c", line)),
            settings={"config.toml": "\n".join((*_SETTINGS, ""))},
            adapter_variable="CODEX_CONFIG",
            remark="Codex's own sandbox cannot limit files inside, but the wall does; commands"
            f" have no network unless you allow it (in an editor, stay in the mode {_PROFILE})",
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


SETTINGS = RUNS[:1]
_WORDS = re.compile(r"pattern\s*=\s*\[([^\]]*)\]")
_QUOTED = re.compile(r"""["']([^"']*)["']""")
_OTHER_DECISION = re.compile(r"""decision\s*=\s*["'](?:prompt|forbidden)""")


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what its sandbox allows, which was run in 0.169 and 0.171.

    Every mode reads the whole disk. In a folder that it does not trust, it starts read-only and
    reads no settings.
    """
    form, extent = forms.reach, forms.reach.Extent
    user = home.read(
        forms.place.moved_by("CODEX_HOME", ".codex", "config.toml"), forms.client.TOML
    )
    trusted: forms.reach.TextsByKeys = {
        ("projects", path): path
        for path in user.members("projects")
        if user.at("projects", path, "trust_level") == "trusted"
    }
    is_trusted = any(file.path.startswith(f"{at}/") for file in inside for at in trusted.values())
    files = (*(inside if is_trusted else ()), user)
    file = form.first_with(files, "default_permissions") or user
    profile = str(file.at("default_permissions") or "")
    keys = ("default_permissions",) if profile else ("sandbox_mode",)
    if not profile:
        file = form.first_with(files, *keys) or user
    named = file.at("permissions", profile, "extends") if profile[:1] != ":" else profile
    mode = str(named or "").removeprefix(":") if profile else str(file.at(*keys) or "")
    policy = form.first_with(files, "approval_policy")
    is_asked = policy is None or policy.at("approval_policy") != "never"
    wide = {
        "danger-full-access": extent.EVERYTHING,
        "read-only": extent.ASKS if is_asked else extent.NOTHING,
    }.get(mode, extent.ASKS_ELSEWHERE if is_asked else extent.PROJECT)
    reason = "Codex reads everything; its sandbox limits writes"
    reads = form.by_default(extent.EVERYTHING, reason)
    rules = file.members("permissions", profile, "filesystem")
    if any(use == "deny" and home.holds_home(home.expand(at) or "-") for at, use in rules.items()):
        reads = form.said_by(extent.ASKS_ELSEWHERE, file, "permissions", profile, "filesystem")
    writes = form.said_by(wide, file, *keys) if mode else form.by_default(wide, reason)
    said = (reads, writes)
    if is_asked:  # a model answers then, and not a person
        reviewers = dict.fromkeys(("auto_review", "guardian_subagent"), (extent.EVERYTHING,) * 2)
        said = form.by_mode(files, ("approvals_reviewer",), reviewers, said)
    said = _by_rules(home, said)
    roots = ("sandbox_workspace_write", "writable_roots")
    opened = {keys: path for each in files for keys, path in each.texts(*roots).items()}
    found = (_findings(home, each, mode, keys[0]) for each in (inside or (user,)))
    about = itertools.chain.from_iterable(found)
    if not inside:
        about = itertools.chain(about, form.about_folders(home, user, trusted, "trusts"))
    return form.AgentReach(*said, tuple(opened.values()), about)


def _by_rules(home: forms.reach.AgentHome, said: forms.reach.Accesses) -> forms.reach.Accesses:
    """Return the accesses with what its rules let run outside of the sandbox."""
    form = forms.reach
    for path in home.paths_in(forms.place.moved_by("CODEX_HOME", ".codex", "rules"), ".rules"):
        before = 0
        for rule in "\n".join(home.read_lines(path)).split("prefix_rule"):
            words = _QUOTED.findall(found[1]) if (found := _WORDS.search(rule)) else []
            widens = form.command_reach(" ".join([*words, "*"])) if words else ""
            if widens and not _OTHER_DECISION.search(rule):
                access = form.ExposedAccess(
                    extent=form.Extent.EVERYTHING, reason=f"a rule allows {words[0]}",
                    file=path, line=before + 1,
                )  # fmt: skip
                said = (access if "r" in widens else said[0], access if "w" in widens else said[1])
            before += rule.count("\n")
    return said


def _findings(
    home: forms.reach.AgentHome, file: forms.reach.AgentFile, mode: str, key: str
) -> forms.reach.Findings:
    form, roots = forms.reach, ("sandbox_workspace_write", "writable_roots")
    opened = file.texts(*roots)
    yield from form.about_folders(home, file, opened, "opens")
    if opened and mode in ("read-only", "danger-full-access"):
        text = f"writable_roots has no effect: {key} is not workspace-write"
        yield form.finding(form.ExposureKind.INACTIVE, file, roots, text)
    known = (
        "sandbox_mode", "approval_policy", "sandbox_workspace_write", "default_permissions",
        "mcp_servers", "projects", "permissions", "profile", "profiles",
    )  # fmt: skip
    yield from form.misspelled_keys(file, (), known)
    own = home.read(access().place, forms.client.TOML)
    rules = ("permissions", "rootsd")
    if own.members(*rules, "filesystem") and file.at("default_permissions") != "rootsd":
        text = "this profile has no effect: start Codex with -p rootsd"
        yield form.finding(form.ExposureKind.INACTIVE, own, rules, text)
