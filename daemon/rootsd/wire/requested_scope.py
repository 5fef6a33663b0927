"""The scope that a connection asks for, and its words on the command line.

A proxy parses it before it loads anything else: `rootsd.proxy.run.main` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rootsd.core.quick_tuple import NamedTuple

_TAG, _CWD, _FOCUS = "tag:", "cwd", "focus"


class RequestedScope(NamedTuple):
    """The part of the published set that a connection asks for.

    A root matches if any of `names`, `tags`, `cwd`, `workspace`, and `focus` matches. If none of
    these five is given, every root matches.
    """

    names: tuple[str, ...] = ()
    """The names of roots."""
    tags: tuple[str, ...] = ()
    """The tags of roots."""
    cwd: str | None = None
    """An absolute path: the root that contained it when the session began."""
    any_uri: bool = False
    """Whether to list roots that are not folders, too."""
    workspace: str | None = None
    """An absolute path: the workspace of a session that begins there."""
    focus: bool = False
    """Whether to list the roots with the tag of the focus."""

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
