"""`rootsd check`, if it needs more than an exit status: help, JSON, unusual arguments.

`rootsd.check` answers the common form without click.
"""

from __future__ import annotations

import click

from rootsd.check import absolute_path, status_of
from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.wire.projects import CheckQuery


@click.command(
    "check",
    cls=VerbCommand,
    epilog="rootsd check . && echo inside\nrootsd check --write ~/src/api/main.py",
)
@click.argument("path", shell_complete=completion.files)
@click.option("--write", is_flag=True, help="treat a read-only root as denied")
@pass_invocation
def command(invocation: Invocation, *, path: str, write: bool) -> int:
    """Test whether a path lies in a published root, or a URI is one. The exit status tells.

    \b
    0   it is published
    3   the project is pending or lapsed, or cannot be reached
    4   the project is denied
    5   no project is known there
    69  no daemon answers

    Prints nothing, except with --json.
    """
    whole = absolute_path(path)
    checked = invocation.call(CheckQuery(whole))
    if invocation.output.is_json:
        invocation.output.object(CommandResult([{"path": whole, **checked}]))
    return status_of(checked, write=write)
