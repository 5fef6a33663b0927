"""The options of the wall, which `rootsd confine` and `rootsd run --confine` share.

`wall_options` adds them to a command, and `wall_words` turns the parsed values back into the words
that `rootsd.wall.session.options` parses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_SWITCHES = {
    "--no-network": "give the program no network except its own loopback",
    "--ssh-agent": "let the program use your ssh keys",
    "--gpg": "let the program sign and decrypt with your keys",
    "--gh": "let the program use your token of gh",
    "--docker": "let the program use docker, which opens the whole machine",
    "--worktrees": "let git worktree add make folders NAME-... beside a checkout NAME",
    "--nested": "let the program make its own sandbox; this is weaker",
    "--protect": "also keep tracked files that tools run read-only; git switch leaves them old",
    "--no-protect": "let the program change git hooks and settings that run outside",
    "--static": "use only Landlock, no namespaces; a change of the roots needs a restart",
}
_PATHS = {
    "--read": "also show this path, read-only",
    "--write": "also show this path, writable",
    "--keep": "also show a copy of this path; changes stay in the copy of this program name",
    "--hide": "hide this path, also inside a root",
    "--device": "let the program use this device, such as /dev/kvm",
}
_CHOICES = {
    "--push": (
        ["ask", "allow", "off"],
        "let git use your ssh and, after a question (ask) or without one (allow), your passwords,"
        " for the origins of the roots only",
    ),
    "--on-revoke": (
        ["tell", "kill"],
        "report (tell) or end (kill) programs that still hold a file of a removed root",
    ),
}


def wall_options(command: Command) -> Command:
    """Add the options of the wall to `command`, which gets their values as keyword arguments."""
    # Each decorator puts its option in front of those before it.
    for flag, text in reversed(_SWITCHES.items()):
        command = click.option(flag, is_flag=True, help=text)(command)
    for flag, (choices, text) in reversed(_CHOICES.items()):
        command = click.option(flag, type=click.Choice(choices), help=text)(command)
    for flag, text in reversed(_PATHS.items()):
        command = click.option(flag, multiple=True, metavar="PATH", type=click.Path(), help=text)(
            command
        )
    return command


def wall_words(values: dict[str, Any]) -> Iterator[str]:
    """Yield the words for the `values` of the options. Remove them from `values`."""
    for flag in _SWITCHES:
        if values.pop(_variable(flag)):
            yield flag
    for flag in _PATHS:
        for path in values.pop(_variable(flag)):
            yield from (flag, path)
    for flag in _CHOICES:
        if (choice := values.pop(_variable(flag))) is not None:
            yield from (flag, choice)


def _variable(flag: str) -> str:
    """Return the name under which click passes the value of `flag`."""
    return flag.removeprefix("--").replace("-", "_")
