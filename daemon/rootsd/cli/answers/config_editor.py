"""Have a person edit config.toml in their editor, until it is valid or they give up."""

from __future__ import annotations

import os
import sys

import click

from rootsd.cli.answers import config_edit
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.terminal import drop_earlier_input
from rootsd.config.configuration import parse_config
from rootsd.core.errors import BadConfig, RootsdError
from rootsd.core.labels import safe_label

_REJECTED = b".rejected"


def edit_by_hand(invocation: Invocation) -> bool:
    """Have a person edit the file, and return whether they changed it.

    Raises BadConfig for an invalid text, after saving it aside, and RootsdError if there is no
    terminal for an editor.
    """
    file = invocation.config_to_edit
    if invocation.flags.no_input or not (_has_terminal() or _editor()):
        shown = safe_label(file, limit=None)
        raise RootsdError(
            "there is no terminal for an editor", f"edit {shown}, then rootsd config check"
        )
    old = text = config_edit.read_text(file)
    while True:
        edited = click.edit(text, extension=".toml")
        if edited is None or edited == old:
            return False
        text = edited
        try:
            parse_config(text, file)
        except BadConfig as error:
            if _again(invocation, error):
                continue
            kept = safe_label(config_edit.save_aside(file, _REJECTED, text), limit=None)
            message = f"{error.message}\nyour text is in {kept}"
            raise BadConfig(message, "rootsd config edit") from error
        config_edit.replace_text(file, old, text)
        return True


def _again(invocation: Invocation, error: BadConfig) -> bool:
    """Print the error, and return whether the person wants to edit again."""
    if not _has_terminal():
        return False
    invocation.output.error(error, ())
    drop_earlier_input()
    return click.confirm("Edit again?", default=True, err=True)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
