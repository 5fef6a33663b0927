"""Render the manual of the command line as the man page rootsd(1).

tools/write_manual.py writes the page into the wheel and the source archive when they are built.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rootsd import __version__
from rootsd.cli import help_text
from rootsd.cli.main import SUMMARY
from rootsd.cli.manual import HelpParagraph, VerbManual, global_flags, verb_manuals

# The day of the last notable change. With today's date, two builds would differ.
DATE = "2026-11-25"
_WIDTH = 70


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
    yield _filled(help_text.DESCRIPTION)
    yield from _paragraph(help_text.REF_SYNTAX)
    yield from _paragraph(help_text.OUTPUT_FORMATS)
    yield ".SH OPTIONS"
    yield "These flags work before and after the verb."
    yield from _terms(global_flags())
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
    for verb in verb_manuals():
        if verb.section != section:
            section = verb.section
            yield f".SH {section.upper()}"
        yield from _verb(verb)


def _verb(verb: VerbManual) -> Iterator[str]:
    yield f'.SS "{_plain(verb.usage)}"'
    yield from _described(verb.paragraphs)
    if verb.aliases:
        yield from _paragraph(f"Also called {' and '.join(verb.aliases)}.")
    yield from _terms(verb.options)
    if verb.examples:
        yield ".PP"
        yield from _verbatim(verb.examples)


def _described(paragraphs: Sequence[HelpParagraph]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        if paragraph.is_verbatim:
            yield from _verbatim(paragraph.text.splitlines())
        else:
            yield _filled(paragraph.text)


def _terms(rows: Mapping[str, str]) -> Iterator[str]:
    for term, text in rows.items():
        yield ".TP"
        yield f'.B "{_plain(term)}"'
        yield _filled(text)


def _paragraph(text: str) -> Iterator[str]:
    yield ".PP"
    yield _filled(text)


def _verbatim(lines: Iterable[str]) -> Iterator[str]:
    yield ".EX"
    yield from map(_plain, lines)
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
