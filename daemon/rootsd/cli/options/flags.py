"""Define the global flags, and the click command classes that accept them anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.help_format import ThemedContext

pass_invocation = click.make_pass_decorator(Invocation)
yes_option = click.option("--yes", is_flag=True, help="do not ask, even for several projects")

_GLOBAL = (
    ("--json", "json", "print one JSON object of the schema rootsd/1"),
    ("-q/--quiet", "quiet", "print only errors and warnings on standard error"),
    ("-v/--verbose", "verbose", "print each request to the daemon on standard error"),
    ("--no-color", "no_color", "print no colors; the variable NO_COLOR does the same"),
    ("--no-pager", "no_pager", "print long lists at once; [ui] pager names another pager"),
    ("--no-input", "no_input", "never ask; fail, and print the command to type instead"),
)


def _print_help(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001
    if is_asked and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP = click.Option(
    ["-h", "--help", "asks_for_help"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_help,
    help="Show this message and exit.",
)


class HelpedCommand(click.Command):
    """A command with one `--help` for all. For each of its own, click looks for translations."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option that prints the help."""
        del ctx
        return _HELP


class VerbCommand(HelpedCommand):
    """A verb that accepts the global flags and shows the lines of its epilog as examples.

    `prints` are the types of what it prints with `--json`, between the other keys of a
    `CommandOutput`. If there are several, their docstrings say when each is printed. There is none
    for a verb that prints no object.
    """

    context_class: type[click.Context] = ThemedContext

    def __init__(self, *args: Any, prints: Sequence[type] = (), **settings: Any) -> None:  # noqa: ANN401 - as click
        super().__init__(*args, **settings)
        self.prints = tuple(prints)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the verb, `--help`, and the global flags."""
        return [*super().get_params(ctx), *_HIDDEN]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Store the verb first: a usage error names it, too."""
        _store_command_words(ctx)
        ctx.obj.arguments = tuple(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and a line about the global flags."""
        write_examples(self.epilog, formatter)
        formatter.write_paragraph()
        root = ctx.find_root().info_name
        formatter.write_text(
            f"Global flags: --json -q -v --no-color --no-pager --no-input; see {root} -h"
        )


def verb(name: str, **settings: Any) -> Callable[[Callable[..., Any]], VerbCommand]:  # noqa: ANN401 - as click
    """Return a decorator that makes a function the verb `name`."""
    return click.command(name, cls=VerbCommand, **settings)


class VerbGroup(HelpedCommand, click.Group):
    """A verb with subcommands, such as `parent`."""

    context_class: type[click.Context] = ThemedContext
    command_class: type[click.Command] | None = VerbCommand

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the group, `--help`, and the global flags."""
        return [*super().get_params(ctx), *_HIDDEN]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Store the verb first; a subcommand then stores itself."""
        _store_command_words(ctx)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        del ctx
        write_examples(self.epilog, formatter)


def global_options(*, hidden: bool) -> list[click.Option]:
    """Return new options that set their field in the `Flags` of the invocation."""
    return [
        click.Option(
            [*words.split("/"), field],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            help=text,
            callback=_set,
        )
        for words, field, text in _GLOBAL
    ]


def write_examples(examples: str | None, formatter: click.HelpFormatter) -> None:
    """Write a section of commands to copy, one per line."""
    if examples:
        with formatter.section("Examples"):
            for example in examples.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _store_command_words(ctx: click.Context) -> None:
    """Store the words of the verb, such as `parent add`, in the invocation."""
    ctx.obj.command = ctx.command_path.partition(" ")[2]


def _set(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        setattr(ctx.obj.flags, str(param.name), True)


_HIDDEN = global_options(hidden=True)
