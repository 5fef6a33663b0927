"""`rootsd tag`: add tags to projects, or remove them."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

import click

from rootsd.cli.answers.decisions import OrderOutput, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, confirm_and_send
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb, yes_option
from rootsd.cli.text.projects import PROJECT_COLUMNS
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.errors import Exit
from rootsd.wire.decisions import TagRequest
from rootsd.wire.projects import ProjectListing, ProjectsQuery

SECTION = "Decide"

_COLUMNS = (
    Column("TAG", lambda item: item["tag"]),
    Column("PROJECTS", lambda item: str(item["projects"])),
)


class TagItem(TypedDict):
    """A tag."""

    tag: str
    """The word."""
    projects: int
    """The number of projects that have it."""


class TagsOutput(TypedDict):
    """Without arguments: all tags."""

    items: list[TagItem]
    """The tags, sorted."""


@verb(
    "tag",
    prints=(
        TagsOutput,
        ProjectListing,
        OrderOutput,
    ),
    epilog=(
        "rootsd tag acme/api work go\n"
        "rootsd tag 'acme/*' work\n"
        "rootsd tag acme/api --rm go\n"
        "rootsd tag\n"
        "rootsd ls --tag work"
    ),
)
@click.argument("ref", metavar="[REF]", required=False, shell_complete=completion.projects())
@click.argument("tags", metavar="[TAG]...", nargs=-1, shell_complete=completion.tags)
@click.option(
    "--rm",
    "off",
    multiple=True,
    metavar="TAG",
    help="remove this tag; may be repeated",
    shell_complete=completion.tags,
)
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what would be tagged")
@pass_invocation
def command(
    invocation: Invocation,
    *,
    ref: str | None,
    tags: tuple[str, ...],
    off: tuple[str, ...],
    yes: bool,
    dry_run: bool,
) -> int:
    """Add tags to projects, or remove them. Without arguments, list all tags.

    Tags are published with the root. bridge and run accept --only tag:TAG, and focus limits
    sessions to a tag. With REF alone, show the projects with their tags.

    A session also gets the roots that share a tag with its project, so a tag can open folders. If
    REF is a glob for more than one project, tag lists them and asks for a key.
    Without a terminal, it needs --yes.
    """
    if ref is None:
        _list(invocation)
    elif tags or off:
        order = TagRequest((ref,), invocation.cwd, tags, off, effect_of(dry_run=dry_run))
        return confirm_and_send(TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)), order)
    else:
        listing = invocation.call(ProjectsQuery(invocation.cwd, refs=(ref,)))
        invocation.output.show(CommandResult.of(listing), PROJECT_COLUMNS)
    return Exit.OK


def _list(invocation: Invocation) -> None:
    listing = invocation.call(ProjectsQuery(invocation.cwd))
    counts = Counter(tag for item in listing["items"] for tag in item["tags"])
    items = [{"tag": tag, "projects": counts[tag]} for tag in sorted(counts)]
    output = invocation.output
    output.show(CommandResult.of(listing, items), _COLUMNS)
    if output.on_terminal and not items:
        output.message("No tags yet. Try: rootsd tag REF TAG")
