"""`rootsd undo`: undo your last command, or one entry of the log."""

from __future__ import annotations

import click
from msgspec.structs import replace

from rootsd.cli.decisions import effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import NAME, PATH, PROJECT_COLUMNS, VERDICT, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.labels import safe_label
from rootsd.wire.guard import UndoRequest, UndoResult

SECTION = "Decide"

_TERMINAL_COLUMNS = tuple(replace(column, title="") for column in (VERDICT, NAME, PATH))


class UndoOutput(UndoResult):
    """The effect of the undo."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.command(
    "undo",
    cls=VerbCommand,
    prints=(UndoOutput,),
    epilog="rootsd undo\nrootsd undo 41\nrootsd undo --dry-run",
)
@click.argument("seq", metavar="[SEQ]", required=False, type=click.IntRange(min=1))
@click.option("--dry-run", is_flag=True, help="only show what would be undone")
@pass_invocation
def command(invocation: Invocation, *, seq: int | None, dry_run: bool) -> None:
    """Undo your last command with all its decisions, or one entry of the log by its number.

    This restores approvals, denials, rules, names, tags, the focus, and the guard. An approval is
    restored only for the same folder. If a later command depends on an entry, undo that command
    first. If you repeat undo, it takes back the previous command.
    """
    done = invocation.call(UndoRequest(seq, effect_of(dry_run=dry_run)))
    output = invocation.output
    extra = {"undone": done["undone"], "dry_run": dry_run}
    answer = CommandResult(done["items"], done["revision"], done["warnings"], extra)
    output.show(answer, _TERMINAL_COLUMNS if output.on_terminal else PROJECT_COLUMNS)
    would = "would be undone" if dry_run else "undone"
    for event in done["undone"]:
        what = safe_label(shorten_home(event["path"] or event["what"]), limit=None)
        output.message(f"{would}: {event['seq']} {event['verb']} {what}")
