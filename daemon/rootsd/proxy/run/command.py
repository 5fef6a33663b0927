"""Fill the roots into a server's command line and environment, and name the server. Pure.

The roots in a server's command line and environment. Pure.

Servers that do not read roots are told of them by their own configuration. The places:

    {roots}         all roots: the word is repeated for each; a variable has them joined by `:`
    {roots:SEP}     all roots, joined by SEP: one to three punctuation characters, such as `,`
    {roots:--flag}  all roots, each behind its own flag: `--flag A --flag B` (a whole word of the
                    command); `{roots:--flag=}` gives `--flag=A --flag=B`
    {root}          the first root, which is the one with the working directory if there is one
    {root:NAME}     the root NAME

A root is left out of a joined value if its path contains the separator: the server would read two
folders, and one of them may be any folder.

What to call a server by its command. Pure.

Arguments may hold secrets, so that no more of them is told than the name of the program that a
starter such as npx is given, or of the folder that it lies in where it has none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rootsd.proxy.run.roots import RootFolder

_PLACE = re.compile(r"\{roots(?::(?P<how>[^{}]*))?\}|\{root(?::(?P<name>[^{}]+))?\}")
_ALL = "{roots}"
_BETWEEN_PATHS = ":"  # as in PATH, on every system that this runs on
_SEPARATOR = re.compile(r"[!\"#$%&'()*+,.:;<=>?@\[\\\]^_`|~ ]{1,3}")
_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*=?")


class PlaceholderError(ValueError):
    """A place for roots cannot be used; the message says why."""


class LaunchSpec(NamedTuple):
    """What to start: the words of the command, and what to add to the environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    left_out: tuple[tuple[str, str], ...] = ()
    """The paths that are in no joined value, each with the separator that it contains."""


class _Roots(NamedTuple):
    """What the places stand for; `empty_folder` is a path for a root that there is not."""

    paths: tuple[str, ...]
    known: Mapping[str, str]
    empty_folder: str
    left_out: dict[tuple[str, str], None]

    def joined(self, separator: str) -> str:
        """Return all paths, without those that a reader would split."""
        kept = [path for path in self.paths if _is_whole(path, separator)]
        self.left_out.update(((path, separator), None) for path in self.paths if path not in kept)
        return separator.join(kept or [self.empty_folder])

    def fill(self, text: str, every: str | None) -> str:
        """Return the text with paths in its places. `every` is what `{roots}` stands for; without
        it, all paths joined."""

        def path_for(place: re.Match[str]) -> str:
            if not place[0].startswith("{roots"):
                name = place["name"]
                return self.paths[0] if name is None else self.known.get(name, self.empty_folder)
            if place["how"] is None and every is not None:
                return every
            return self.joined(place["how"] or _BETWEEN_PATHS)

        return _PLACE.sub(path_for, text)


class ServerCommand:
    """A command answered_by words and variables may name roots.

    If there is no such root, the path is that of `empty_folder`, an empty folder: a server that is
    given no folder at all may take everything. Raises PlaceError.
    """

    def __init__(
        self, words: Sequence[str], environment: Iterable[tuple[str, str]], empty_folder: str
    ) -> None:
        self._words = tuple(words)
        self._environment = tuple(environment)
        self._empty_folder = empty_folder
        for word in self._words:
            _check(word, may_be_flag=_flag_of(word) is not None)
        for _, value in self._environment:
            _check(value, may_be_flag=False)
        values = [value for _, value in self._environment]
        self.names_roots = any(_PLACE.search(text) for text in (*self._words, *values))
        """Whether the command is another one when the roots are others."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words as the user typed them."""
        return self._words

    def launch(self, folders: Sequence[RootFolder]) -> LaunchSpec:
        """Return the command for these roots."""
        paths = tuple(folder.text for folder in folders) or (self._empty_folder,)
        known = {folder.name: folder.text for folder in folders}
        roots = _Roots(paths, known, self._empty_folder, {})
        words = tuple(word for typed in self._words for word in _expanded(typed, roots))
        environment = {name: roots.fill(value, None) for name, value in self._environment}
        return LaunchSpec(words, environment, tuple(roots.left_out))


def _expanded(word: str, roots: _Roots) -> Iterator[str]:
    """Yield the words that a typed word stands for."""
    flag = _flag_of(word)
    for path in roots.paths if flag is not None or _ALL in word else roots.paths[:1]:
        if flag is None:
            yield roots.fill(word, path)
        elif flag.endswith("="):
            yield flag + path
        else:
            yield flag
            yield path


def _flag_of(word: str) -> str | None:
    """Return the flag of a word that is `{roots:--flag}`; None for all other words."""
    place = _PLACE.fullmatch(word)
    how = place["how"] if place else None
    return how if how is not None and _FLAG.fullmatch(how) else None


def _check(text: str, *, may_be_flag: bool) -> None:
    for place in _PLACE.finditer(text):
        how = place["how"]
        if how is None or may_be_flag or _SEPARATOR.fullmatch(how):
            continue
        if _FLAG.fullmatch(how):
            raise PlaceholderError(f"{place[0]!a} has to be a whole argument of the server")
        raise PlaceholderError(
            f"{place[0]!a}: after the colon comes a separator such as , or a flag such as --allow"
        )


def _is_whole(path: str, separator: str) -> bool:
    """Whether a reader that splits at `separator` finds the path in one piece, from either end."""
    return (path + separator).find(separator) == len(path) and not (separator + path).rfind(
        separator
    )


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


def server_name(words: Sequence[str]) -> str:
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
