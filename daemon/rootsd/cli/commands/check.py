"""`rootsd check`: test whether a path is published, by the exit status.

`rootsd.check` gives a bare exit status. This module has the help, JSON, and unusual arguments.

`rootsd.check` answers the common form without click.
"""

from __future__ import annotations

from typing import Any, TypedDict

import click

from rootsd.check import absolute_path, check_in_sandbox, possible_name, status_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult
from rootsd.link.connect import ControlSocketHidden
from rootsd.wire.projects import CheckQuery, PathCheckResult

SECTION = "Inspect"


class CheckedPathItem(PathCheckResult):
    """The status of a path."""

    path: str
    """The path, made absolute, or the URI. For a REF, that of its project."""


class CheckOutput(TypedDict):
    """The status of the path."""

    items: list[CheckedPathItem]
    """The one path."""


@verb(
    "check",
    prints=(CheckOutput,),
    epilog="rootsd check . && echo inside\nrootsd check --write ~/src/api/main.py",
)
@click.argument("path", metavar="PATH|REF", shell_complete=completion.projects_or_files)
@click.option("--write", is_flag=True, help="treat a read-only root as denied")
@pass_invocation
def command(invocation: Invocation, *, path: str, write: bool) -> int:
    """Test whether a path is in a published root, or a URI is one, by the exit status.

    \b
    0   it is published
    3   the project is pending or lapsed, or cannot be reached
    4   the project is denied
    5   no project is known there
    6   the name or glob means several projects
    69  no daemon answers

    If there is no such path, the word is a name, an id, or a glob that matches one project.

    Behind the wall and in sandboxes that hide the control socket, the answer is only whether the
    path is in a published root that is shown there (0) or not (5), and only names are known.
    Prints nothing, except with --json.
    """
    whole, name = absolute_path(path), possible_name(path)
    checked: dict[str, Any]
    try:
        checked = dict(invocation.call(CheckQuery(whole, name=name)))
    except ControlSocketHidden:
        checked = check_in_sandbox(whole, name)
    item = {"path": checked.get("named_path", whole), **checked}
    if invocation.output.is_json:
        invocation.output.object(CommandResult([item]))
    return status_of(checked, write=write)
