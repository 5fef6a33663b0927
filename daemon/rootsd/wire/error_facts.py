"""An error as the daemon sends it and as a command prints it.

It is apart from `rootsd.wire.guard`, because every command loads it, even `rootsd --help`.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ErrorFacts(TypedDict):
    """What a program can act on in an error."""

    code: str
    """A value of `ErrorCode`, or `bug`."""
    remedy: str | None
    """The next command to type, or null."""
    typed: NotRequired[str]
    """The word of the command that was not understood."""
    choices: NotRequired[list[str]]
    """What that word may mean."""
