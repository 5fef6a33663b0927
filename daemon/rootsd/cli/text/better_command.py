"""The commands that a person probably meant by a command that failed, to be copied."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from glob import escape, glob
from itertools import takewhile

from rootsd.core.errors import ErrorCode, RootsdError

_MAX_COMMANDS = 8
_OF_NAMES = (ErrorCode.USAGE, ErrorCode.NOTHING_MATCHED, ErrorCode.FAILED)


def better_commands(words: Sequence[str], error: RootsdError) -> list[str]:
    """Return the commands to type after `rootsd WORDS` failed: one for each choice of the error.

    If there are too many, or the word is not in the command, the remedy of the error follows.
    """
    number = _place_of(error.typed, words)
    if not error.choices or number is None:
        return [error.remedy] if error.remedy else []
    before = [shlex.quote(word) for word in words[:number]]
    after = [shlex.quote(word) for word in words[number + 1 :]]
    start, _, _ = words[number].rpartition(error.typed)  # `--kind=` of `--kind=gti`
    commands = [
        " ".join(("rootsd", *before, start + _quoted(choice), *after))
        for choice in error.choices[:_MAX_COMMANDS]
    ]
    is_more = len(error.choices) > _MAX_COMMANDS
    return [*commands, error.remedy] if is_more and error.remedy else commands


def about_glob(words: Sequence[str], error: RootsdError) -> RootsdError:
    """Return an error that tells to quote a glob, if the shell replaced one in `words`.

    It did if the last ones are all the files that share their beginning and their end. Otherwise,
    return `error` itself.
    """
    names = [word for word in words if not word.startswith("-")]
    # Of 20,000 words that are no files, none takes a read of the folder. One file alone is not
    # looked at, because it may be on a disk that does not answer.
    before = reversed(names[:-1]) if error.code in _OF_NAMES else ()
    files = [*takewhile(os.path.lexists, before)]
    for first in range(len(names) - 1 - len(files), len(names) - 1):
        found = names[first:]
        start = _common_start(found)
        end = _common_start([name[len(start) :][::-1] for name in found])[::-1]
        if sorted(glob(f"{escape(start)}*{escape(end)}")) == sorted(found):
            pattern = f"{start}*{end}"
            others = [word for word in words if word not in found]
            message = f"{error.message}. Your shell replaced {pattern} by file names; quote it"
            about = RootsdError(message, shlex.join(["rootsd", *others, pattern]))
            about.code = error.code
            return about
    return error


def _common_start(names: Sequence[str]) -> str:
    """Return the letters with which all names start."""
    return os.path.commonprefix(names)  # noqa: RUF071 - a glob compares letters, too


def _place_of(typed: str, words: Sequence[str]) -> int | None:
    """Return the number of the word that is `typed`, or an option with that value."""
    fits = (n for n, word in enumerate(words) if word == typed or word.endswith(f"={typed}"))
    return next(fits, None) if typed else None


def _quoted(choice: str) -> str:
    """Return a choice for a shell. One of several words is a verb with its subcommand."""
    return choice if choice.replace(" ", "").isalpha() else shlex.quote(choice)
