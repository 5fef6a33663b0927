"""Define the command `rootsd`. Each verb's module loads when it is used.

`rootsd.cli.verb_table` makes the help and the completion of verbs, so that neither loads any verb.
After a command that ran on a terminal, `print_news` mentions new projects and new requests.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import click

from rootsd import __version__
from rootsd.cli import help_text
from rootsd.cli.answers import error_handler
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import HelpedCommand, global_options, write_examples
from rootsd.cli.text.help_format import ThemedContext
from rootsd.cli.text.verb_names import verb_names
from rootsd.cli.verb_table import SECTIONS, load_command, verb_table
from rootsd.core.errors import Exit, RootsdError
from rootsd.core.labels import safe_label

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# These verbs show pending projects themselves.
_VERBS_THAT_SHOW_NEWS = frozenset(("pending", "review", "status", "up", "scan"))


def print_news(invocation: Invocation) -> None:
    """Print one line for each request, and one for the projects, that the user has not seen yet.

    Does nothing if stderr is no terminal, or if the daemon does not answer or is too old.
    """
    if not invocation.has_called or not invocation.output.prints_messages:
        return
    if not sys.stderr.isatty():
        return
    from rootsd.wire.scans import NewProposalsQuery

    try:
        news = invocation.call(NewProposalsQuery())
    except RootsdError:
        return
    if invocation.command.partition(" ")[0] in _VERBS_THAT_SHOW_NEWS:
        return
    for id_, note in news["wanted"].items():
        invocation.output.message(f"{safe_label(note, limit=None)}: rootsd show {id_}")
    if count := news["new"]:
        what = "1 new project needs" if count == 1 else f"{count} new projects need"
        invocation.output.message(f"{what} your decision: rootsd pending")


ALIASES = {"allow": "approve", "block": "deny", "revoke": "deny"}

SUMMARY = "Keep one list of approved project folders, and give it to every MCP client and server."
_EXAMPLES = "\n".join(f"{line:<30} {what}" for line, what in help_text.EXAMPLES.items())


class RootGroup(HelpedCommand, click.Group):
    """The group of all verbs, which prints its help from the table without loading a verb."""

    context_class: type[click.Context] = ThemedContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the help."""
        del ctx
        return list(verb_table())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command of a verb or an alias from its module; None for an unknown name."""
        del ctx
        verb = ALIASES.get(cmd_name, cmd_name)
        return load_command(verb) if verb in verb_names() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` start with, by its own name, and the rest of `args`."""
        _, command, rest = super().resolve_command(ctx, args)
        if command is None:  # while words are completed
            raise click.NoSuchCommand(args[0], ctx=ctx)
        return command.name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the matching verbs, from the table, and the matching global flags."""
        from click.shell_completion import CompletionItem

        flags = click.Command.shell_complete(self, ctx, incomplete)
        table = verb_table()
        verbs = {**table, **{alias: table[verb] for alias, verb in ALIASES.items()}}
        return flags + [
            CompletionItem(name, help=verb.summary)
            for name, verb in verbs.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, section by section."""
        del ctx
        table = verb_table()
        for section in SECTIONS:
            rows = [(name, v.summary) for name, v in table.items() if v.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=4)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and the exit statuses that scripts rely on."""
        del ctx
        write_examples(_EXAMPLES, formatter)
        formatter.write_paragraph()
        formatter.write_text(help_text.exit_status_summary())


@click.pass_context
def _run_status_by_default(ctx: click.Context) -> int | None:
    if ctx.invoked_subcommand is not None:
        return None
    status = load_command("status")
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
    context_settings={"max_content_width": 100},
)


def main(arguments: list[str]) -> int:
    """Run the command line on `arguments` (without the program's name); return the exit status."""
    invocation = Invocation(words=arguments)
    # Set before parsing, so that a usage error is printed as JSON, too.
    invocation.flags.json = "--json" in arguments[: (*arguments, "--").index("--")]
    status = error_handler.run_with_error_handler(invocation, lambda: _run(invocation, arguments))
    _say_whose_daemon(invocation)
    return status


def _say_whose_daemon(invocation: Invocation) -> None:
    """Say that `sudo` led to the daemon of root, and not to that of the person who typed it."""
    person = os.environ.get("SUDO_USER", "root")
    if os.geteuid() != 0 or person == "root":
        return
    words = shlex.join(["rootsd", *invocation.words])
    about = f"sudo made this a command of root, whose daemon is not that of {safe_label(person)}"
    invocation.output.message(f"{about}. For the daemon of {safe_label(person)}: {words}")


def _run(invocation: Invocation, arguments: list[str]) -> int:
    try:
        with root.make_context("rootsd", list(arguments), obj=invocation) as context:
            status = root.invoke(context)
            print_news(invocation)
            return status if isinstance(status, int) else 0
    except click.ClickException as error:
        from rootsd.cli.options.usage_errors import explained

        raise explained(error, invocation.command) from error
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return Exit.INTERRUPTED
