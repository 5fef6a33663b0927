"""Find the program in a command that a launcher starts, such as npx. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_LAUNCHERS = frozenset(
    {
        "bun",
        "bunx",
        "deno",
        "node",
        "npx",
        "pipx",
        "pnpm",
        "python",
        "python3",
        "uv",
        "uvx",
        "yarn",
    }
)
_LAUNCHER_VERBS = frozenset({"dlx", "exec", "run", "tool", "x"})


def launched_word(words: Sequence[str]) -> int:
    """Return the number of the word that names the program: 0, unless a launcher starts it."""
    if words[0].rpartition("/")[2] not in _LAUNCHERS:
        return 0
    plain = (number for number, word in enumerate(words) if number and not word.startswith("-"))
    return next((number for number in plain if words[number] not in _LAUNCHER_VERBS), 0)


def launched_program(words: Sequence[str]) -> str:
    """Return the name of that program, without the version that a launcher may be told."""
    name = words[launched_word(words)].rpartition("/")[2]
    return name.partition("@")[0] or name
