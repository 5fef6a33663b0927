"""`rootsd sessions`: show the connected MCP clients and their roots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.session_reports import SessionReportsOutput, show_report, show_reports
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.confined_words import describe_engine, describe_network, describe_roots
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.render import Column, CommandResult, time_column
from rootsd.wire.daemon import SessionItem, SessionsQuery, SessionView
from rootsd.wire.wall import ConfinedProgramItem

SECTION = "Inspect"

_SCOPE_LIMIT = 200
_LAST = 50


def _client(item: Mapping[str, Any]) -> str:
    return str(item["client"] or "?")


def _scope(item: Mapping[str, Any]) -> str:
    return " ".join(item["scope"]) or "all"


def _roots(item: Mapping[str, Any]) -> str:
    """Return the number of roots sent. For `rootsd run`, return how many its server got."""
    given = item["given"][-1]["roots"] if item["given"] else 0
    relayed = item["told"]
    if not relayed:
        return str(given) if item["given"] else "none yet"
    sent = relayed["roots"]
    return f"{sent} of {given}" if sent <= given else f"{sent} sent, {given} published"


_WHO = (
    Column("ID", lambda item: item["id"]),
    Column("CLIENT", _client, limit=64),
    Column("PID", lambda item: str(item["pid"])),
    Column("SCOPE", _scope, limit=_SCOPE_LIMIT),
    time_column("SINCE", "since"),
)
_OPEN = (*_WHO, Column("ROOTS", _roots))
_CONFINED = (
    Column("ID", lambda item: item["id"]),
    Column("CONFINED", lambda item: item["name"], limit=64),
    *_WHO[2:],
    Column("ROOTS", describe_roots),
    Column("ENGINE", describe_engine),
    Column("NETWORK", describe_network),
)
_HISTORY = (
    time_column("AT", "at"),
    Column("ID", lambda row: row["id"]),
    Column("CLIENT", _client, limit=64),
    Column("SCOPE", _scope, limit=_SCOPE_LIMIT),
    Column("WHAT", lambda row: row["what"], fit=ColumnFit.NOTE),
)


class SessionsOutput(TypedDict):
    """The sessions."""

    items: list[SessionItem]
    """The open sessions. With `--history`, the last ones that began, oldest first."""
    confined: NotRequired[list[ConfinedProgramItem]]
    """The programs that are behind the wall now. Left out with `--history`."""


@verb(
    "sessions",
    prints=(SessionsOutput, SessionReportsOutput),
    epilog="rootsd sessions\nrootsd sessions --history\nrootsd sessions --history --last 5\n"
    "rootsd sessions --report claude",
)
@click.option(
    "--history", is_flag=True, help="also list ended sessions, and the roots sent to each"
)
@click.option(
    "--report",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="list what programs behind the wall did; with an ID, all about one session",
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    default=_LAST,
    show_default=True,
    help="with --history and --report, the number of sessions",
)
@pass_invocation
def command(invocation: Invocation, *, history: bool, report: str | None, last: int) -> None:
    """List the connected MCP clients, and the roots that were sent to each.

    On a terminal, a second table lists the programs behind the wall, and the mechanism of each
    wall. With --json, they are in `confined`.

    For a server behind `rootsd run`, ROOTS is `2 of 3` if the server got two of the three roots of
    its session. It is `3 sent, 2 published` if the server is behind the wall and also got a
    withheld root: one that holds a denied project, which the wall hides.

    In a pipe, the columns are id, client, pid, scope, since, and number of roots. With --history,
    they are time, id, client, scope, and event: opened, + gained, - lost, ended.

    --report says what sessions behind the wall have changed. ID is one from its list, or the name
    of a program, for its last session. It does not say which files were read. It also works
    without a daemon.
    """
    if report is not None:
        if report:
            show_report(invocation, report)
        else:
            show_reports(invocation, last)
        return
    view = SessionView.HISTORY if history else SessionView.OPEN
    listing = invocation.call(SessionsQuery(view, last))
    items, output = listing["items"], invocation.output
    confined = [] if history else listing["confined"]
    if output.is_json:
        extra = {} if history else {"confined": confined}
        output.object(CommandResult.of(listing, items, **extra))
        return
    rows = [row for item in items for row in _history_rows(item)] if history else items
    columns = _HISTORY if history else _OPEN
    output.show(CommandResult.of(listing, rows), columns)
    if confined and output.on_terminal:
        output.show(CommandResult(confined), _CONFINED)
    if output.on_terminal and not items and not confined:
        output.message("No client has ever connected." if history else "No client is connected.")


def _history_rows(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for the start of a session, for each set of roots sent to it, and for its end.

    For `rootsd run`, the row of the last set says how many roots were sent to the server.
    """
    yield {**item, "at": item["since"], "what": f"opened by pid {item['pid']}"}
    relayed = item["told"]
    for given in item["given"]:
        is_last = given is item["given"][-1]
        sent_on = ""
        if relayed and is_last:
            of_them = " of them" if relayed["roots"] <= given["roots"] else ""
            sent_on = f", {relayed['roots']}{of_them} sent to its server"
        yield {**item, "at": given["at"], "what": _change(given) + sent_on}
    if item["until"]:
        yield {**item, "at": item["until"], "what": f"ended: {item['end']}"}


def _change(given: Mapping[str, Any]) -> str:
    """Return a change such as `3 roots: + api web  - old`."""
    signs = (("+", "gained"), ("-", "lost"))
    parts = [_names(sign, given[word], given[f"{word}_count"]) for sign, word in signs]
    change = "  ".join(part for part in parts if part)
    count = "1 root" if given["roots"] == 1 else f"{given['roots']} roots"
    return f"{count}: {change}" if change else count


def _names(sign: str, names: list[str], count: int) -> str:
    if not names:
        return ""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{sign} {' '.join(names)}{more}"
