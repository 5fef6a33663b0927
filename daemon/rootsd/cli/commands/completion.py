"""`rootsd completion`: print the completion script for bash, zsh, or fish.

It also answers the queries of these scripts for candidates.
"""

from __future__ import annotations

from pathlib import Path

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult

SECTION = "For programs"

# The shells search for these file names; the files of the checkout are shipped unchanged.
SCRIPTS = {"bash": "rootsd.bash", "zsh": "_rootsd", "fish": "rootsd.fish"}


@click.command(
    "completion",
    cls=VerbCommand,
    epilog=(
        'eval "$(rootsd completion bash)"              # in ~/.bashrc\n'
        'eval "$(rootsd completion zsh)"               # in ~/.zshrc, below compinit\n'
        "rootsd completion fish | source               # in ~/.config/fish/config.fish\n"
        "rootsd completion bash -- approve ac          # print the candidates"
    ),
)
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- WORD...]")
@pass_invocation
def command(invocation: Invocation, *, shell: str, words: tuple[str, ...]) -> None:
    """Print the script that completes verbs, flags, and projects in a shell.

    With words, print the candidates for the last word: kind (plain, dir, file), word, and
    explanation. The scripts use this form. Projects come from the daemon; without a daemon, there
    are no projects to complete.
    """
    output = invocation.output
    if not words:
        script = completion_script(shell)
        if output.is_json:
            output.object(CommandResult(extra={"script": script}))
        else:
            output.text(script)
        return
    from rootsd.cli import completion
    from rootsd.cli.main import root

    found = completion.complete_words(root, words, Invocation())
    if output.is_json:
        items = [{"kind": kind, "word": word, "help": help_} for kind, word, help_ in found]
        output.object(CommandResult(items))
    else:
        output.rows(found)


def completion_script(shell: str) -> str:
    """Return the completion script for `shell`."""
    from rootsd.service.unit_files import templates_folder

    return Path(templates_folder(), "completions", SCRIPTS[shell]).read_text(encoding="utf-8")
