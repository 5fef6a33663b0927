"""The options that `rootsd confine`, `rootsd run`, and `rootsd acp` share.

This is for the help and the completion. `rootsd.wall.session.options` and
`rootsd.proxy.run.options` parse the words as typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rootsd.cli.options import completion

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


def only_option(
    words: str, form: str = "NAME|tag:T|focus|cwd", more: str = ""
) -> Callable[[Command], Command]:
    """Return the option that limits the roots. `words` begin its help, and `more` ends it."""
    return click.option(
        "--only",
        multiple=True,
        metavar=form,
        shell_complete=completion.scopes,
        help=f"{words} these roots: by name, by tag, with the tag of the focus, or the one that"
        f" holds the working directory{more}",
    )


def proxy_options(noun: str) -> Callable[[Command], Command]:
    """Return the last options of a proxy in front of an agent or a server."""

    def add(command: Command) -> Command:
        for each in (
            wall_options,
            click.option(
                "--no-confine",
                is_flag=True,
                help=f"do not confine the {noun}, even if config.toml says default = true in"
                " [confine]",
            ),
            click.option(
                "--confine",
                is_flag=True,
                help=f"let the kernel hide all other files from the {noun} (Linux); the options"
                " below need it",
            ),
            name_option(noun),
        ):
            command = each(command)
        return command

    return add


def name_option(noun: str) -> Callable[[Command], Command]:
    """Return the option that names a program."""
    return click.option(
        "--name", metavar="NAME", help=f"the name of this {noun} in rootsd sessions"
    )


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
