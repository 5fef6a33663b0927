"""Define the command `rootsd`: a table of verbs; each verb's module loads when it is used.

A line on the terminal about what is new, after a command that was about something else.

The command `rootsd`: a table of verbs, each loaded when it is used.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from rootsd import __version__
from rootsd.cli import error_handler, help_text
from rootsd.cli.flags import global_options, write_examples
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.daemon import NewProposalsQuery

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# These show what waits, so that it is no news afterwards.
_VERBS_THAT_SHOW_NEWS = frozenset(("pending", "review", "status", "up", "scan"))


def print_news(invocation: Invocation) -> None:
    """Say in a line each what came since a person looked; where nobody looks on, nothing is asked.

    A daemon that does not answer, or not this, has no news.
    """
    if not invocation.has_called or not invocation.output.talks or not sys.stderr.isatty():
        return
    try:
        news = invocation.call(NewProposalsQuery())
    except RootsdError:
        return
    if invocation.command.partition(" ")[0] in _VERBS_THAT_SHOW_NEWS:
        return
    for wanted in news["wanted"]:
        invocation.output.say(
            f"{safe_label(wanted['note'], limit=None)}: rootsd show {wanted['id']}"
        )
    if count := news["new"]:
        what = "1 new project waits" if count == 1 else f"{count} new projects wait"
        invocation.output.say(f"{what} for your decision: rootsd pending")


@dataclass(frozen=True, slots=True)
class VerbSummary:
    """A row of the table: the section of the help, and the line that stands there."""

    section: str
    summary: str


SET_UP, DECIDE, LOOK, PROGRAMS = "Set up", "Decide", "Look", "For programs"

VERBS: Mapping[str, VerbSummary] = {
    "up": VerbSummary(SET_UP, "watch folders, make the daemon run, show what is there"),
    "down": VerbSummary(SET_UP, "stop the daemon until the next up"),
    "service": VerbSummary(SET_UP, "have systemd or launchd run the daemon"),
    "parent": VerbSummary(SET_UP, "the folders in which projects are found"),
    "config": VerbSummary(SET_UP, "show, check and edit config.toml"),
    "doctor": VerbSummary(SET_UP, "look for what keeps rootsd from working, and mend it"),
    "scan": VerbSummary(SET_UP, "look through the parents now"),
    "pending": VerbSummary(DECIDE, "what waits for your decision"),
    "review": VerbSummary(DECIDE, "decide about what waits, one after the other"),
    "approve": VerbSummary(DECIDE, "publish projects to MCP clients"),
    "deny": VerbSummary(DECIDE, "never publish projects, and take them back"),
    "forget": VerbSummary(DECIDE, "back to undecided"),
    "undo": VerbSummary(DECIDE, "take your newest order back, or one line of the log"),
    "prune": VerbSummary(DECIDE, "forget what was decided about folders that are gone"),
    "export": VerbSummary(DECIDE, "print what was decided, for import elsewhere"),
    "import": VerbSummary(DECIDE, "propose what an export names"),
    "rename": VerbSummary(DECIDE, "call a project by another name"),
    "tag": VerbSummary(DECIDE, "tag projects, or take tags away"),
    "focus": VerbSummary(DECIDE, "narrow MCP sessions to a tag"),
    "add": VerbSummary(DECIDE, "propose a folder or a URI by hand"),
    "rule": VerbSummary(DECIDE, "approve or deny what comes to lie below a path"),
    "guard": VerbSummary(DECIDE, "who may decide"),
    "status": VerbSummary(LOOK, "daemon, parents, counts, connections"),
    "ls": VerbSummary(LOOK, "list projects"),
    "show": VerbSummary(LOOK, "all that a decision on a project should rest on"),
    "log": VerbSummary(LOOK, "what was decided, and which orders were refused"),
    "sessions": VerbSummary(LOOK, "which MCP clients connect, and what each was given"),
    "check": VerbSummary(LOOK, "where a path stands, told by the exit status"),
    "why": VerbSummary(LOOK, "what speaks for and against a path, and what decides"),
    "version": VerbSummary(LOOK, "version of this command and of the daemon"),
    "help": VerbSummary(LOOK, "explain rootsd, or one verb"),
    "completion": VerbSummary(
        PROGRAMS, "have bash, zsh or fish complete verbs, flags and projects"
    ),
    "bridge": VerbSummary(PROGRAMS, "connect an MCP client: the command for its configuration"),
    "run": VerbSummary(PROGRAMS, "run any MCP server inside the approved set"),
    "daemon": VerbSummary(PROGRAMS, "run the daemon in the foreground"),
}
ALIASES = {"allow": "approve", "block": "deny", "revoke": "deny"}

SUMMARY = "Find project folders, decide about each once, publish the approved to MCP clients."
_EXAMPLES = "\n".join(f"{line:<30} {what}" for line, what in help_text.EXAMPLES.items())


class RootGroup(click.Group):
    """The group of all verbs. Its help is printed from the table, without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the help."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb or the verb behind an alias, from its module."""
        del ctx
        verb = ALIASES.get(cmd_name, cmd_name)
        if verb not in VERBS:
            return None
        module = f"{verb}_" if iskeyword(verb) else verb
        command: click.Command = import_module(f"rootsd.cli.commands.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words begin with; names the nearest where there is none."""
        name, command = args[0], self.get_command(ctx, args[0])
        if command is None:
            near = difflib.get_close_matches(name, [*VERBS, *ALIASES], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return command.name, command, args[1:]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs, from the table, and global flags."""
        from click.shell_completion import CompletionItem

        flags = click.Command.shell_complete(self, ctx, incomplete)
        verbs = {**VERBS, **{alias: VERBS[verb] for alias, verb in ALIASES.items()}}
        return flags + [
            CompletionItem(name, help=verb.summary)
            for name, verb in verbs.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table by sections."""
        del ctx
        for section in dict.fromkeys(verb.section for verb in VERBS.values()):
            rows = [(name, v.summary) for name, v in VERBS.items() if v.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=4)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, and the exit statuses, which scripts rely on."""
        del ctx
        write_examples(_EXAMPLES, formatter)
        formatter.write_paragraph()
        formatter.write_text(help_text.exit_status_summary())


@click.pass_context
def _run_status_by_default(ctx: click.Context) -> int | None:
    status = root.get_command(ctx, "status")
    if ctx.invoked_subcommand is not None or status is None:
        return None
    result: int | None = ctx.invoke(status)
    return result


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001
    if is_asked and not ctx.resilient_parsing:
        click.echo(f"rootsd {__version__}")
        ctx.exit()


root = RootGroup(
    "rootsd",
    params=[
        *global_options(hidden=False),
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="print the version of this command",
        ),
    ],
    help=SUMMARY,
    callback=_run_status_by_default,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main(arguments: list[str]) -> int:
    """Run the command line on `arguments` (without the program's name); the exit status."""
    invocation = Invocation()
    # Before any parsing, so that a usage error is an object too.
    invocation.flags.json = "--json" in arguments[: (*arguments, "--").index("--")]
    return error_handler.run_with_error_handler(invocation, lambda: _run(invocation, arguments))


def _run(invocation: Invocation, arguments: list[str]) -> int:
    try:
        with root.make_context("rootsd", list(arguments), obj=invocation) as context:
            status = root.invoke(context)
            print_news(invocation)
            return status if isinstance(status, int) else 0
    except click.ClickException as error:
        invocation.output.error(ErrorCode.USAGE.value, error.format_message(), _help_for(error))
        return Exit.USAGE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return Exit.INTERRUPTED


def _help_for(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path if context else 'rootsd'} --help"
