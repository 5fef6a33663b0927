"""Work out how a client would start a server: with placeholders filled, and in which folder.

Clients fill different placeholders, and some only they can fill, such as `${workspaceFolder}` and
`${input:key}`. A placeholder that this shell cannot fill is named, and the server is then not
tried.

No client was run to see what it fills. What was read, as of November 2026:

* Gemini CLI: its source, `envVarResolver.ts`. Qwen Code is a fork of it, and was assumed to do the
  same.
* opencode: its source `config/variable.ts`, as quoted in an issue.
* VS Code: its reference of variables.
* Claude Code, Copilot CLI, Cursor, and Windsurf: pages by others about them, and not their own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from rootsd.connect.base import ClientEnvironment, Placeholder
from rootsd.connect.servers import ServerEntry
from rootsd.core.labels import safe_label

_PLACE = re.compile(r"\$\{\{.*?\}\}|\$\{[^}]*\}|\{(?:env|file|input):[^}]*\}|\$[A-Za-z_]\w*")
_PATTERNS = {
    Placeholder.BRACES: re.compile(r"\$\{(\w+)\}"),
    Placeholder.DEFAULT: re.compile(r"\$\{(\w+):-([^}]*)\}"),
    Placeholder.BARE: re.compile(r"\$(\w+)"),
    Placeholder.ENV: re.compile(r"\$\{env:([^}]+)\}"),
    Placeholder.CURLY: re.compile(r"\{env:([^}]+)\}"),
    Placeholder.EDITOR: re.compile(r"\$\{(userHome|pathSeparator|/)\}"),
}
_SHELL = re.compile(r"[;&|<>`\n]|\$\(")
_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_MAX_ENV_BYTES = 1 << 20


class Launch(Struct, frozen=True):
    """How a client starts a server.

    * `words`, `variables`: the command and the variables of the entry, with placeholders filled.
    * `program`: the words of the command line, if one string in the entry has all of them.
    * `folder`: the working directory that the entry names, or an empty text for that of the
      session.
    * `is_shell`: whether the command needs a shell.
    * `unknown`: the placeholders that this shell cannot fill, and the files that it cannot read.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    program: tuple[str, ...] = ()
    folder: str = ""
    is_shell: bool = False
    unknown: tuple[str, ...] = ()


def launch_of(
    server: ServerEntry, placeholders: Sequence[Placeholder], environment: ClientEnvironment
) -> Launch:
    """Return how a client that fills `placeholders` starts a server."""
    filler = _Filler(placeholders, environment)
    words = [filler.fill(word) for word in server.words]
    variables = dict(_env_file(filler, server.env_file))
    variables |= {name: filler.fill(text) for name, text in (server.variables or {}).items()}
    search = variables.get("PATH") or environment.variables.get("PATH", "")
    program, is_shell = _command_line(words[0], search)
    folder = ""
    if server.folder:
        known = len(filler.unknown)
        folder = os.path.join(environment.home, _below_home(filler.fill(server.folder)))
        is_relative = not os.path.isabs(filler.fill(server.folder).replace("~", "/", 1))
        if len(filler.unknown) > known or is_relative:  # it depends on the session
            filler.unknown.setdefault(f"the working directory {server.folder}")
            folder = ""
    return Launch(
        (*(program or words[:1]), *words[1:]),
        variables,
        program,
        os.path.normpath(folder) if folder else "",
        is_shell,
        tuple(safe_label(each, limit=None) for each in filler.unknown),
    )


def _below_home(path: str) -> str:
    return path.removeprefix("~").removeprefix("/") if path.startswith("~/") else path


class _Filler:
    """Fills placeholders, and collects those that it cannot fill."""

    def __init__(
        self, placeholders: Sequence[Placeholder], environment: ClientEnvironment
    ) -> None:
        self._placeholders = placeholders
        self._variables = environment.variables
        self._editor = {"userHome": str(environment.home), "pathSeparator": os.sep, "/": os.sep}
        self.unknown: dict[str, None] = {}

    def fill(self, text: str) -> str:
        return _PLACE.sub(self._value, text)

    def _value(self, place: re.Match[str]) -> str:
        for kind in self._placeholders:
            found = _PATTERNS[kind].fullmatch(place[0])
            if found is None:
                continue
            if kind is Placeholder.EDITOR:
                return self._editor[found[1]]
            value = self._variables.get(found[1])
            if value is None and kind is Placeholder.DEFAULT:
                return found[2]
            if value is not None:
                return value
        is_bare = not place[0].startswith(("${", "{"))
        if not is_bare or Placeholder.BARE in self._placeholders:
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
