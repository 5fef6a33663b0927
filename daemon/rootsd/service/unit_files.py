"""Render the systemd units and the launchd agents from their templates.

The templates are in systemd/ and launchd/ of the repository, and the wheel has a copy. Each
rendered file contains `GENERATED_MARK`, so that rootsd never overwrites a file that a person
wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from msgspec import Struct

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.places.base_folders import PLACE_VARIABLES
from rootsd.service.shell_scripts import shipped_folder
from rootsd.service.start_record import StartPlan

GENERATED_MARK = "Written by rootsd service install"
PLACES_DROP_IN = "rootsd.service.d/15-places.conf"
BASE_UNITS = (
    "rootsd.service",
    "rootsd.socket",
    "rootsd-control.socket",
    "rootsd.service.d/10-sockets.conf",
    PLACES_DROP_IN,
    "rootsd-sync.service",
)
STRICT_DROP_IN = "rootsd.service.d/20-namespaces.conf"
ALL_UNITS = (*BASE_UNITS, STRICT_DROP_IN)
AGENT_PLIST = "org.rootsd.daemon.plist"
SYNC_PLIST = "org.rootsd.sync.plist"
AGENTS = (AGENT_PLIST, SYNC_PLIST)

_UNSAFE_IN_PROGRAMS = frozenset("\"'\\")
_NEEDS_NO_QUOTES = re.compile(r"[\w/.@:=+,-]+", re.ASCII)


class InvalidUnitValue(RootsdError):
    """A value cannot be written to a service file."""


class UnitSettings(Struct, frozen=True):
    """The values for the templates.

    `command` is the path of rootsd that stays valid after an upgrade. `writable` has the folders
    to which the daemon writes. `synced` is the path of the file that lists the clients of
    `rootsd sync`.
    """

    plan: StartPlan
    command: Path
    writable: tuple[Path, ...]
    synced: Path
    strict: bool = False


def systemd_units(settings: UnitSettings) -> dict[str, str]:
    """Return the text of each unit by its path below the folder of units."""
    names = [*BASE_UNITS]
    if settings.strict:
        names.append(STRICT_DROP_IN)
    places = settings.plan.places
    values = {
        "@ROOTSD@": _words([_program(str(settings.command))]),
        "@STOPPED@": _escape_specifiers(_plain(str(settings.plan.stopped))),
        "@SYNC@": _escape_specifiers(_plain(str(settings.synced))),
        "@WRITABLE@": _words(str(folder) for folder in settings.writable),
        "@PLACES@": _words(f"{name}={value}" for name, value in sorted(places.items())),
        "@UNSET@": _words(sorted(PLACE_VARIABLES.keys() - places.keys())),
    }
    return {name: _fill_template(f"systemd/{name}", values) for name in names}


def launchd_agents(settings: UnitSettings) -> dict[str, str]:
    """Return the text of each agent by its path below the folder of agents."""
    variables = "".join(
        f"<key>{_xml(name)}</key><string>{_xml(value)}</string>"
        for name, value in sorted(settings.plan.places.items())
    )
    values = {
        "@ROOTSD@": _xml(str(settings.command)),
        "@LOG@": _xml(str(settings.plan.log)),
        "@SYNC_LOG@": _xml(str(settings.plan.sync_log)),
        "<!-- @PLACES@ -->": variables,
    }
    return {name: _fill_template(f"launchd/{name}", values) for name in AGENTS}


def is_generated(file: Path) -> bool:
    """Return whether rootsd wrote `file`."""
    try:
        return GENERATED_MARK in file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return False


def _fill_template(template: str, values: Mapping[str, str]) -> str:
    text = Path(shipped_folder(), template).read_text("utf-8")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def _words(words: Iterable[str]) -> str:
    """Quote the words of a setting, and escape specifiers: systemd.syntax(7), "Quoting"."""
    return " ".join(_word(_plain(word)) for word in words)


def _program(path: str) -> str:
    """Return `path` if systemd accepts it as a program: string_is_safe() in basic/string-util.c.

    Raises InvalidUnitValue.
    """
    if _UNSAFE_IN_PROGRAMS & set(path):
        shown = safe_label(path, limit=None)
        raise InvalidUnitValue(
            f"systemd starts no program with a quote or a backslash in its path: {shown}",
            "install rootsd in another folder",
        )
    return path


def _word(word: str) -> str:
    if _NEEDS_NO_QUOTES.fullmatch(word):
        return word
    quoted = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escape_specifiers(quoted)}"'


def _escape_specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _xml(text: str) -> str:
    return escape(_plain(text), quote=False)


def _plain(text: str) -> str:
    """Return `text` if it fits on one line. Raises InvalidUnitValue."""
    # A lone surrogate, which stands for a byte that is not UTF-8, is not printable either.
    if not text.isprintable():
        shown = safe_label(text, limit=None)
        raise InvalidUnitValue(
            f"{shown} has characters that no service file can hold", "move it, then try again"
        )
    return text
