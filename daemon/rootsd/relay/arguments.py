"""The roots in a server's command line and environment: `{roots}`, `{root}`, `{root:NAME}`. Pure.

This is how servers that do not read roots are told of them: as their own configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rootsd.relay.roots import Folder

_PLACE = re.compile(r"\{roots\}|\{root\}|\{root:([^{}]+)\}")
_ALL = "{roots}"
_BETWEEN_PATHS = ":"  # as in PATH, on every system that this runs on


class Launch(NamedTuple):
    """What to start: the words of the command, and what to add to the environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class Command:
    """A command whose words and variables may name roots.

    A word with `{roots}` becomes one word for each root (`--allow={roots}`: `--allow=/a
    --allow=/b`), a variable the paths with `:` between them. `{root}` is the first root, which is
    the one that holds the working directory where one does. Where there is no such root, the path
    is that of `nowhere`, an empty folder: a server that is given no folder at all may take
    everything.
    """

    def __init__(
        self, words: Sequence[str], environment: Iterable[tuple[str, str]], nowhere: str
    ) -> None:
        self._words = tuple(words)
        self._environment = tuple(environment)
        self._nowhere = nowhere
        values = [value for _, value in self._environment]
        self.names_roots = any(_PLACE.search(text) for text in (*self._words, *values))
        """Whether the command is another one when the roots are others."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words as the user typed them."""
        return self._words

    def launch(self, folders: Sequence[Folder]) -> Launch:
        """The command for these roots."""
        paths = [folder.text for folder in folders] or [self._nowhere]
        known = {folder.name: folder.text for folder in folders}
        return Launch(
            tuple(word for typed in self._words for word in self._repeated(typed, paths, known)),
            {
                name: self._filled(value, _BETWEEN_PATHS.join(paths), paths[0], known)
                for name, value in self._environment
            },
        )

    def _repeated(self, word: str, paths: list[str], known: Mapping[str, str]) -> Iterator[str]:
        """A word once for each root, where it names all."""
        for path in paths if _ALL in word else paths[:1]:
            yield self._filled(word, path, paths[0], known)

    def _filled(self, text: str, every: str, first: str, known: Mapping[str, str]) -> str:
        def path_for(place: re.Match[str]) -> str:
            if place[1] is not None:
                return known.get(place[1], self._nowhere)
            return every if place[0] == _ALL else first

        return _PLACE.sub(path_for, text)
