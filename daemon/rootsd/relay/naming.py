"""What to call a server by its command. Pure.

Arguments may hold secrets, so that no more of them is told than the name of the program that a
starter such as npx is given, or of the folder that it lies in where it has none of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

_STARTERS = frozenset(
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
_THEIR_VERBS = frozenset({"dlx", "exec", "run", "tool", "x"})
_ENTRIES = frozenset({"__main__", "cli", "index", "main", "server"})  # with any ending
_MADE = frozenset({"bin", "build", "dist", "lib", "out", "src"})


def name_of(words: Sequence[str]) -> str:
    """The name of the server that `words` start: `run: mcp-server-git`."""
    program = _base(words[0])
    if program in _STARTERS:
        plain = (word for word in words[1:] if not word.startswith("-"))
        named = next((word for word in plain if word not in _THEIR_VERBS), None)
        if named is not None:
            program = named if named.startswith("@") else _base(named)
    return f"run: {program}"


def _base(word: str) -> str:
    """The last part of a path that names anything: `server` of `server/dist/index.js`."""
    *folders, last = word.rstrip("/").split("/")
    stem, has_ending, _ = last.partition(".")
    if has_ending and stem in _ENTRIES:
        last = next((each for each in reversed(folders) if each and each not in _MADE), last)
    return last or word
