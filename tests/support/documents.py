"""The documents as a reader follows them: blocks of commands, run on a terminal in an own home."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from draw_terminal import shown_on_terminal

COLUMNS = 100
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What differs from run to run, and from machine to machine.
_VARYING = (
    # Four characters, and more only where these are a number.
    (re.compile(r"^([a-z0-9]{4}|[0-9]{4,}[a-z])(?=  )"), "IDID"),
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


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what it is said to be, and its text."""

    language: str
    text: str

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command after a `$`, and the lines that it is said to print. Comments are left to
        the shell, and blank lines only set commands apart."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                found.append((re.sub(r"\s+", " ", line[2:]), []))
            elif line.strip():
                found[-1][1].append(line)
        return found


def blocks(document: Path, language: str) -> list[Block]:
    """The blocks of that language, in order."""
    return [
        Block(*found) for found in _FENCE.findall(document.read_text()) if found[0] == language
    ]


def normal(line: str) -> str:
    """A line without what varies."""
    text = _ESCAPE.sub("", line).rstrip()
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.rstrip()


def fits(said: list[str], shown: list[str]) -> bool:
    """Whether the lines shown are those said; a line that is only `…` stands for any number."""
    if not said:
        return not shown
    if said[0].strip() == ELISION:
        return any(fits(said[1:], shown[start:]) for start in range(len(shown) + 1))
    return bool(shown) and normal(said[0]) == normal(shown[0]) and fits(said[1:], shown[1:])


class Reader:
    """Somebody at a terminal with an empty home, a few repositories, and rootsd on the PATH."""

    def __init__(self, home: Path) -> None:
        self.home = home
        program = home / ".local" / "bin" / "rootsd"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rootsd "$@"\n')
        program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.home}/.local/bin:{os.environ['PATH']}"
        return {**os.environ, "HOME": str(self.home), "PATH": path, "TERM": "xterm"}

    def types(self, command: str) -> list[str]:
        """The lines that a terminal shows for the command; the home folder is shown as ~."""
        shown = shown_on_terminal(
            ("bash", "-c", command), COLUMNS, self.home, self.environment
        ).replace(str(self.home), "~")
        return [line for line in _ESCAPE.sub("", shown).splitlines() if line.strip()]


def drawn(picture: str) -> list[tuple[str, str]]:
    """What a picture of a terminal shows: how each piece of text looks, and the text without what
    varies."""
    looks = dict(re.findall(r"\.rootsd-(r\d+) \{([^}]*)\}", picture))
    pieces = re.findall(r'<text class="rootsd-(r\d+)"[^>]*>([^<]*)</text>', picture)
    return [
        (looks[style].strip(), normal(unescape(text).replace("\u00a0", " ")))
        for style, text in pieces
    ]
