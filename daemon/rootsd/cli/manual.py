"""The manual of the command line: each verb with its usage, text, options, and examples.

It is made from the definitions that also make every `--help`. `rootsd.cli.man_page` renders it as
rootsd(1), and tools/write_cli_reference.py as docs/reference/cli.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

import click
from msgspec import Struct

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.main import ALIASES, root
from rootsd.cli.verb_table import verb_table

_VERBATIM = "\b\n"  # marks a paragraph that click must not wrap


class HelpParagraph(Struct, frozen=True):
    """A paragraph of a help text. A verbatim one keeps its line breaks."""

    text: str
    is_verbatim: bool


class VerbManual(Struct, frozen=True):
    """The manual of one verb, or of one subcommand.

    `command` is what a person types after `rootsd`, such as `parent add`. `options` has the
    meaning of each option, by its words, such as `--tag TAG`.
    """

    section: str
    command: str
    summary: str
    usage: str
    paragraphs: tuple[HelpParagraph, ...]
    aliases: tuple[str, ...]
    options: Mapping[str, str]
    examples: tuple[str, ...]

    @property
    def is_subcommand(self) -> bool:
        """Whether this is a subcommand of the verb before it."""
        return " " in self.command


def verb_contexts() -> Iterator[click.Context]:
    """Yield a context for each verb, and for each subcommand after its verb."""
    top = click.Context(root, info_name="rootsd", obj=Invocation(), **root.context_settings)
    for name in verb_table():
        command = root.get_command(top, name)
        if command is None:
            raise LookupError(name)
        context = click.Context(command, top, name)
        yield context
        if isinstance(command, click.Group):
            for inner, inner_command in command.commands.items():
                yield click.Context(inner_command, context, inner)


def verb_manuals() -> Iterator[VerbManual]:
    """Yield the manual of each verb, and of each subcommand after its verb, as in the help."""
    for context in verb_contexts():
        command = context.command_path.partition(" ")[2]
        verb = verb_table()[command.partition(" ")[0]]
        pieces = " ".join(context.command.collect_usage_pieces(context))
        yield VerbManual(
            verb.section,
            command,
            verb.summary,
            f"rootsd {command} {pieces}".strip(),
            tuple(_paragraphs(context.command.help or "")),
            tuple(alias for alias, meant in ALIASES.items() if meant == command),
            _options(context),
            tuple((context.command.epilog or "").splitlines()),
        )


def global_flags() -> Mapping[str, str]:
    """Return the meaning of each flag that works before and after the verb, by its words."""
    return _options(click.Context(root, info_name="rootsd", **root.context_settings))


def _options(context: click.Context) -> dict[str, str]:
    records = (
        param.get_help_record(context)
        for param in context.command.get_params(context)
        if isinstance(param, click.Option) and "--help" not in param.opts
    )
    return dict(record for record in records if record)


def _paragraphs(help_: str) -> Iterator[HelpParagraph]:
    for text in inspect.cleandoc(help_).split("\n\n"):
        yield HelpParagraph(text.removeprefix(_VERBATIM), text.startswith(_VERBATIM))
