"""Refuse options that open the wall where the machine's policy requires it."""

from __future__ import annotations

from collections.abc import Iterator

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.wall import PushPolicy
from rootsd.wall.session.options import LISTS, ConfineOptions, Opening

# Options that narrow, name, or show something are not among them. `--static` is another way to
# confine a program.
_OPENING_FLAGS = (
    Opening.SSH_AGENT,
    Opening.GPG,
    Opening.GH,
    Opening.DOCKER,
    Opening.WORKTREES,
    Opening.NESTED,
    Opening.NO_PROTECT,
)
_OPENING_LISTS = ("--read", "--write", "--keep", "--device")


class RefusedByPolicy(RootsdError):
    """An option that the machine's policy refuses."""

    code = ErrorCode.REFUSED


def refuse_opening(options: ConfineOptions, requirement: str) -> None:
    """Raise RefusedByPolicy if an option opens the wall. `requirement` names the policy."""
    if words := ", ".join(_opening_words(options)):
        raise RefusedByPolicy(
            f"{requirement}, so these options are refused: {words}", "rootsd status"
        )


def _opening_words(options: ConfineOptions) -> Iterator[str]:
    yield from (flag.value for flag in _OPENING_FLAGS if flag in options.flags)
    if options.push is PushPolicy.ALLOW:
        yield "--push allow"
    yield from (word for word in _OPENING_LISTS if getattr(options, LISTS[word]))
