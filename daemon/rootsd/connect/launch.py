"""Work out how a client would start a server: with placeholders filled, and in which folder.

Clients fill different placeholders, and some only they can fill, such as `${workspaceFolder}` and
`${input:key}`. A placeholder that this shell cannot fill is named, and the server is then not
tried.

What Claude Code, Codex, Copilot CLI, Gemini CLI, Qwen Code, opencode, and Cline do was tried with
the real programs, in tests/e2e/agents/test_entries.py. For Cursor, Windsurf, and VS Code, the
placeholders are from pages about them, and nothing else is known.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping

from msgspec import Struct

from rootsd.agents.forms.client import EntryPart, EntryReading, Placeholder
from rootsd.connect.base import ClientEnvironment
from rootsd.connect.servers import ServerEntry
from rootsd.core.labels import safe_label

_PLACE = re.compile(r"\$\{\{.*?\}\}|\$\{[^}]*\}|\{(?:env|file|input):[^}]*\}|\$[A-Za-z_]\w*")
# opencode knows no notation that begins with a dollar sign, which is an ordinary character there.
_CURLY_PLACE = re.compile(r"\{(?:env|file):[^}]*\}")
_PATTERNS = {
    Placeholder.BRACES: re.compile(r"\$\{(\w+)\}"),
    Placeholder.DEFAULT: re.compile(r"\$\{(\w+):-([^}]*)\}"),
    Placeholder.BARE: re.compile(r"\$(\w+)"),
    Placeholder.ENV: re.compile(r"\$\{env:([^}]+)\}"),
    Placeholder.CURLY: re.compile(r"\{env:([^}]+)\}"),
    Placeholder.EDITOR: re.compile(r"\$\{(userHome|pathSeparator|/)\}"),
    Placeholder.FILE: re.compile(r"\{file:[^}]+\}"),
}
_SHELL = re.compile(r"[;&|<>`\n]|\$\(")
_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_MAX_ENV_BYTES = 1 << 20
_FOLDERS = frozenset((EntryPart.FOLDER, EntryPart.HOME_FOLDER))


class Launch(Struct, frozen=True):
    """How a client starts a server.

    * `words`, `variables`: the command and the variables of the entry, with placeholders filled.
    * `program`: the words of the command line, if one string in the entry has all of them.
    * `folder`: the working directory that the entry names, or an empty text for that of the
      session.
    * `is_shell`: whether the command needs a shell.
    * `unknown`: the placeholders that this shell cannot fill, and the files that it cannot read.
    * `obstacle`: why the client itself cannot start the server: a verb with its object, or empty.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    program: tuple[str, ...] = ()
    folder: str = ""
    is_shell: bool = False
    unknown: tuple[str, ...] = ()
    obstacle: str = ""


def launch_of(
    server: ServerEntry, reading: EntryReading, environment: ClientEnvironment
) -> Launch:
    """Return how a client that reads entries in this way starts a server."""
    filler = _Filler(reading, environment)
    words = [filler.fill(word) for word in server.words]
    variables: dict[str, str] = {}
    if EntryPart.ENV_FILE in reading.parts:
        variables |= _env_file(filler, server.env_file)
    variables |= {name: filler.fill(text) for name, text in (server.variables or {}).items()}
    search = variables.get("PATH") or environment.variables.get("PATH", "")
    program, is_shell = _command_line(words[0], search)
    obstacle = ""
    if (program or is_shell) and EntryPart.COMMAND_LINE not in reading.parts:
        program, is_shell, obstacle = (), False, "does not start a whole command line"
    if server.folder.startswith("~") and _FOLDERS & reading.parts == {EntryPart.FOLDER}:
        obstacle = "does not know what ~ means in its working directory"
    folder = "" if obstacle else _folder(filler, server.folder, reading, environment)
    return Launch(
        (*(program or words[:1]), *words[1:]),
        variables,
        program,
        os.path.normpath(folder) if folder else "",
        is_shell,
        tuple(safe_label(each, limit=None) for each in filler.unknown),
        obstacle,
    )


def _folder(
    filler: _Filler, text: str, reading: EntryReading, environment: ClientEnvironment
) -> str:
    """Return the working directory of an entry, or an empty text for that of the session."""
    if not text or EntryPart.FOLDER not in reading.parts:
        return ""
    known = len(filler.unknown)
    filled = filler.fill(text)
    if filled.startswith("~") and EntryPart.HOME_FOLDER in reading.parts:
        filled = os.path.join(environment.home, _below_home(filled))
    if len(filler.unknown) > known or not os.path.isabs(filled):  # it depends on the session
        filler.unknown.setdefault(f"the working directory {text}")
        return ""
    return filled


def _below_home(path: str) -> str:
    return path.removeprefix("~").removeprefix("/") if path.startswith("~/") else path


class _Filler:
    """Fills placeholders, and collects those that it cannot fill."""

    def __init__(self, reading: EntryReading, environment: ClientEnvironment) -> None:
        self._placeholders = reading.placeholders
        self._has_others = EntryPart.OTHER_PLACEHOLDERS in reading.parts
        is_curly = Placeholder.CURLY in reading.placeholders and not self._has_others
        self._place = _CURLY_PLACE if is_curly else _PLACE
        self._variables = environment.variables
        self._editor = {"userHome": str(environment.home), "pathSeparator": os.sep, "/": os.sep}
        self.unknown: dict[str, None] = {}

    def fill(self, text: str) -> str:
        return self._place.sub(self._value, text)

    def _value(self, place: re.Match[str]) -> str:
        for kind in self._placeholders:
            found = _PATTERNS[kind].fullmatch(place[0])
            if found is None:
                continue
            if kind is Placeholder.EDITOR:
                return self._editor[found[1]]
            value = self._variables.get(found[1]) if kind is not Placeholder.FILE else None
            if value is None and kind is Placeholder.DEFAULT:
                return found[2]
            if value is None:
                self.unknown.setdefault(place[0])
            return place[0] if value is None else value
        if self._has_others and place[0].startswith(("${", "{")):
            self.unknown.setdefault(place[0])
        return place[0]


def _command_line(program: str, search: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of a program that is a whole command line, and whether it needs a shell.

    Some clients start such a command with a shell, or split it at the spaces.
    """
    if not any(map(str.isspace, program)) or shutil.which(program, path=search) is not None:
        return (), False
    if _SHELL.search(program):
        return (), True
    try:
        words = tuple(shlex.split(program))
    except ValueError:
        return (), True
    return (words, False) if len(words) > 1 else ((), False)


def _env_file(filler: _Filler, path: str) -> Iterator[tuple[str, str]]:
    """Yield the variables in the file that an entry names."""
    if not path:
        return
    place = os.path.expanduser(filler.fill(path))
    try:
        with open(place, encoding="utf-8") as file:
            lines = file.read(_MAX_ENV_BYTES).splitlines()
    except (OSError, ValueError):
        filler.unknown.setdefault(f"the file {path}")
        return
    for line in lines:
        if (found := _ENV_LINE.fullmatch(line)) is not None:
            value = found[2]
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            yield found[1], value[1:-1] if is_quoted else value
