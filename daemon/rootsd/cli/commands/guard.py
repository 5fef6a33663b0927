"""`rootsd guard`: show or set who may decide, and allow your own programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult, Output
from rootsd.core.guard_setting import Guard
from rootsd.core.labels import safe_label
from rootsd.wire.guard import (
    AllowProgramsRequest,
    DisallowProgramsRequest,
    GuardQuery,
    GuardStatus,
    SetGuardRequest,
)
from rootsd.wire.request import ApplyMode, ControlRequest

SECTION = "Decide"

_MEANING = {
    Guard.AGENTS: "Programs that are known as a person's may decide. rootsd asks about any other.",
    Guard.TERMINAL: "A person must confirm every decision on a terminal; agents may not decide.",
    Guard.OFF: "Every program that runs as you may decide.",
}
_ALLOW, _DISALLOW = "allow", "disallow"
_MODULE = "python -m "


class GuardOutput(GuardStatus):
    """The guard."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@verb(
    "guard",
    prints=(GuardOutput,),
    epilog="rootsd guard\nrootsd guard terminal\nrootsd guard allow ~/.local/bin/zellij",
)
@click.argument(
    "mode",
    required=False,
    type=click.Choice([*(guard.value for guard in Guard), _ALLOW, _DISALLOW]),
)
@click.argument("program", required=False, type=click.Path())
@click.option("--dry-run", is_flag=True, help="only show what it would change")
@pass_invocation
def command(
    invocation: Invocation, *, mode: str | None, program: str | None, dry_run: bool
) -> None:
    """Show or set who may decide which projects are published.

    \b
    agents    refuse agents, and ask for a word where a program is not known as yours
    terminal  the same, and ask for a word on the terminal each time
    off       let every program decide that runs as you
    allow     know PROGRAM as yours, by its path or its name on your PATH
    disallow  take that back

    Without arguments, this also shows how the last command was judged. The guard stops and records
    an agent that approves projects for itself. It is not a security boundary: an agent that runs
    as you can do everything that you can.
    """
    request = _request(mode, program, effect_of(dry_run=dry_run))
    answer = invocation.call(request)
    output = invocation.output
    if output.is_json:
        parts = {key: answer[key] for key in ("guard", "allowed", "last")}
        output.object(CommandResult.of(answer, (), **parts, dry_run=dry_run))
        return
    output.line(answer["guard"])
    output.message(_MEANING[Guard(answer["guard"])])
    for allowed in answer["allowed"]:
        output.message(f"allowed by you: {safe_label(allowed, limit=None)}")
    if mode is None and answer["last"] is not None:
        _show_last(output, answer["last"])
    if dry_run:
        output.message(DRY_RUN_NOTICE)
    output.warn(answer["warnings"])


def _request(mode: str | None, program: str | None, effect: ApplyMode) -> ControlRequest:
    """Return the request of the command. Raises UsageError."""
    if mode in (_ALLOW, _DISALLOW):
        if not program:
            raise click.UsageError(f"name the program: rootsd guard {mode} PROGRAM")
        programs = tuple(_named(program)) if mode == _ALLOW else tuple(_spellings(program))
        if mode == _ALLOW:
            return AllowProgramsRequest(programs, effect)
        return DisallowProgramsRequest(programs, effect)
    if program is not None:
        raise click.UsageError(f"{mode} takes no program: rootsd guard allow PROGRAM")
    if mode is not None:
        return SetGuardRequest(Guard(mode), effect)
    if effect is ApplyMode.DRY_RUN:
        raise click.UsageError("name a mode: agents, terminal, or off")
    return GuardQuery()


def _named(program: str) -> Iterator[str]:
    """Yield the ways in which the system may report `program`, which must exist."""
    found = list(_spellings(program))
    if not found[0].startswith(_MODULE) and not os.path.isfile(found[0]):
        raise click.UsageError(f"{safe_label(program)} is not a program")
    yield from found


def _spellings(program: str) -> Iterator[str]:
    """Yield the path as it was named, as scripts are reported, and the file that it leads to."""
    if program.startswith(_MODULE):
        yield program
        return
    path = program if "/" in program else shutil.which(program) or program
    path = os.path.abspath(path)
    yield path
    if (target := os.path.realpath(path)) != path:
        yield target


def _show_last(output: Output, last: Mapping[str, Any]) -> None:
    """Print how the guard judged the last command, and each program that it looked at."""
    why = f", because {safe_label(last['why'], limit=None)}" if last["why"] else ""
    what = safe_label(last["what"], limit=None)
    at = safe_label(last["at"])
    output.message(f"Last command, at {at}: {what}: {last['judgment']}{why}.")
    for program in last["programs"]:
        known = program["use"] or "unknown"
        shown = safe_label(program["program"] or program["name"], limit=None)
        output.message(f"{known}: {shown}, pid {program['pid']}")
        if program["allow"]:
            output.message(f"  try: {safe_label(program['allow'], limit=None)}")
