"""`rootsd completion`: print the completion script for bash, zsh, or fish.

It also answers the queries of these scripts for candidates.
"""

from __future__ import annotations

from typing import TypedDict

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult
from rootsd.service.shell_scripts import SHELLS, script

SECTION = "For programs"


class CandidateItem(TypedDict):
    """A word that may come next."""

    kind: str
    """`plain`, `dir`, or `file`. For the last two, the shell completes names of files."""
    word: str
    """The word."""
    help: str
    """What it means, or empty."""


class CompletionScriptOutput(TypedDict):
    """Without words."""

    script: str
    """The text of the script."""


class CandidatesOutput(TypedDict):
    """With words: the candidates for the last one."""

    items: list[CandidateItem]
    """The candidates."""


@verb(
    "completion",
    prints=(
        CompletionScriptOutput,
        CandidatesOutput,
    ),
    epilog=(
        'eval "$(rootsd completion bash)"              # in ~/.bashrc\n'
        'eval "$(rootsd completion zsh)"               # in ~/.zshrc, below compinit\n'
        "rootsd completion fish | source               # in ~/.config/fish/config.fish\n"
        "rootsd completion bash -- approve ac          # print the candidates"
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
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
        text = script("completion", shell)
        if output.is_json:
            output.object(CommandResult(extra={"script": text}))
        else:
            output.text(text)
        return
    from rootsd.cli.main import root
    from rootsd.cli.options import completion

    found = completion.complete_words(root, words, Invocation())
    if output.is_json:
        items = [{"kind": kind, "word": word, "help": help_} for kind, word, help_ in found]
        output.object(CommandResult(items))
    else:
        output.rows(found)
