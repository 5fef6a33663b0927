"""`rootsd log`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli.columns import age, path_of
from rootsd.cli.flags import Command
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session, pass_session
from rootsd.wire.guarding import LogQuery

_LAST = 50
_VERB_STYLES = {"approved": "green", "denied": "red", "refused": "bold red", "lapsed": "yellow"}
_BY_LIMIT = 200


def _by(item: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (item["actor"], item["by"]) if part)


_COLUMNS = (
    Column("SEQ", lambda item: str(item["seq"])),
    Column("AT", lambda item: item["at"], short=lambda item: age(item["at"])),
    Column("VERB", lambda item: item["verb"], style=_VERB_STYLES),
    Column("WHAT", lambda item: path_of(item) or item["what"], is_path=True),
    Column("BY", _by, limit=_BY_LIMIT),
)


@click.command(
    "log",
    cls=Command,
    epilog="rootsd log\nrootsd log --last 5 --json",
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    default=_LAST,
    show_default=True,
    help="how many",
)
@pass_session
def command(session: Session, *, last: int) -> None:
    """Show what was decided, by whom, and which orders were refused.

    In a pipe the columns are number, time, verb, what it is about, and who ordered it.
    """
    listing = session.call(LogQuery(last))
    output = session.output
    output.show(Answer(listing["items"], listing["revision"], listing["warnings"]), _COLUMNS)
    if output.on_terminal and not listing["items"]:
        output.say("Nothing was decided yet.")
