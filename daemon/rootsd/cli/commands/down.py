"""`rootsd down`: stop the daemon until the next up."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, TypedDict

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult
from rootsd.cli.text.terminal import drop_earlier_input
from rootsd.core.labels import first_of

SECTION = "Set up"
_MAX_NAMED = 5


class ProgramsPolicy(StrEnum):
    """What happens to the programs behind the wall."""

    WAIT = "wait"
    END = "end"


class DownOutput(TypedDict):
    """The daemon that was stopped."""

    stopped: int | None
    """Its process id, or null if none was running."""
    waiting: list[str]
    """The names of the programs behind the wall that wait for the next daemon."""
    ended: list[str]
    """The names of the programs behind the wall that were ended."""


@verb(
    "down",
    prints=(DownOutput,),
    epilog="rootsd down\nrootsd down --programs end",
)
@click.option(
    "--programs",
    type=click.Choice([each.value for each in ProgramsPolicy]),
    help="Let programs behind the wall wait for the next `rootsd up`, or end them."
    " By default, they wait; on a terminal, down asks.",
)
@pass_invocation
def command(invocation: Invocation, programs: str | None) -> None:
    """Stop the daemon until the next `rootsd up`. Decisions are kept."""
    from rootsd.cli.answers import lifecycle
    from rootsd.service import start_record

    confined = _confined_programs(invocation)
    policy = ProgramsPolicy(programs) if programs else _asked_policy(invocation, confined)
    start_record.mark_stopped()  # first, so that no bridge starts the daemon again
    if confined and policy is ProgramsPolicy.END:
        from rootsd.cli.answers.confined_programs import end_programs

        end_programs(confined)
    pid = lifecycle.shut_down(invocation)
    names = [item["name"] for item in confined]
    ended, waiting = (names, []) if policy is ProgramsPolicy.END else ([], names)
    output = invocation.output
    if output.is_json:
        output.object(CommandResult(extra={"stopped": pid, "waiting": waiting, "ended": ended}))
        return
    if pid is None:
        output.message("The daemon was not running.")
    else:
        output.message(f"The daemon (pid {pid}) is stopped.")
    if waiting:
        output.message(
            f"{_count(waiting)} until the next rootsd up: {first_of(waiting, _MAX_NAMED)}"
        )
    if ended:
        output.message(f"Ended: {first_of(ended, _MAX_NAMED)}")


def _confined_programs(invocation: Invocation) -> Sequence[Mapping[str, Any]]:
    """Return the programs behind the wall: those that the daemon knows, and others that wait."""
    from rootsd.cli.answers.confined_programs import programs_without_daemon
    from rootsd.core.errors import RootsdError
    from rootsd.wire.daemon import StatusQuery

    found: list[Mapping[str, Any]] = []
    with suppress(RootsdError):  # `shut_down` reports what matters
        found += invocation.call(StatusQuery())["confined"]
    known = {item["pid"] for item in found}
    if sys.platform == "linux":
        others = programs_without_daemon(invocation.places.state)
        found += [item for item in others if item["pid"] not in known]
    return found


def _asked_policy(invocation: Invocation, confined: Sequence[Mapping[str, Any]]) -> ProgramsPolicy:
    """Ask a person at a terminal. Without one, and without programs, they wait."""
    is_asked = not (invocation.flags.no_input or invocation.flags.json) and sys.stdin.isatty()
    if not confined or not is_asked:
        return ProgramsPolicy.WAIT
    names = [item["name"] for item in confined]
    question = (
        f"{_count(names)} without a daemon: {first_of(names, _MAX_NAMED)}.\n"
        "w: let them wait until the next rootsd up    e: end them now"
    )
    drop_earlier_input()
    choice = click.prompt(
        question,
        type=click.Choice(["w", "e"]),
        default="w",
        err=True,
        show_choices=True,
    )
    return ProgramsPolicy.END if choice == "e" else ProgramsPolicy.WAIT


def _count(names: Sequence[str]) -> str:
    return "1 program waits" if len(names) == 1 else f"{len(names)} programs wait"
