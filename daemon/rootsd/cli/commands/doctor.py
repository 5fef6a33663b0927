"""`rootsd doctor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from rootsd.cli import doctor
from rootsd.cli.doctor import DoctorCheck
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.layout import ColumnFit
from rootsd.cli.render import Column, CommandResult
from rootsd.core.doctor import Severity, error
from rootsd.core.errors import DaemonUnreachable, ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_text
from rootsd.wire.daemon import DoctorRequest

_COLUMNS = (
    Column("CONDITION", lambda item: item["condition"]),
    Column("WHAT", lambda item: item["topic"]),
    Column("FOUND", lambda item: _on_one_line(item["finding"]), fit=ColumnFit.PATH),
    Column("DO", lambda item: _on_one_line(item["remedy"] or ""), fit=ColumnFit.PATH),
    Column("SEEN BY", lambda item: item["seen_by"]),
)


@click.command(
    "doctor", cls=VerbCommand, epilog="rootsd doctor\nrootsd doctor --fix\nrootsd doctor -q"
)
@click.option("--fix", is_flag=True, help="do what can be done without you, then look again")
@pass_invocation
def command(invocation: Invocation, *, fix: bool) -> int:
    """Look for what keeps rootsd from working, from here and from inside the daemon.

    Each finding comes with its remedy. --fix closes folders that are open to others, starts the
    daemon, and brings an old daemon or an old service up to date; it decides nothing and removes
    nothing. With -q only what is not as it should be is shown.

    The exit status is 1 if anything is broken, else 0.
    """
    done = _apply_fixes(invocation, list(doctor.run_checks(invocation))) if fix else []
    items = [_item(case) for case in doctor.run_checks(invocation)] + _daemon_checks(invocation)
    output = invocation.output
    wrong = [item for item in items if item["condition"] != Severity.OK]
    shown = wrong if invocation.flags.quiet else items
    if output.on_terminal:
        for item in shown:
            _show(invocation, item)
    else:
        output.show(CommandResult(shown, extra={"fixed": done}), _COLUMNS)
    for sentence in done:
        output.say(f"fixed: {sentence}")
    errors = sum(item["condition"] == Severity.ERROR for item in items)
    output.say(_summary(len(wrong) - errors, errors))
    return Exit.FAILED if errors else Exit.OK


def _show(invocation: Invocation, item: Mapping[str, Any]) -> None:
    """Print a finding for a person, with its remedy below it, whole, so that it can be copied."""
    output = invocation.output
    where = "" if item["seen_by"] == "command" else "   (inside the daemon)"
    label = f"{item['condition']:<7}  {item['topic']:<13}  "
    output.labelled(safe_text(label), safe_text(_on_one_line(item["finding"]) + where))
    if item["remedy"]:
        output.whole(len(label), f"→ {safe_text(_on_one_line(item['remedy']))}")


def _on_one_line(text: str) -> str:
    """Return a message of several lines as one."""
    return " ".join(line.strip() for line in text.split("\n"))


def _apply_fixes(invocation: Invocation, cases: Sequence[DoctorCheck]) -> list[str]:
    """Do what can be done; what was done."""
    done = []
    for case in cases:
        if case.cure is None or case.diagnosis.condition is Severity.OK:
            continue
        finding = safe_text(_on_one_line(case.diagnosis.finding))
        try:
            case.cure()
        except (RootsdError, OSError) as trouble:
            invocation.output.warn([f"{finding}: {trouble}"])
        else:
            done.append(finding)
    return done


def _item(case: DoctorCheck) -> dict[str, Any]:
    found = case.diagnosis
    return {
        "topic": found.topic,
        "condition": found.condition.value,
        "finding": found.finding,
        "remedy": found.remedy or None,
        "seen_by": "command",
    }


def _daemon_checks(invocation: Invocation) -> list[Mapping[str, Any]]:
    """What the daemon finds; nothing where none runs, which the command has seen itself."""
    try:
        items: list[Mapping[str, Any]] = invocation.call(DoctorRequest())["items"]
    except DaemonUnreachable:
        return []
    except RootsdError as trouble:
        if trouble.code is ErrorCode.USAGE:  # an older daemon does not know the question
            return []
        return [_item(DoctorCheck(error("daemon", trouble.message, trouble.remedy)))]
    return items


def _summary(warnings: int, errors: int) -> str:
    if not warnings and not errors:
        return "All is as it should be."
    counts = ((errors, "error"), (warnings, "warning"))
    told = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
    return f"{' and '.join(told)}. Each comes with what to do about it."
