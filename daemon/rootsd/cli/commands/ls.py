"""`rootsd ls`: list projects."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import PROJECT_COLUMNS, path_of
from rootsd.cli.invocation import Invocation, call_or_read_store
from rootsd.cli.render import CommandResult
from rootsd.core.labels import safe_label
from rootsd.core.model import ProjectKind, Verdict
from rootsd.core.paths import bytes_of
from rootsd.wire.projects import ProjectsQuery, Selection

SECTION = "Inspect"


@click.command(
    "ls",
    cls=VerbCommand,
    epilog=(
        "rootsd ls --published\n"
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
@click.option(
    "--tag", metavar="TAG", shell_complete=completion.tags, help="only projects with this tag"
)
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
    tag: str | None,
    paths: bool,
    nul: bool,
) -> None:
    """List all projects, or those that match the options.

    In a pipe, the columns are id, name, verdict, kind, path, and note, without a header. This
    command also works without a daemon.
    """
    query = ProjectsQuery(
        cwd=invocation.cwd,
        select=Selection.PUBLISHED if published else Selection.ALL,
        verdict=Verdict(verdict) if verdict else None,
        tag=tag,
    )
    listing = call_or_read_store(invocation, query)
    output = invocation.output
    if (paths or nul) and not output.is_json:
        _write_paths(listing["items"], nul=nul, for_terminal=output.on_terminal and not nul)
        output.warn(listing["warnings"])
        return
    output.show(
        CommandResult(listing["items"], listing["revision"], listing["warnings"]), PROJECT_COLUMNS
    )
    if output.on_terminal and not listing["items"]:
        is_narrowed = verdict or tag or published
        output.message(
            "No project matches." if is_narrowed else "No projects yet. Try: rootsd up ~/src"
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
