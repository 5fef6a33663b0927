"""Run the git of the system, which is never one from a root, and which no program can change.

`settings_in` reads what `git config` prints.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rootsd.core.paths import text_of
from rootsd.wall.outside_program import ProgramOutput

_PROGRAMS = b"""
    /usr/local/bin/git /usr/bin/git /bin/git
    /run/current-system/sw/bin/git /nix/var/nix/profiles/default/bin/git
""".split()
_TIMEOUT_S = 1.0
_MAX_BYTES = 4 << 20


def find_git() -> bytes | None:
    """Return the path of git, or None."""
    return next((each for each in _PROGRAMS if os.access(each, os.X_OK)), None)


def ask_git(
    words: Sequence[str | bytes],
    variables: Mapping[str, str],
    text: bytes = b"",
    timeout_s: float | None = None,
) -> bytes | None:
    """Return what git prints, with a text as its input and no other variables than these.

    Return None if there is no git, if it fails, prints too much, or takes too long.
    """
    program = find_git()
    if program is None:
        return None
    command = (program, b"--no-pager", *map(os.fsencode, words))
    environment = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    end = time.monotonic() + (_TIMEOUT_S if timeout_s is None else timeout_s)
    try:
        git = ProgramOutput(command, environment, _MAX_BYTES, text)
    except OSError:
        return None
    output = git.read(end)
    return output if git.status == 0 else None


class GitSetting(NamedTuple):
    """A setting, and if git was asked for them, the file that has it and where it counts."""

    file: bytes
    key: str
    value: bytes
    scope: bytes = b""


def settings_in(printed: bytes, fields: int = 1) -> Iterator[GitSetting]:
    """Yield the settings that `git config -z` has printed. One without a value has `true`.

    Each has this number of fields: `--show-origin` adds one, and `--show-scope` another one.
    """
    words = printed.split(b"\0")
    for at in range(fields - 1, len(words) - 1, fields):
        key, has_value, value = words[at].partition(b"\n")
        file, scope = (*words[at - fields + 1 : at][::-1], b"", b"")[:2]
        where = file.removeprefix(b"file:")
        yield GitSetting(where, text_of(key), value if has_value else b"true", scope)
