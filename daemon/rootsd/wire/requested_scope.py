"""The scope that a connection asks for, and its words on the command line.

A proxy parses it before it loads anything else: `rootsd.proxy.run.main` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

_TAG, _CWD, _FOCUS = "tag:", "cwd", "focus"


class ResumeState(NamedTuple):
    """The facts about the start of a session that a proxy sends when it connects again.

    `anchor` is the absolute path of the project that contained the working directory, or None.
    `approvals` is the number of the newest approval at that time.
    """

    anchor: str | None = None
    approvals: int = 0


class RequestedScope(NamedTuple):
    """The part of the published set that a connection asks for.

    A root matches if it has one of the `names` or `tags`, if `focus` is true and it has the tag of
    the focus, if it contained the absolute path `cwd` when the session began, or if it is in the
    workspace of the absolute path `workspace`. If none of these five is given, every root matches.

    `any_uri` adds roots without a `file://` URI to `roots/list`. `start` is set to continue a
    session.
    """

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cwd: str | None = None
    any_uri: bool = False
    workspace: str | None = None
    start: ResumeState | None = None
    focus: bool = False

    @property
    def narrows(self) -> bool:
        """Return whether the scope excludes any roots."""
        by_words = bool(self.names or self.tags or self.focus)
        return by_words or self.cwd is not None or self.workspace is not None


def parse_scope(
    words: Iterable[str], working_directory: Callable[[], str], *, any_uri: bool
) -> RequestedScope:
    """Return the scope for `words`, the values of `rootsd bridge --only`.

    Each word is `cwd`, `focus`, `tag:T`, or the name of a root. Raises ValueError, and the errors
    of `working_directory`.
    """
    names, tags, cwd, focus = [], [], None, False
    for word in words:
        tag = word.removeprefix(_TAG)
        if word == _CWD:
            cwd = working_directory()
        elif word == _FOCUS:
            focus = True
        elif not word.startswith(_TAG):
            names.append(word)
        elif tag:
            tags.append(tag)
        else:
            raise ValueError(f"{_TAG} needs the name of a tag")
    return RequestedScope(tuple(names), tuple(tags), cwd, any_uri, focus=focus)
