"""What to call a server by its command. Pure.

Arguments may hold secrets, so that no more of them is told than the name of the program that a
starter such as npx is given.
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
    return word.rstrip("/").rpartition("/")[2] or word
