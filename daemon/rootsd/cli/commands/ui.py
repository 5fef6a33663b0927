"""`rootsd ui`: decide on a live screen of projects, roots, and sessions."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation
from rootsd.cli.options.remote import RemoteVerbCommand
from rootsd.core.errors import CallerRefused, RootsdError

SECTION = "Decide"


@click.command("ui", cls=RemoteVerbCommand, epilog="rootsd ui")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Show pending projects, roots, and sessions on one screen, and decide about them.

    The screen follows the daemon: it shows a decision in another terminal at once, and it stays
    when the daemon restarts. The keys are: / search, space select, a approve, d deny, u undo, w
    why, s sort, o group, D denied projects, r rules, e edit, y copy the path, f focus, + add a
    root to a program behind the wall, R report, ? help, q quit. The mouse does the same.
    """
    if find_spec("textual") is None:
        raise RootsdError("the screen needs the extra ui", _how_to_get_textual())
    flags = invocation.flags
    is_on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if flags.no_input or flags.json or not is_on_terminal or os.environ.get("TERM") == "dumb":
        raise CallerRefused(
            "ui needs a person on a terminal that can draw a screen", "rootsd pending"
        )
    from rootsd.cli.ui.app import RootsdScreen
    from rootsd.link.hidden_process import hide_process

    hide_process()  # without a daemon, this prints its error instead of an empty screen
    if flags.no_color:
        os.environ["NO_COLOR"] = "1"
    if (error := RootsdScreen().run()) is not None:
        raise error


def _how_to_get_textual() -> str:
    """Return the command that installs the extra into the environment of this program."""
    folders = os.path.realpath(sys.prefix).split(os.sep)
    if "pipx" in folders:
        return "pipx inject rootsd textual"
    if "uv" in folders:
        return f"uv pip install --python {sys.executable} textual"
    return f"{sys.executable} -m pip install textual"
