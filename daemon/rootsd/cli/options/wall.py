"""The options of the wall, which `rootsd confine`, `rootsd run`, and `rootsd acp` share.

This is for the help and the completion. `rootsd.wall.session.options` parses the words as typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_SWITCHES = {
    "--no-network": "give the program no network except its own loopback",
    "--ssh-agent": "let the program use your ssh keys",
    "--gpg": "let the program sign and decrypt with your keys",
    "--gh": "let the program use your token of gh",
    "--docker": "let the program use docker, which opens the whole machine",
    "--worktrees": "let git add and remove worktrees beside a checkout: api-2 beside api",
    "--nested": "let the program make a sandbox of its own; this weakens the wall",
    "--protect": "make tracked files that tools run read-only, too; git switch cannot update them",
    "--no-protect": "let the program change git hooks and settings that run outside",
    "--static": "use only Landlock, no namespaces; a new root needs a restart",
}
_PATHS = {
    "--read": "also show this path, read-only",
    "--write": "also show this path, writable",
    "--keep": "also show a copy of this path, and keep its changes for programs of this name",
    "--hide": "hide this path, also inside a root",
    "--device": "let the program use this device, such as /dev/kvm",
}
_CHOICES = {
    "--push": (
        ["ask", "allow", "off"],
        "for the origins of the roots, let git use your ssh keys, and your passwords after a"
        " question (ask) or without one (allow)",
    ),
    "--on-revoke": (
        ["tell", "kill"],
        "if a program still holds a file of a removed root, say so (tell) or end it (kill)",
    ),
}


def wall_options(command: Command) -> Command:
    """Add the options of the wall to `command`."""
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
