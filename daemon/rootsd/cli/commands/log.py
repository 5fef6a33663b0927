"""`rootsd log`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import age, path_of
from rootsd.cli.invocation import Invocation, call_or_read_store
from rootsd.cli.layout import ColumnFit
from rootsd.cli.render import Column, CommandResult
from rootsd.core.labels import exact_path
from rootsd.wire.guard import MAX_LOG_WAIT_S, LogQuery

_LAST = 50
_AT_ONCE = 1000
_VERB_STYLES = {"approved": "green", "denied": "red", "refused": "bold red", "lapsed": "yellow"}


def _by(item: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (item["actor"], item["by"]) if part)


def _undid(item: Mapping[str, Any]) -> str:
    undid = item.get("undid")  # an older daemon does not tell
    return f"undid {undid['seq']} {undid['verb']}" if undid else ""


_COLUMNS = (
    Column("SEQ", lambda item: str(item["seq"])),
    Column("AT", lambda item: item["at"], short=lambda item: age(item["at"])),
    Column("VERB", lambda item: item["verb"], style=_VERB_STYLES),
    Column(
        "WHAT", lambda item: path_of(item) or item["what"], fit=ColumnFit.PATH, exact=exact_path
    ),
    Column("BY", _by, fit=ColumnFit.NOTE),
    Column("UNDID", _undid, fit=ColumnFit.NOTE),
)

_COLUMNS_WITHOUT_HEADER = tuple(replace(column, title="") for column in _COLUMNS)


@click.command(
    "log",
    cls=VerbCommand,
    epilog="rootsd log\nrootsd log --last 5 --json\nrootsd log -f",
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    default=_LAST,
    show_default=True,
    help="how many",
)
@click.option("-f", "--follow", is_flag=True, help="go on with what is decided from now on")
@pass_invocation
def command(invocation: Invocation, *, last: int, follow: bool) -> None:
    """Show what was decided, by whom, and which orders were refused.

    In a pipe the columns are number, time, verb, what it is about, who ordered it, and for an
    undo the event that it took back. Changes of the parents are listed too, if the daemon ran.
    With -f and --json each event is an object on a line of its own. undo takes a line back. All
    but -f works without a daemon, too.
    """
    if follow:
        _follow(invocation, invocation.call(LogQuery(last)))
    listing = call_or_read_store(invocation, LogQuery(last))
    output = invocation.output
    output.show(
        CommandResult(listing["items"], listing["revision"], listing["warnings"]), _COLUMNS
    )
    if output.on_terminal and not listing["items"]:
        output.say("Nothing was decided yet.")


def _follow(invocation: Invocation, listing: Mapping[str, Any]) -> NoReturn:
    """Print what there is, and then whatever comes, until ^C."""
    columns: tuple[Column, ...] = _COLUMNS
    newest = 0
    while True:
        for item in listing["items"]:
            newest = item["seq"]
            if invocation.output.is_json:
                invocation.output.object(CommandResult((item,), listing["revision"]))
        if not invocation.output.is_json and listing["items"]:
            invocation.output.show(CommandResult(listing["items"]), columns)
            columns = _COLUMNS_WITHOUT_HEADER
        sys.stdout.flush()
        listing = invocation.call(LogQuery(_AT_ONCE, after=newest, wait_s=MAX_LOG_WAIT_S))
