"""Refuse options that open the wall where the machine's policy requires it."""

from __future__ import annotations

from collections.abc import Iterator

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.wall import PushPolicy
from rootsd.wall.session.options import ConfineOptions, Opening

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
    lists = {
        "--read": options.read, "--write": options.write, "--keep": options.keep,
        "--device": options.device,
    }  # fmt: skip
    yield from (word for word, paths in lists.items() if paths)
