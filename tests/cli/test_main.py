"""Every verb keeps the rules that all verbs have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import get_type_hints

import click
import pytest

from rootsd.cli import commands
from rootsd.cli.main import ALIASES
from rootsd.cli.manual import verb_contexts
from rootsd.cli.text.verb_names import verb_names
from rootsd.cli.verb_table import verb_table
from rootsd.wire.registry import REQUEST_TYPES
from support.control_requests import is_order
from support.fake_daemon import FakeDaemon, a_decision, a_listing, a_status, an_item
from support.terminal import Shell

EVERYWHERE = {
    "--json", "-q", "--quiet", "-v", "--verbose", "--no-color", "--no-pager", "--no-input", "-h",
    "--help",
}  # fmt: skip


CONTEXTS = {context.command_path.partition(" ")[2]: context for context in verb_contexts()}


def flags_of(context: click.Context) -> set[str]:
    return {
        word
        for param in context.command.get_params(context)
        if isinstance(param, click.Option)
        for word in (*param.opts, *param.secondary_opts)
    }


def modules_of_orders() -> Iterator[str]:
    """Yield the verbs whose modules send an order, which says whether to apply it."""
    orders = {form for form in REQUEST_TYPES if is_order(form)}
    for verb in verb_names():
        module = import_module(f"{commands.__name__}.{verb.replace('-', '_')}")
        if any(isinstance(each, type) and each in orders for each in vars(module).values()):
            yield verb


def test_every_verb_that_sends_an_order_or_asks_has_a_dry_run() -> None:
    rehearsing = {path for path, context in CONTEXTS.items() if "--dry-run" in flags_of(context)}
    assert len({*modules_of_orders()}) > 8
    assert {*modules_of_orders()} <= {path.split()[0] for path in rehearsing}
    assert {
        path for path, context in CONTEXTS.items() if "--yes" in flags_of(context)
    } <= rehearsing


def test_a_result_says_whether_it_is_a_dry_run_where_there_is_one() -> None:
    # These two print what they did, and no object for a dry run.
    without_a_result = {"init", "service install"}
    saying = {path for path, context in CONTEXTS.items() if says_dry_run(context.command)}
    rehearsing = {path for path, context in CONTEXTS.items() if "--dry-run" in flags_of(context)}
    assert saying == rehearsing - without_a_result


def says_dry_run(command: click.Command) -> bool:
    return any("dry_run" in get_type_hints(each) for each in getattr(command, "prints", ()))


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
    known.add("--outside")  # the functions of shell-init have it
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
    [
        ("aprove", "; did you mean approve?\n  try: rootsd approve x"),
        ("xyzzy", "\n  try: rootsd --help"),
        ("start", "; did you mean up?\n  try: rootsd up x"),
        ("install", "; did you mean service install?\n  try: rootsd service install x"),
        ("remove", "; did you mean deny or forget?\n  try: rootsd deny x\n       rootsd forget x"),
    ],
)  # fmt: skip
def test_an_unknown_command_suggests_the_likely_ones(shell: Shell, word: str, hint: str) -> None:
    done = shell.run(word, "x")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"error: there is no command {word}{hint}\n"


@pytest.mark.parametrize(("uid", "person"), [(0, "ann"), (0, "root"), (1000, "ann")])
def test_sudo_says_whose_daemon_was_asked(
    daemon: FakeDaemon, shell: Shell, monkeypatch: pytest.MonkeyPatch, uid: int, person: str
) -> None:
    daemon.answers["projects"] = a_listing()
    monkeypatch.setenv("SUDO_USER", person)
    monkeypatch.setattr("os.geteuid", lambda: uid)
    said = shell.run("ls", "api").err
    is_meant = (uid, person) == (0, "ann")
    assert ("is not that of ann. For the daemon of ann: rootsd ls api\n" in said) is is_meant


def test_a_hostile_word_cannot_reach_the_terminal(shell: Shell) -> None:
    assert "\x1b" not in shell.run("\x1b[2J").err


# The daemon's answer, and the command that then ends with this status.
