"""The words that `connect --wrap` puts before the command of a server, and what they mean. Pure.

They are `rootsd run MODE OPTION... --`. The mode is always there, so that a later change of
config.toml changes no server. From the words alone, a later run knows how a server is wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Self

from msgspec import Struct

from rootsd.connect.servers import RUN, is_wrapped

_END = "--"
EVERY_ROOT = ("--all", "--client-roots", "auto", "--keep-cwd")
"""The options for a server whose entry names a working directory, which is its own folder."""


class WrapMode(StrEnum):
    """Whether a server is wrapped with the wall: the flag of `rootsd run`."""

    CONFINED = "--confine"
    OPEN = "--no-confine"


class PathUse(StrEnum):
    """How a server behind the wall gets a path: the option of `rootsd run`."""

    READ = "--read"
    WRITE = "--write"
    KEEP = "--keep"


class ShownPath(Struct, frozen=True):
    """A path that a server behind the wall gets besides the roots."""

    use: PathUse
    path: str


class ServerWrap(Struct, frozen=True):
    """How one server is wrapped.

    * `shown`: the paths that it gets besides the roots, behind the wall only.
    * `scope`: the options that select its roots, none for the workspace of the session.
    * `program`: the words of its command line, if one string in the entry has all of them.
    """

    mode: WrapMode = WrapMode.CONFINED
    shown: tuple[ShownPath, ...] = ()
    scope: tuple[str, ...] = ()
    program: tuple[str, ...] = ()

    def front(self, rootsd: str) -> tuple[str, ...]:
        """Return the words to put before the command of the server."""
        shown = [word for each in self.shown for word in (each.use.value, each.path)]
        return (rootsd, RUN, self.mode.value, *self.scope, *shown, _END)

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self | None:
        """Return how a command is wrapped; None if it is not, or not by exactly our words."""
        if not is_wrapped(words) or len(words) < 4 or words[2] not in tuple(WrapMode):  # noqa: PLR2004
            return None
        rest = list(words[3:])
        scope = EVERY_ROOT if tuple(rest[: len(EVERY_ROOT)]) == EVERY_ROOT else ()
        rest = rest[len(scope) :]
        shown: list[ShownPath] = []
        while len(rest) > 1 and rest[0] in tuple(PathUse):
            shown.append(ShownPath(PathUse(rest.pop(0)), rest.pop(0)))
        mode = WrapMode(words[2])
        if len(rest) < 2 or rest[0] != _END or (shown and mode is WrapMode.OPEN):  # noqa: PLR2004
            return None
        return cls(mode, tuple(shown), scope)
