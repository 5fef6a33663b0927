"""The commands whose printed output a file in `tests/cli/golden/` keeps.

The first line of a file is its command, as a person types it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "cli" / "golden"
GOLDEN_FILES = {file.stem: file for file in sorted(GOLDEN.glob("*.txt"))}
_PROMPT = "$ rootsd "


def command_line(words: tuple[str, ...]) -> str:
    """Return the first line of the golden file of a command."""
    return f"{_PROMPT}{shlex.join(words)}\n"


def golden_commands() -> dict[str, tuple[str, ...]]:
    """Return the words of each command, by the name of its file."""
    return {name: _words(file) for name, file in GOLDEN_FILES.items()}


def _words(file: Path) -> tuple[str, ...]:
    with file.open() as lines:
        first = next(lines)
    assert first.startswith(_PROMPT), f"{file} must begin with its command: {_PROMPT}VERB"
    return tuple(shlex.split(first.removeprefix(_PROMPT)))
