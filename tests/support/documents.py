"""The documents as a reader follows them: run the commands of each block on a terminal in an empty
home.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import draw_pictures
from draw_pictures import environment_of, shown_by
from terminal_picture import CELL_WIDTH, MARGIN

from support import preloaded

COLUMNS = 100
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLAIN_COMMAND = re.compile(r"rootsd( [\w~/.,=-]+)*")  # means the same without a shell
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The parts that vary between runs and machines.
_VARYING = (
    # A page shows a whole path below this home, and `Reader.types` shows it below ~.
    (re.compile(r"/home/you\b"), "~"),
    # Ids have four characters, and more only if four would be a number.
    # They begin a row, which is indented below the heading of a group.
    (re.compile(r"^( {0,2})([a-z0-9]{4}|[0-9]{4,}[a-z])(?=  )"), r"\1IDID"),
    (re.compile(r"\(([a-z0-9]{4}|[0-9]{4,}[a-z])\)"), "(IDID)"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\bjust now\b|\b\d+[smhd] ago\b"), "then"),
    (re.compile(r"\b\d+\.\d\d s\b"), "N s"),
    (re.compile(r"\b[0-9a-f]{10}\b"), "COMMIT"),
    (re.compile(r"\b[\d.,]+ (KiB|MiB|bytes)\b"), "SIZE"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ][\d:]+Z?"), "WHEN"),
    (re.compile(r" {2,}"), "  "),
)
ELISION = "…"
_DRAWN = re.compile(r'<text x="(\d+)" y="(\d+)" [^>]*(fill=[^>]*)>([^<]*)</text>')


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its label and its text."""

    language: str
    text: str

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Yield each command after a `$` with its expected output. The shell handles comments;
        blank lines only separate commands.
        """
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                found.append((re.sub(r"\s+", " ", line[2:]), []))
            elif line.strip():
                found[-1][1].append(line)
        return found


def blocks(document: Path, language: str) -> list[Block]:
    """Return the blocks in `language`, in order."""
    return [
        Block(*found) for found in _FENCE.findall(document.read_text()) if found[0] == language
    ]


def without_escapes(text: str) -> str:
    """Return the text of a terminal without colors and movements."""
    return _ESCAPE.sub("", text)


def normal(line: str) -> str:
    """Return a line without the parts that vary."""
    text = without_escapes(line).rstrip()
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.rstrip()


def fits(said: list[str], shown: list[str]) -> bool:
    """Return whether the output matches the expected lines. A line with only `…` matches any
    number of lines.
    """
    if not said:
        return not shown
    if said[0].strip() == ELISION:
        return any(fits(said[1:], shown[start:]) for start in range(len(shown) + 1))
    return bool(shown) and normal(said[0]) == normal(shown[0]) and fits(said[1:], shown[1:])


CLONED_ADDRESS = "git@example.org:acme/fresh.git"
"""The README clones this address. A setting of git has to lead it to ORIGIN."""
ORIGIN = "elsewhere/fresh.git"


def make_sources(home: Path) -> None:
    """Make the home that the README is read in: three projects, and ORIGIN to clone from."""
    api, origin = home / "src" / "api", home / ORIGIN
    for repository in (api, home / "src" / "zero", origin):
        repository.mkdir(parents=True)
        _git(repository, "init", "-q")
    (api / "pyproject.toml").write_text('[project]\nname = "shop-api"\n')
    (api / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "x"}}}\n')
    (api / ".env").write_text("KEY=value\n")
    (api / "web").mkdir()
    (api / "web" / "package.json").write_text('{"name": "web"}\n')
    for repository in (api, home / "src" / "zero", origin):
        (repository / "README").write_text("hello\n")
        _git(repository, "add", "README")
        _git(repository, "commit", "-qm", "Take orders in euros")
    _git(api, "remote", "add", "origin", "https://git.example.org/acme/api.git")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").touch()
    tool = home / "src" / "tool"
    tool.mkdir()
    (tool / "pyproject.toml").write_text("[project]\n")


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


class Reader:
    """A person at a terminal with an empty home, a few repositories, and rootsd on the PATH."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.install(f"{shlex.quote(sys.executable)} -m rootsd")

    def install(self, program: str) -> None:
        """Make `rootsd` run the words of `program`, which are those of a shell."""
        file = self.home / ".local" / "bin" / "rootsd"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        file.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.home}/.local/bin:{os.environ['PATH']}"
        # A parallel run of the tests sets COLUMNS, which takes precedence over the terminal.
        others = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        return {**others, "HOME": str(self.home), "PATH": path, "TERM": "xterm"}

    def types(self, command: str) -> list[str]:
        """Return the terminal's output for the command, with the home folder shown as ~."""
        shown = _shown(self.home, command, COLUMNS, self.environment)
        shown = shown.replace(str(self.home), "~")
        return [line for line in without_escapes(shown).splitlines() if line.strip()]


def shows(home: Path, command: str) -> str:
    """Return what `on_terminal` returns, as cheaply as a reader of the documents."""
    return _shown(home, command, draw_pictures.COLUMNS, environment_of(home))


def _shown(home: Path, command: str, columns: int, environment: Mapping[str, str]) -> str:
    """Run the command in a shell, or in a fork if a shell would only start `rootsd`."""
    is_plain = _PLAIN_COMMAND.fullmatch(command)
    arguments = [re.sub("^~", str(home), word) for word in command.split()[1:]]

    def start(terminal: int) -> Callable[[], object]:
        streams = dict.fromkeys(range(3), terminal)
        if not is_plain:
            shell = ("bash", "-c", command)
            return preloaded.start_program(shell, environment, streams, home).wait
        return preloaded.start(arguments, environment, streams, home).wait

    return shown_by(start, columns)


def drawn(picture: str) -> list[tuple[str, list[str]]]:
    """Return the rows of a picture of a terminal: the text without the parts that vary, and the
    looks of each piece of it.
    """
    rows: dict[str, tuple[str, list[str]]] = {}
    for x, y, looks, piece in _DRAWN.findall(picture):
        text, before = rows.get(y, ("", []))
        column = (int(x) - MARGIN) // CELL_WIDTH
        rows[y] = f"{text:{column}}{unescape(piece)}", [*before, looks]
    return [(normal(text), looks) for text, looks in rows.values()]
