"""`rootsd pending`: list the projects that need your decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import click
from msgspec.structs import replace

from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation
from rootsd.cli.options.listing import (
    ListingWords,
    in_order,
    is_narrowed,
    listing_options,
    query_of,
    show_listing,
)
from rootsd.cli.options.remote import RemoteVerbCommand
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.projects import (
    ID,
    NAME,
    NOTE,
    PATH,
    PENDING_COLUMNS,
)
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import Exit
from rootsd.wire.projects import ProjectListing, RiskReading, Selection

SECTION = "Decide"

_NOTHING = "No project needs a decision."
_UNPUBLISHABLE_COLUMNS = tuple(replace(column, title="") for column in (ID, NAME, PATH, NOTE))


class PendingCountOutput(TypedDict):
    """With `--count`."""

    count: int
    """The number of pending projects."""


@click.command(
    "pending",
    cls=RemoteVerbCommand,
    prints=(
        ProjectListing,
        PendingCountOutput,
    ),
    epilog=(
        "rootsd pending\n"
        "rootsd pending --since 2d --sort age\n"
        "rootsd pending 'acme/*' --risk none\n"
        "rootsd pending --format name,risk,request\n"
        "rootsd pending --count\n"
        "rootsd pending --exit-code && echo none"
    ),
)
@listing_options(Selection.PENDING)
@click.option(
    "--count", is_flag=True, help="print only the number; fast enough for a shell prompt"
)
@click.option("--exit-code", is_flag=True, help="exit with status 3 if a project is pending")
@pass_invocation
def command(
    invocation: Invocation, *, count: bool, exit_code: bool, **words: Unpack[ListingWords]
) -> int:
    """List the projects that need your decision, or those that match REF and the options.

    No client gets a pending project. RISK says what agents or git would run in a project, and
    which files look like secrets, in the project and its folders. A question mark says that rootsd
    has not seen everything. To see more, use show. Incomplete projects are listed below the
    others: you can approve one by its name.

    In a pipe, the columns are id, name, kind, path, time of discovery, owner of the origin, risk,
    and note, without a header. --format chooses other columns. Without a daemon, this command
    lists the projects without their risks.
    """
    risks = RiskReading.NEVER if count else RiskReading.QUICK
    query = query_of(words, invocation.cwd, Selection.PENDING, risks=risks)
    listing = call_or_read_store(invocation, query)
    items, output = in_order(listing["items"], words), invocation.output
    # Both are missing without a daemon.
    unpublishable, incomplete = listing.get("unpublishable", []), listing.get("incomplete", [])
    answer = CommandResult.of(listing, items, unpublishable=unpublishable, incomplete=incomplete)
    if not count:
        show_listing(output, answer, words, PENDING_COLUMNS)
    elif output.is_json:
        output.object(CommandResult.of(listing, (), count=len(items)))
    else:
        output.line(str(len(items)))
        output.warn(listing["warnings"])
    if incomplete and not count and not output.on_terminal:
        output.message(_about_incomplete(incomplete))
    if output.on_terminal and not count:
        nothing = "No project matches." if is_narrowed(words) else _NOTHING
        output.message(_what_to_do(items) if items else nothing)
        if incomplete:
            output.message(_about_incomplete(incomplete))
            output.show(CommandResult(incomplete), _UNPUBLISHABLE_COLUMNS)
        if unpublishable:
            output.message(f"{pluralize(len(unpublishable), 'project')} can never be published:")
            output.show(CommandResult(unpublishable), _UNPUBLISHABLE_COLUMNS)
    return Exit.PENDING if exit_code and items else Exit.OK


def _about_incomplete(items: Sequence[Mapping[str, Any]]) -> str:
    are = "project is" if len(items) == 1 else "projects are"
    how = f"rootsd approve {completion.word_for(items[0])} --incomplete"
    about = f"{len(items)} {are} incomplete, and no rule approves that"
    return f"{about}. To approve one anyway: {how}"


def _what_to_do(items: Sequence[Mapping[str, Any]]) -> str:
    need = "1 needs a decision" if len(items) == 1 else f"{len(items)} need a decision"
    ref = completion.word_for(items[0])
    return f"{need}.  rootsd approve {ref}   |   rootsd deny {ref}"
