"""The table of verbs, made from the modules in `rootsd.cli.commands` without importing them.

Importing all of them takes longer than a short command may take. So the help reads each file's
docstring and section as text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import click
from msgspec import Struct

from rootsd.cli import commands
from rootsd.cli.text.verb_names import COMMANDS, verb_names

SECTIONS = ("Set up", "Decide", "Inspect", "For programs")

# The order of the help within each section. Other verbs follow in the order of the alphabet.
_ORDER = """
    init up down connect disconnect clients service parent sync config doctor scan
    pending review approve deny forget undo prune export rename tag focus add rule guard
    give add-to-session
    exposure status ls show open log sessions check why version help
    completion shell-init bridge run acp hook daemon
"""

_SUMMARY = r'"""`rootsd [a-z-]+`: (.+)\.(?:"""|\n)'
_SECTION = r'(?m)^SECTION = "(.+)"$'


class VerbSummary(Struct, frozen=True):
    """The section of a verb in the help, and its line there."""

    section: str
    summary: str


@cache
def verb_table() -> Mapping[str, VerbSummary]:
    """Return all verbs, in the order of the help."""
    rows = {verb: _read_summary(verb) for verb in verb_names()}
    places = {verb: number for number, verb in enumerate(_ORDER.split())}

    def place(verb: str) -> tuple[int, int, str]:
        return SECTIONS.index(rows[verb].section), places.get(verb, len(places)), verb

    return {verb: rows[verb] for verb in sorted(rows, key=place)}


def load_command(verb: str) -> click.Command:
    """Import the module of a verb, and return its command. `verb` is one of `verb_names()`."""
    command: click.Command = import_module(f"{commands.__name__}.{_module_name(verb)}").command
    return command


def _read_summary(verb: str) -> VerbSummary:
    with open(os.path.join(COMMANDS, f"{_module_name(verb)}.py"), encoding="utf-8") as stream:
        text = stream.read()
    summary, section = re.match(_SUMMARY, text), re.search(_SECTION, text)
    if summary is None or section is None or section[1] not in SECTIONS:
        raise ValueError(f"commands/{_module_name(verb)}.py lacks its line of help or its section")
    return VerbSummary(section[1], summary[1])


def _module_name(verb: str) -> str:
    return verb.replace("-", "_")
