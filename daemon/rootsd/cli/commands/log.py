"""`rootsd log`: show decisions and refused commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import click
from msgspec.structs import replace

from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.projects import path_of
from rootsd.cli.text.render import Column, CommandResult, time_column
from rootsd.cli.text.theme import Tone
from rootsd.core.labels import exact_path
from rootsd.link.hidden_process import hide_process
from rootsd.wire.guard import MAX_LOG_WAIT_S, LogListing, LogQuery

SECTION = "Inspect"

_LAST = 50
_AT_ONCE = 1000
_VERB_TONES = {
    "approved": Tone.GOOD,
    "denied": Tone.BAD,
    "refused": Tone.REFUSED,
    "lapsed": Tone.ATTENTION,
}


def _by(item: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (item["actor"], item["by"]) if part)


def _undid(item: Mapping[str, Any]) -> str:
    undid = item["undid"]
    return f"undid {undid['seq']} {undid['verb']}" if undid else ""


_COLUMNS = (
    Column("SEQ", lambda item: str(item["seq"])),
    time_column("AT", "at"),
    Column("VERB", lambda item: item["verb"], tones=_VERB_TONES),
    Column(
        "WHAT", lambda item: path_of(item) or item["what"], fit=ColumnFit.PATH, exact=exact_path
    ),
    Column("BY", _by, fit=ColumnFit.NOTE),
    Column("UNDID", _undid, fit=ColumnFit.NOTE),
)

_COLUMNS_WITHOUT_HEADER = tuple(replace(column, title="") for column in _COLUMNS)


@verb(
    "log",
    prints=(LogListing,),
    epilog="rootsd log\nrootsd log --last 5 --json\nrootsd log -f",
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    default=_LAST,
    show_default=True,
    help="the number of entries",
)
@click.option("-f", "--follow", is_flag=True, help="also print new entries as they are made")
@pass_invocation
def command(invocation: Invocation, *, last: int, follow: bool) -> None:
    """Show the decisions, who made each one, and the refused commands.

    In a pipe, the columns are number, time, verb, subject, author, and for an undo the entry that
    it undid. Changes of the configuration, and commands that decide nothing, such as connect, are
    listed if the daemon was running. With -f and --json, each
    entry is one object per line. rootsd undo NUMBER undoes an entry. Without -f, this command also
    works without a daemon.
    """
    if follow:
        hide_process()
        invocation.flags.no_pager = True
        _follow(invocation, invocation.call(LogQuery(last)))
    listing = call_or_read_store(invocation, LogQuery(last))
    output = invocation.output
    output.show(CommandResult.of(listing), _COLUMNS)
    if output.on_terminal and not listing["items"]:
        output.message("No decisions yet.")


def _follow(invocation: Invocation, listing: Mapping[str, Any]) -> NoReturn:
    """Print the listing, and then new entries until ^C."""
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
