"""The table of verbs and the documentation list the same verbs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from rootsd.cli.help_text import EXIT_STATUSES
from rootsd.cli.main import ALIASES
from rootsd.cli.manual import verb_contexts
from rootsd.cli.text.verb_names import verb_names
from rootsd.cli.verb_table import verb_table
from rootsd.core.errors import ErrorCode, Exit
from rootsd.wall.session.options import WALL_FLAGS, WALL_VALUES
from support.fake_daemon import (
    Answer,
    FakeDaemon,
    Objection,
    a_decision,
    a_listing,
    a_status,
    an_item,
)
from support.sample_answers import ANSWERS
from support.terminal import Shell

# The flags of each verb, without --help, -h, and the global flags, which every verb has.
CHOOSING = {
    "--format",
    "--risk", "--kind", "--tag", "--under", "--since", "--sort", "--reverse",
}  # fmt: skip
DOCUMENTED = {
    "init": {"--yes", "--dry-run"},
    "up": {"--foreground", "--dry-run"},
    "guard": {"--dry-run"},
    "log": {"--last", "-f", "--follow"},
    "review": {"--follow"},
    "ui": {"--host"},
    "prune": {"--yes", "--dry-run"},
    "export": {"--code-workspace", "--output"},
    "undo": {"--yes", "--dry-run"},
    "down": {"--programs"},
    "focus": {"--clear", "--now", "--dry-run"},
    "rename": {"--dry-run"},
    "tag": {"--rm", "--yes", "--dry-run"},
    "status": {"--host"},
    "service": set(),
    "service install": {"--strict", "--no-strict", "--dry-run"},
    "service uninstall": {"--purge", "--dry-run"},
    "service start": set(),
    "service stop": set(),
    "service restart": set(),
    "service status": set(),
    "service logs": {"-f", "--follow"},
    "service print": {"--strict", "--no-strict"},
    "parent": set(),
    "parent add": {"--depth", "--skip", "--nested", "--mounts", "--project-file", "--dry-run"},
    "parent rm": {"--dry-run"},
    "parent ls": set(),
    "parent set": {"--depth", "--skip", "--nested", "--mounts", "--project-file", "--dry-run"},
    "config": set(),
    "config path": set(),
    "config show": set(),
    "config check": set(),
    "config edit": set(),
    "config get": set(),
    "config help": set(),
    "config set": {"--dry-run"},
    "config unset": {"--dry-run"},
    "doctor": {"--fix", "--install-profile"},
    "scan": set(),
    "pending": {"--count", "--exit-code", "--host", *CHOOSING},
    "approve": {
        "--as",
        "--tag",
        "--under",
        "--lapsed",
        "--all",
        "--for",
        "--read-only",
        "--worktrees",
        "--incomplete",
        "--shared-git",
        "--yes",
        "--write",
        "--session",
        "--session-of",
        "--always",
        "--dry-run",
        "--host",
    },
    "deny": {"--yes", "--dry-run", "--host"},
    "forget": {"--yes", "--dry-run"},
    "add": {"--name", "--tag", "--dry-run"},
    "rule": set(),
    "rule add": {"--yes", "--dry-run"},
    "rule ls": set(),
    "rule rm": {"--yes", "--dry-run"},
    "ls": {"--verdict", "--published", "--paths", "-0", *CHOOSING},
    "show": set(),
    "open": {"-0"},
    "sessions": {"--history", "--last"},
    "check": {"--write"},
    "why": set(),
    "version": set(),
    "completion": set(),
    "shell-init": set(),
    "help": {"--man"},
    "bridge": {"--any-uri", "--client", "--only"},
    "run": {
        "--advisory-access",
        "--all",
        "--client-roots",
        "--confine",
        "--env",
        "--keep-cwd",
        "--name",
        "--no-confine",
        "--only",
        "--workspace",
        *WALL_FLAGS,
        *WALL_VALUES,
    },
    "hook": {"--strict"},
    "connect": {
        "--all",
        "--wrap",
        "--no-confine",
        "--read",
        "--write",
        "--keep",
        "--sync-access",
        "--hook",
        "--strict",
        "--allow-tools",
        "--yes",
        "--dry-run",
    },
    "disconnect": {"--all", "--unwrap", "--dry-run"},
    "clients": {"--all", "--no-check"},
    "sync": set(),
    "sync status": set(),
    "sync add": {"--only", "--yes", "--dry-run"},
    "sync rm": {"--dry-run"},
    "sync run": set(),
    "sync withdraw": set(),
    "confine": {"--all", "--name", "--only", "--show", *WALL_FLAGS, *WALL_VALUES},
    "daemon": {"--ready-fd", "--detach"},
}
EVERYWHERE = {
    "--json", "-q", "--quiet", "-v", "--verbose", "--no-color", "--no-input", "-h", "--help",
}  # fmt: skip


CONTEXTS = {context.command_path.partition(" ")[2]: context for context in verb_contexts()}


def flags_of(context: click.Context) -> set[str]:
    return {
        word
        for param in context.command.get_params(context)
        if isinstance(param, click.Option)
        for word in (*param.opts, *param.secondary_opts)
    }


def test_the_documented_flags_are_the_existing_ones() -> None:
    existing = {path: flags_of(context) - EVERYWHERE for path, context in CONTEXTS.items()}
    assert existing == DOCUMENTED


# Verbs that decide nothing and write neither the configuration nor a system file.
CHANGES_NOTHING = {
    "status", "ls", "show", "open", "log", "sessions", "check", "why", "version", "pending",
    "export", "help", "completion", "shell-init", "config path", "config show", "config check",
    "config get", "config help", "rule ls", "parent ls",
    "service status", "service logs", "service print", "sync status",
    "clients",
}  # fmt: skip
# Verbs with a question before each step, and verbs that only start, stop, or read. `doctor`
# without --fix shows what it would fix.
NEEDS_NO_REHEARSAL = {
    "review", "ui", "config edit", "doctor", "scan", "down", "daemon", "bridge", "run",
    "confine", "hook", "sync run", "sync withdraw", "service start", "service stop",
    "service restart",
}  # fmt: skip


def test_every_verb_that_changes_something_has_a_dry_run() -> None:
    groups = {"", "parent", "rule", "config", "service", "sync"}
    changing = CONTEXTS.keys() - CHANGES_NOTHING - NEEDS_NO_REHEARSAL - groups
    assert {path for path in CONTEXTS if "--dry-run" in flags_of(CONTEXTS[path])} == changing


def test_every_verb_takes_the_global_flags() -> None:
    missing = {path: EVERYWHERE - flags_of(context) for path, context in CONTEXTS.items()}
    assert {path: flags for path, flags in missing.items() if flags} == {}


def test_every_help_has_a_purpose_an_example_and_a_text_for_each_flag() -> None:
    for path, context in CONTEXTS.items():
        text = context.command.get_help(context)
        assert f"\nExamples:\n  rootsd {path}".split(" rootsd ")[0] in text
        assert context.command.help, path
        assert f"rootsd {path}" in (context.command.epilog or "")
        for param in context.command.get_params(context):
            assert not isinstance(param, click.Option) or param.help, (path, param.name)


def test_every_flag_that_a_help_mentions_exists() -> None:
    known = set().union(*(flags_of(context) for context in CONTEXTS.values()))
    for path, context in CONTEXTS.items():
        text = context.command.get_help(context)
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - known == set(), path


def test_every_example_starts_with_a_command_that_exists() -> None:
    for context in CONTEXTS.values():
        for line in (context.command.epilog or "").splitlines():
            for verb in re.findall(r"rootsd ([a-z][a-z-]*)", line):
                assert verb in verb_names()


def test_the_main_help_lists_every_verb_and_the_exit_statuses(shell: Shell) -> None:
    done = shell.run("--help")
    assert (done.status, done.err) == (0, "")
    for name, verb in verb_table().items():
        assert re.search(rf"^  {name} +{re.escape(verb.summary)}$", done.out, re.MULTILINE)
    assert "69 no daemon" in " ".join(done.out.split())


def test_rootsd_alone_is_status(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["status"] = a_status()
    alone = shell.run()
    assert (alone.status, alone.out) == (0, shell.run("status").out)
    assert shell.run("--json").out == shell.run("status", "--json").out


@pytest.mark.parametrize(("alias", "verb"), ALIASES.items())
def test_an_alias_is_its_verb(daemon: FakeDaemon, shell: Shell, alias: str, verb: str) -> None:
    daemon.answers["decide"] = a_decision(an_item())
    assert shell.run(alias, "api").status == 0
    assert daemon.asked("decide")[0]["verb"] == verb


@pytest.mark.parametrize(
    ("word", "hint"),
    [("aprove", "; did you mean approve?"), ("xyzzy", ""), ("penidng", "pending?")],
)
def test_an_unknown_command_suggests_the_closest_one(shell: Shell, word: str, hint: str) -> None:
    done = shell.run(word)
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[0].endswith(hint or f"no command '{word}'")
    assert done.err.endswith("try: rootsd --help\n")


def test_a_hostile_word_cannot_reach_the_terminal(shell: Shell) -> None:
    assert "\x1b" not in shell.run("\x1b[2J").err


def refused_with(code: ErrorCode) -> Answer:
    return Objection(code, "no")


# The daemon's answer, and the command that then ends with this status.
WAYS: Mapping[Exit, tuple[Mapping[str, Answer], tuple[str, ...]]] = {
    Exit.OK: ({"check": ANSWERS["check"]}, ("check", "/src/api")),
    Exit.FAILED: ({"decide": refused_with(ErrorCode.FAILED)}, ("approve", "api")),
    Exit.USAGE: ({}, ("approve",)),
    Exit.PENDING: ({"projects": a_listing(an_item())}, ("pending", "--exit-code")),
    Exit.DENIED: ({"decide": refused_with(ErrorCode.DENIED)}, ("approve", "api")),
    Exit.NOTHING_MATCHED: ({"show": refused_with(ErrorCode.NOTHING_MATCHED)}, ("show", "api")),
    Exit.AMBIGUOUS: ({"show": refused_with(ErrorCode.AMBIGUOUS)}, ("show", "api")),
    Exit.REFUSED: ({"set-guard": refused_with(ErrorCode.REFUSED)}, ("guard", "off")),
    Exit.BUSY: ({"status": refused_with(ErrorCode.BUSY)}, ("status",)),
}


@pytest.mark.parametrize("status", WAYS)
def test_a_documented_status_is_reached(daemon: FakeDaemon, shell: Shell, status: Exit) -> None:
    answers, words = WAYS[status]
    daemon.answers |= answers
    assert shell.run(*words).status == status


def test_without_a_daemon_and_with_a_broken_file_the_status_says_so(
    shell: Shell, rootsd_dir: Path
) -> None:
    assert shell.run("ls").status == Exit.UNREACHABLE
    (rootsd_dir / "config").mkdir(parents=True)
    (rootsd_dir / "config" / "config.toml").write_text("[")
    assert shell.run("config", "check").status == Exit.BAD_CONFIG


def test_every_documented_status_has_a_test() -> None:
    # The two statuses of signals are in test_error_handler.py.
    elsewhere = {Exit.UNREACHABLE, Exit.BAD_CONFIG, Exit.INTERRUPTED, Exit.BROKEN_PIPE}
    assert WAYS.keys() | elsewhere == set(Exit) == set(EXIT_STATUSES)
