"""`rootsd open`: print the path of a root, for `cd`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.projects import path_of
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import AmbiguousReference, ErrorCode, RootsdError, UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of
from rootsd.core.project_kind import ProjectKind
from rootsd.core.verdict import Verdict
from rootsd.wire.projects import ProjectListing, ProjectsQuery, Selection

SECTION = "Inspect"


class NotOpen(RootsdError):
    """A project that is no root, or a root that is no folder. Its verdict gives the code."""

    def __init__(self, code: ErrorCode, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.code = code


@verb(
    "open",
    prints=(ProjectListing,),
    epilog='cd "$(rootsd open api)"\ncode "$(rootsd open acme/api)"\nrcd api    # see shell-init',
)
@click.argument("ref", metavar="REF", shell_complete=completion.projects(Selection.PUBLISHED))
@click.option("-0", "nul", is_flag=True, help="end the path with NUL, which is safe for any path")
@pass_invocation
def command(invocation: Invocation, *, ref: str, nul: bool) -> None:
    """Print the path of a root. REF must mean one root only.

    \b
    3   the project is pending or lapsed
    4   the project is denied
    5   no project matches
    6   several match

    In a pipe, the path is exact, byte for byte. The shell function rcd, which
    `rootsd shell-init` prints, changes to the folder.
    """
    query = ProjectsQuery(cwd=invocation.cwd, refs=(ref,), select=Selection.NAMED)
    listing = invocation.call(query)
    root = only_root(ref, listing["items"])
    output = invocation.output
    if output.is_json:
        output.object(CommandResult.of(listing, [root]))
    elif output.on_terminal:
        output.line(safe_label(path_of(root), limit=None))
    else:
        sys.stdout.buffer.write(bytes_of(path_of(root)) + (b"\0" if nul else b"\n"))


def only_root(ref: str, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the only one of `items`, a root. Raises RootsdError if it is none, or not alone.

    A glob may match projects that nobody approved, and then means the roots among them. For any
    other word, the daemon returns one project.
    """
    roots = [item for item in items if item["published"]]
    found = roots or items
    shown = safe_label(ref, limit=None)
    if not found:
        raise UnknownProject(f"no project matches {shown}", "rootsd ls --published")
    if len(found) > 1:
        choices = [completion.word_for(item) for item in found]
        none = "" if roots else ", and none of them is a root"
        what = f"projects{none}" if found is items else "roots"
        message, remedy = f"{shown} matches {len(found)} {what}", f"rootsd ls {shlex.quote(ref)}"
        raise AmbiguousReference(message, remedy, typed=ref, choices=choices)
    [item] = found
    if not roots or item["kind"] == ProjectKind.URI:
        raise _why_not(item)
    return item


def _why_not(item: Mapping[str, Any]) -> NotOpen:
    """Return why the project is not a folder that clients see now."""
    name, id_ = safe_label(item["name"]), item["id"]
    if item["verdict"] == Verdict.DENIED:
        return NotOpen(ErrorCode.DENIED, f"{name} is denied", f"rootsd show {id_}")
    if item["verdict"] == Verdict.PENDING:
        lapsed = item["lapsed"]
        why = f"{name} lapsed: {lapsed}" if lapsed else f"{name} is pending"
        return NotOpen(ErrorCode.PENDING, why, f"rootsd approve {id_}")
    if item["kind"] == ProjectKind.URI:
        return NotOpen(ErrorCode.FAILED, f"{name} is a URI, not a folder", f"rootsd show {id_}")
    where = f": it is {item['presence']}" if item["presence"] != "present" else ""
    message = f"{name} is approved, but not published now{where}"
    return NotOpen(ErrorCode.FAILED, message, f"rootsd show {id_}")
