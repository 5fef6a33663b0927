"""`rootsd doctor`: find problems and fix them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import click

from rootsd.cli.answers import doctor
from rootsd.cli.answers.doctor import DoctorCheck
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.render import Column, CommandResult
from rootsd.cli.text.theme import Tone
from rootsd.core.doctor import DoctorFinding, Severity, error
from rootsd.core.errors import DaemonUnreachable, Exit, RootsdError
from rootsd.core.labels import safe_text
from rootsd.core.record import to_json
from rootsd.wire.doctor import DoctorRequest

SECTION = "Set up"

_TONES = {Severity.OK: Tone.GOOD, Severity.WARNING: Tone.ATTENTION, Severity.ERROR: Tone.BAD}
_COLUMNS = (
    Column("CONDITION", lambda item: item["condition"]),
    Column("WHAT", lambda item: item["topic"]),
    Column("FOUND", lambda item: _on_one_line(item["finding"]), fit=ColumnFit.PATH),
    Column("DO", lambda item: _on_one_line(item["remedy"] or ""), fit=ColumnFit.PATH),
    Column("SEEN BY", lambda item: item["seen_by"]),
)


class DoctorOutput(TypedDict):
    """The findings."""

    items: list[DoctorFinding]
    """The findings, also those without a problem. With `-q`, only the problems."""
    fixed: list[str]
    """What `--fix` fixed."""


@verb(
    "doctor",
    prints=(DoctorOutput,),
    epilog="rootsd doctor\nrootsd doctor --fix\nrootsd doctor -q",
)
@click.option("--fix", is_flag=True, help="fix what needs no decision from you, then check again")
@pass_invocation
def command(invocation: Invocation, *, fix: bool) -> int:
    """Find problems, from this shell and from inside the daemon, and say how to fix them.

    --fix makes folders private that are open to others, starts the daemon, and updates an old
    daemon or an old service. It never decides about projects and never removes anything. With -q,
    print only the problems.

    The exit status is 1 if there is an error, else 0.
    """
    done = _apply_fixes(invocation, list(doctor.run_checks(invocation))) if fix else []
    items = [to_json(check.diagnosis) for check in doctor.run_checks(invocation)] + _daemon_checks(
        invocation
    )
    output = invocation.output
    wrong = [item for item in items if item["condition"] != Severity.OK]
    shown = wrong if invocation.flags.quiet else items
    if output.on_terminal:
        for item in shown:
            _show(invocation, item)
    else:
        output.show(CommandResult(shown, extra={"fixed": done}), _COLUMNS)
    for sentence in done:
        output.message(f"fixed: {sentence}")
    errors = sum(item["condition"] == Severity.ERROR for item in items)
    output.message(_summary(len(wrong) - errors, errors))
    return Exit.FAILED if errors else Exit.OK


def _show(invocation: Invocation, item: Mapping[str, Any]) -> None:
    """Print a finding for a person, with its remedy below it, unwrapped for copying."""
    output = invocation.output
    where = "" if item["seen_by"] == "command" else "   (inside the daemon)"
    label = f"{item['condition']:<7}  {item['topic']:<13}  "
    tone = _TONES.get(item["condition"], Tone.LABEL)
    output.labelled(safe_text(label), safe_text(_on_one_line(item["finding"]) + where), tone)
    if item["remedy"]:
        output.command(len(label), "→ ", safe_text(_on_one_line(item["remedy"])))


def _on_one_line(text: str) -> str:
    """Return a message of several lines as one line."""
    return " ".join(line.strip() for line in text.split("\n"))


def _apply_fixes(invocation: Invocation, checks: Sequence[DoctorCheck]) -> list[str]:
    """Fix the problems that have a fix, and return the findings that were fixed."""
    done = []
    for check in checks:
        if check.fix is None or check.diagnosis.condition is Severity.OK:
            continue
        finding = safe_text(_on_one_line(check.diagnosis.finding))
        try:
            check.fix()
        except (RootsdError, OSError) as trouble:
            invocation.output.warn([f"{finding}: {trouble}"])
        else:
            done.append(finding)
    return done


def _daemon_checks(invocation: Invocation) -> list[Mapping[str, Any]]:
    """Return the daemon's findings; none if no daemon runs, which is a finding of the command."""
    try:
        items: list[Mapping[str, Any]] = invocation.call(DoctorRequest())["items"]
    except DaemonUnreachable:
        return []
    except RootsdError as trouble:
        return [to_json(error("daemon", trouble.message, trouble.remedy))]
    return items


def _summary(warnings: int, errors: int) -> str:
    if not warnings and not errors:
        return "No problems found."
    counts = ((errors, "error"), (warnings, "warning"))
    return f"{' and '.join(pluralize(count, word) for count, word in counts if count)} found."
