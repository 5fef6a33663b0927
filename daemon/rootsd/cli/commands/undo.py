"""`rootsd undo`: undo your last command, or one entry of the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rootsd.cli.answers.decisions import DECISION_COLUMNS, effect_of, print_affected
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, declined
from rootsd.cli.options.flags import pass_invocation, verb, yes_option
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.projects import PROJECT_COLUMNS
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.model import ActorKind
from rootsd.wire.guard import LogQuery, UndoRequest, UndoResult

if TYPE_CHECKING:
    from rootsd.wall.git.left_behind import LeftBehindReport

SECTION = "Decide"

_SEARCHED = 200  # entries of the log


class UndoOutput(UndoResult):
    """The effect of the undo."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""
    links: list[str]
    """The links and files in git directories that were put back; see `docs/CONFINEMENT.md`."""


@verb(
    "undo",
    prints=(UndoOutput,),
    epilog="rootsd undo\nrootsd undo 41\nrootsd undo --dry-run",
)
@click.argument("seq", metavar="[SEQ]", required=False, type=click.IntRange(min=1))
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what would be undone")
@pass_invocation
def command(invocation: Invocation, *, seq: int | None, yes: bool, dry_run: bool) -> int:
    """Undo your last command with all its decisions, or one entry of the log by its number.

    This restores approvals, denials, rules, names, tags, the focus, and the guard. An approval is
    restored only for the same folder. If a later command depends on an entry, undo that command
    first. If you repeat undo, it takes back the previous command.

    Some commands cannot be undone: those that change parents, the configuration, or clients, `add`
    and `forget` of a folder that you added by hand, and commands with --host. If the last command
    was one of these, undo does nothing, and names the command that takes it back. To undo an
    earlier command, give its number from rootsd log.

    If an undo would approve more than one project again, it lists them and asks for a key. Without
    a terminal, it needs --yes.

    At the end of a session behind the wall, rootsd removes what could run outside from git
    directories. If that happened after your last command, undo puts it back.
    """
    report = _newest_report(invocation) if seq is None else None
    if report is not None:
        _put_back(invocation, report, dry_run=dry_run)
        return Exit.OK
    order = UndoRequest(seq, effect_of(dry_run=dry_run))
    decided = TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)).decide(order)
    if decided is None:
        return declined(invocation, order)
    done = decided.answer
    output = invocation.output
    extra = {"undone": done["undone"], "dry_run": dry_run, "links": []}
    if "confirmation" in done:
        extra["confirmation"] = done["confirmation"]
    answer = CommandResult.of(done, **extra)
    output.show(answer, DECISION_COLUMNS if output.on_terminal else PROJECT_COLUMNS)
    would = "would be undone" if dry_run else "undone"
    for event in done["undone"]:
        what = shown_path(event["path"] or event["what"])
        output.message(f"{would}: {event['seq']} {event['verb']} {what}")
    print_affected(invocation, done)
    return Exit.OK


def _newest_report(invocation: Invocation) -> LeftBehindReport | None:
    """Return the report about what was taken away that is newer than the last command, if any.

    Raises RootsdError.
    """
    from rootsd.places.base_folders import WALLS
    from rootsd.wall.git.left_behind_reports import read_reports

    reports = [each for each in read_reports(invocation.places.state + WALLS) if each.removed]
    if not reports:
        return None
    try:
        preview = invocation.call(UndoRequest(None, effect_of(dry_run=True)))
    except RootsdError as error:
        if error.code is ErrorCode.NOTHING_MATCHED:
            return reports[-1]  # no command can be undone
        if error.code is not ErrorCode.FAILED:
            raise
        events = invocation.call(LogQuery(_SEARCHED))["items"]  # undo refuses the last command
    else:
        events = preview["undone"]
    last = max((_given_at(event) for event in events), default=0.0)
    return reports[-1] if reports[-1].ended > last else None


def _given_at(event: Mapping[str, Any]) -> float:
    """Return the time of a person's command. Other events count as ancient."""
    actor = event["actor"]
    if actor is None or not ActorKind(actor).may_decide:
        return 0.0
    return datetime.fromisoformat(event["at"]).timestamp()


def _put_back(invocation: Invocation, report: LeftBehindReport, *, dry_run: bool) -> None:
    """Put back what a report took away, and print it. Raises RootsdError."""
    from rootsd.wall.git.left_behind_reports import put_back

    made = report.removed
    if not dry_run:
        try:
            made = put_back(report)
        except OSError as error:
            first = safe_label(report.removed[0].path, limit=None)
            raise RootsdError(
                f"not everything can be put back: {error.strerror}", f"ls -l {first}"
            ) from error
    links = [safe_label(fact.path, limit=None) for fact in made]
    output = invocation.output
    answer = CommandResult([], None, [], {"undone": [], "dry_run": dry_run, "links": links})
    output.show(answer, DECISION_COLUMNS if output.on_terminal else PROJECT_COLUMNS)
    would = "would be put back" if dry_run else "put back"
    for link in links:
        output.message(f"{would}: {link}")
    for fact in report.removed:
        if fact not in made:
            kept = fact.value or report.place_of(fact)
            path, target = (safe_label(each, limit=None) for each in (fact.path, kept))
            output.message(f"not put back, because something else is there: {path} -> {target}")
