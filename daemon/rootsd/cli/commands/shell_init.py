"""`rootsd shell-init`: print shell functions for bash, zsh, or fish."""

from __future__ import annotations

from typing import TypedDict

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult
from rootsd.service.shell_scripts import SHELLS, agents_line, script

SECTION = "For programs"


class ShellInitOutput(TypedDict):
    """The script."""

    script: str
    """Its text."""


@verb(
    "shell-init",
    prints=(ShellInitOutput,),
    epilog=(
        'eval "$(rootsd shell-init bash)"              # in ~/.bashrc\n'
        'eval "$(rootsd shell-init zsh)"               # in ~/.zshrc, below compinit\n'
        "rootsd shell-init fish | source               # in ~/.config/fish/config.fish"
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@pass_invocation
def command(invocation: Invocation, *, shell: str) -> None:
    """Print the function rcd, the variable ROOTSD_PROMPT, and a function for each agent.

    `rcd NAME` changes to the folder of a root, and completes names. `rcd` alone lets you pick a
    root, with fzf if it is installed. ROOTSD_PROMPT has the number of pending projects and the
    focus. Use it in your prompt; docs/guide/shell.md has examples.

    The agents of `rootsd connect --confine` start behind the wall when you type their names.
    `AGENT --outside` starts one outside, after a question if there are unreviewed changes.
    """
    text = script("shell-init", shell) + agents_line(shell)
    if invocation.output.is_json:
        invocation.output.object(CommandResult(extra={"script": text}))
    else:
        invocation.output.text(text)
