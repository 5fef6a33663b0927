"""`rootsd sessions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import age
from rootsd.cli.invocation import Invocation
from rootsd.cli.layout import ColumnFit
from rootsd.cli.render import Column, CommandResult
from rootsd.wire.daemon import SessionsQuery, SessionView

_SCOPE_LIMIT = 200
_LAST = 50


def _client(item: Mapping[str, Any]) -> str:
    return str(item["client"] or "?")


def _scope(item: Mapping[str, Any]) -> str:
    return " ".join(item["scope"]) or "all"


def _roots(item: Mapping[str, Any]) -> str:
    """How many it was given; of a relay, how many of them its server was told."""
    given = str(item["given"][-1]["roots"]) if item["given"] else "none yet"
    told = item.get("told")  # an older daemon does not tell
    return f"{told['roots']} of {given}" if told else given


_WHO = (
    Column("ID", lambda item: item["id"]),
    Column("CLIENT", _client, limit=64),
    Column("PID", lambda item: str(item["pid"])),
    Column("SCOPE", _scope, limit=_SCOPE_LIMIT),
    Column("SINCE", lambda item: item["since"], short=lambda item: age(item["since"])),
)
_OPEN = (*_WHO, Column("ROOTS", _roots))
_HISTORY = (
    Column("AT", lambda row: row["at"], short=lambda row: age(row["at"])),
    Column("ID", lambda row: row["id"]),
    Column("CLIENT", _client, limit=64),
    Column("SCOPE", _scope, limit=_SCOPE_LIMIT),
    Column("WHAT", lambda row: row["what"], fit=ColumnFit.NOTE),
)


@click.command(
    "sessions",
    cls=VerbCommand,
    epilog="rootsd sessions\nrootsd sessions --history\nrootsd sessions --history --last 5 --json",
)
@click.option("--history", is_flag=True, help="also those that are over, and what each was given")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    default=_LAST,
    show_default=True,
    help="with --history, how many sessions",
)
@pass_invocation
def command(invocation: Invocation, *, history: bool, last: int) -> None:
    """List the connections of MCP clients, and what they were given.

    Of a server that runs inside the approved set (`rootsd run`), ROOTS tells of how many of those
    that it was given it was told: `2 of 3`.

    In a pipe the columns are id, client, pid, scope, since and number of roots; with --history
    they are time, id, client, scope, and what happened: opened, + gained, - lost, ended.
    """
    view = SessionView.HISTORY if history else SessionView.OPEN
    listing = invocation.call(SessionsQuery(view, last))
    items, output = listing["items"], invocation.output
    if output.is_json:
        output.object(CommandResult(items, listing["revision"], listing["warnings"]))
        return
    rows = [row for item in items for row in _history_rows(item)] if history else items
    columns = _HISTORY if history else _OPEN
    output.show(CommandResult(rows, listing["revision"], listing["warnings"]), columns)
    if output.on_terminal and not items:
        output.say("No client is connected." if not history else "No client was ever connected.")


def _history_rows(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A session as rows: its beginning, each set that it was given, its end. Beside the last set
    of a relay stands how many of it its server was told."""
    yield {**item, "at": item["since"], "what": f"opened by pid {item['pid']}"}
    told = item.get("told")  # an older daemon does not tell
    for given in item["given"]:
        is_last = given is item["given"][-1]
        passed_on = f", of which its server was told {told['roots']}" if told and is_last else ""
        yield {**item, "at": given["at"], "what": _change(given) + passed_on}
    if item["until"]:
        yield {**item, "at": item["until"], "what": f"ended: {item['end']}"}


def _change(given: Mapping[str, Any]) -> str:
    """`3 roots: + api web  - old`."""
    signs = (("+", "gained"), ("-", "lost"))
    parts = [_names(sign, given[word], given[f"{word}_count"]) for sign, word in signs]
    told = "  ".join(part for part in parts if part)
    count = "1 root" if given["roots"] == 1 else f"{given['roots']} roots"
    return f"{count}: {told}" if told else count


def _names(sign: str, names: list[str], count: int) -> str:
    if not names:
        return ""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{sign} {' '.join(names)}{more}"
