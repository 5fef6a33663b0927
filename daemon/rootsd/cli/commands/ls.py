"""`rootsd ls`: list projects."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import click

from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.options.listing import (
    ListingWords,
    in_order,
    is_narrowed,
    listing_options,
    query_of,
    show_listing,
)
from rootsd.cli.text.projects import OWNER, PROJECT_COLUMNS, RISK, path_of
from rootsd.cli.text.render import CommandResult
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of
from rootsd.core.project_kind import ProjectKind
from rootsd.core.verdict import Verdict
from rootsd.wire.projects import ProjectListing, RiskReading, Selection

SECTION = "Inspect"


@verb(
    "ls",
    prints=(ProjectListing,),
    epilog=(
        "rootsd ls --published\n"
        "rootsd ls 'acme/*' --kind git --since 2d --sort age\n"
        "rootsd ls --format name,path,tags\n"
        'cd "$(rootsd ls --paths | fzf)"\n'
        "rootsd ls --verdict denied -0 | xargs -0 du -sh"
    ),
)
@click.option(
    "--verdict",
    type=click.Choice([verdict.value for verdict in Verdict]),
    help="only projects with this verdict",
)
@click.option("--published", is_flag=True, help="only projects that clients see now")
@listing_options(Selection.ALL)
@click.option("--paths", is_flag=True, help="only the paths, one per line")
@click.option(
    "-0",
    "nul",
    is_flag=True,
    help="only the paths, each followed by NUL, which is safe for any path",
)
@pass_invocation
def command(
    invocation: Invocation,
    *,
    verdict: str | None,
    published: bool,
    paths: bool,
    nul: bool,
    **words: Unpack[ListingWords],
) -> None:
    """List all projects, or those that match REF and the options.

    In a pipe, the columns are id, name, verdict, kind, path, and note, without a header. With
    --risk or --sort risk, the risks and the owner of the origin follow. Otherwise, ls reads no
    project, so that it stays fast. With --format, the columns are the fields that you name, on a
    terminal, too. This command also works without a daemon.
    """
    if words["fields"] is not None and (paths or nul):
        raise click.UsageError("--format cannot be combined with --paths or -0")
    query = query_of(
        words,
        invocation.cwd,
        Selection.PUBLISHED if published else Selection.ALL,
        verdict=Verdict(verdict) if verdict else None,
    )
    listing = call_or_read_store(invocation, query)
    items, output = in_order(listing["items"], words), invocation.output
    if (paths or nul) and not output.is_json:
        _write_paths(items, nul=nul, for_terminal=output.on_terminal and not nul)
        output.warn(listing["warnings"])
        return
    has_risks = query.risks is not RiskReading.NEVER
    columns = (*PROJECT_COLUMNS, RISK, OWNER) if has_risks else PROJECT_COLUMNS
    show_listing(output, CommandResult.of(listing, items), words, columns)
    if output.on_terminal and not items:
        is_empty = not (verdict or published or is_narrowed(words))
        output.message(
            "No projects yet. Try: rootsd up ~/src" if is_empty else "No project matches."
        )


def _write_paths(items: Sequence[Mapping[str, Any]], *, nul: bool, for_terminal: bool) -> None:
    """Print the paths byte for byte; on a terminal, print safe labels.

    Without NUL, leave out paths with a newline, with a warning.
    """
    for item in items:
        if item["kind"] == ProjectKind.URI:
            continue
        path = path_of(item)
        if for_terminal:
            sys.stdout.write(safe_label(path, limit=None) + "\n")
        elif nul:
            sys.stdout.buffer.write(bytes_of(path) + b"\0")
        elif "\n" in path:
            shown = safe_label(path, limit=None)
            sys.stderr.write(f"warning: left out, because it has a newline (use -0): {shown}\n")
        else:
            sys.stdout.buffer.write(bytes_of(path) + b"\n")
