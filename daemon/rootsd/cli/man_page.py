"""Generate the man page from the definitions that also make every `--help`.

tools/write_manual.py writes the page into the wheel and the source archive when they are built.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping

import click

from rootsd import __version__
from rootsd.cli import help_text
from rootsd.cli.invocation import Invocation
from rootsd.cli.main import ALIASES, SUMMARY, root
from rootsd.cli.verb_table import verb_table

# The day of the last notable change. With today's date, two builds would differ.
DATE = "2026-11-25"
_WIDTH = 70
_PREFORMATTED = "\b\n"  # marks a paragraph that click must not wrap


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


def render_man_page() -> str:
    """Return the page rootsd(1) in roff."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH ROOTSD 1 {DATE} "rootsd {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"rootsd \\- {_plain(SUMMARY[0].lower() + SUMMARY[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield ".B rootsd"
    yield r"[\fIflags\fR] [\fIverb\fR [\fIarguments\fR]]"
    yield ".SH DESCRIPTION"
    yield _filled(
        "rootsd is one daemon per user. It finds the repositories and project folders below the "
        "folders that you name, and proposes each one. You approve or deny it, once. rootsd "
        "publishes the approved ones, by name, to every MCP client and server on the machine. "
        "Changes take effect at once. Without a verb, rootsd shows rootsd status."
    )
    yield from _paragraph(help_text.REF_SYNTAX)
    yield from _paragraph(help_text.OUTPUT_FORMATS)
    yield ".SH OPTIONS"
    yield "These flags work before and after the verb."
    yield from _options(click.Context(root, info_name="rootsd", **root.context_settings))
    yield from _verbs()
    yield ".SH EXIT STATUS"
    yield from _terms({str(int(s)): long for s, (_, long) in help_text.EXIT_STATUSES.items()})
    yield ".SH ENVIRONMENT"
    yield from _terms(help_text.ENVIRONMENT_VARIABLES)
    yield ".SH FILES"
    yield from _terms(help_text.FILES)
    yield ".SH EXAMPLES"
    yield from _terms({line: f"{what}." for line, what in help_text.EXAMPLES.items()})
    yield ".SH SEE ALSO"
    yield ".BR git (1),"
    yield ".BR systemd.unit (5)"


def _verbs() -> Iterator[str]:
    """Yield a section for each section of the help, with a subsection for each verb."""
    section = ""
    for context in verb_contexts():
        path = context.command_path.partition(" ")[2]
        verb = verb_table()[path.partition(" ")[0]]
        if verb.section != section:
            section = verb.section
            yield f".SH {section.upper()}"
        pieces = " ".join(context.command.collect_usage_pieces(context))
        yield f'.SS "{_plain(f"rootsd {path} {pieces}".strip())}"'
        yield from _described(context.command.help or "")
        if aliases := [alias for alias, meant in ALIASES.items() if meant == path]:
            yield from _paragraph(f"Also called {' and '.join(aliases)}.")
        yield from _options(context)
        if context.command.epilog:
            yield ".PP"
            yield from _verbatim(context.command.epilog)


def _options(context: click.Context) -> Iterator[str]:
    records = (
        param.get_help_record(context)
        for param in context.command.get_params(context)
        if isinstance(param, click.Option) and "--help" not in param.opts
    )
    yield from _terms(dict(record for record in records if record))


def _described(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.startswith(_PREFORMATTED):
            yield from _verbatim(paragraph.removeprefix(_PREFORMATTED))
        else:
            yield _filled(paragraph)


def _terms(rows: Mapping[str, str]) -> Iterator[str]:
    for term, text in rows.items():
        yield ".TP"
        yield f'.B "{_plain(term)}"'
        yield _filled(text)


def _paragraph(text: str) -> Iterator[str]:
    yield ".PP"
    yield _filled(text)


def _verbatim(text: str) -> Iterator[str]:
    yield ".EX"
    yield from map(_plain, text.splitlines())
    yield ".EE"


def _plain(text: str) -> str:
    """Escape `text`, so that roff prints it literally (requests, quotes, hyphens)."""
    escaped = (
        text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("~", "\\(ti")
    ).replace("^", "\\(ha")
    lines = (f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))
    return "\n".join(lines)


def _filled(text: str) -> str:
    """Wrap a paragraph, to keep the source readable; roff fills it again."""
    return _plain(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False))
