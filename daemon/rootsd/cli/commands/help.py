"""`rootsd help`: explain rootsd, or one verb."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb

SECTION = "Inspect"


def _verbs(context: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the verbs, and after a verb with subcommands, these."""
    command = _command_of(context.find_root().command, context.params.get(str(param.name)) or ())
    if not isinstance(command, click.Group):
        return []
    names = command.list_commands(context)
    return [CompletionItem(name) for name in names if name.startswith(typed)]


@verb(
    "help",
    epilog=(
        "rootsd help\n"
        "rootsd help approve\n"
        "rootsd help parent add\n"
        "rootsd help --man | man -l -                  # on a Mac: | mandoc -a"
    ),
)
@click.argument("words", metavar="[VERB]...", nargs=-1, shell_complete=_verbs)
@click.option("--man", is_flag=True, help="print the source of the man page, rootsd(1)")
@click.pass_context
@pass_invocation
def command(
    invocation: Invocation, context: click.Context, *, words: tuple[str, ...], man: bool
) -> None:
    """Explain rootsd or one verb, with the same text as --help.

    uv and uvx link no man pages, so `man rootsd` finds none. With --man, rootsd prints it.
    """
    if man:
        if words:
            raise click.UsageError("--man takes no verb: the page describes all of them", context)
        from rootsd.cli.man_page import render_man_page

        invocation.output.text(render_man_page())
        return
    parent = context.find_root()
    for word in words:
        group = parent.command
        found = group.get_command(parent, word) if isinstance(group, click.Group) else None
        if found is None:
            raise click.NoSuchCommand(word, ctx=parent)
        parent = click.Context(found, parent, found.name)
    invocation.output.text(parent.get_help() + "\n")


def _command_of(command: click.Command, words: tuple[str, ...]) -> click.Command | None:
    for word in words:
        if not isinstance(command, click.Group):
            return None
        found = command.get_command(click.Context(command), word)
        if found is None:
            return None
        command = found
    return command
