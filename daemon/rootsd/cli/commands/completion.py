"""`rootsd completion`: the scripts for shells, and the candidates that they ask for."""

from __future__ import annotations

from pathlib import Path

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult

# The names under which the shells look for them; the files of the checkout are what is shipped.
SCRIPTS = {"bash": "rootsd.bash", "zsh": "_rootsd", "fish": "rootsd.fish"}


@click.command(
    "completion",
    cls=VerbCommand,
    epilog=(
        'eval "$(rootsd completion bash)"              # in ~/.bashrc\n'
        'eval "$(rootsd completion zsh)"               # in ~/.zshrc, below compinit\n'
        "rootsd completion fish | source               # in ~/.config/fish/config.fish\n"
        "rootsd completion bash -- approve ac          # what could be meant"
    ),
)
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- WORD...]")
@pass_invocation
def command(invocation: Invocation, *, shell: str, words: tuple[str, ...]) -> None:
    """Print what has a shell complete verbs, flags and projects.

    With words, print what could stand for the last of them: kind (plain, dir, file), word,
    explanation. That is what the scripts ask; projects come from the daemon, and where none runs
    there are none.
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
    """The script for that shell."""
    from rootsd.service.unit_files import templates_folder

    return Path(templates_folder(), "completions", SCRIPTS[shell]).read_text(encoding="utf-8")
