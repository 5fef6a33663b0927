"""`rootsd tag`."""

from __future__ import annotations

from collections import Counter

import click

from rootsd.cli import completing
from rootsd.cli.columns import PROJECT_COLUMNS
from rootsd.cli.decisions import decide, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session
from rootsd.wire.naming import Tagging
from rootsd.wire.projects import ProjectsQuery

_COLUMNS = (
    Column("TAG", lambda item: item["tag"]),
    Column("PROJECTS", lambda item: str(item["projects"])),
)


@click.command(
    "tag",
    cls=Command,
    epilog=(
        "rootsd tag acme/api work go\n"
        "rootsd tag 'acme/*' work\n"
        "rootsd tag acme/api --rm go\n"
        "rootsd tag\n"
        "rootsd ls --tag work"
    ),
)
@click.argument("ref", metavar="[REF]", required=False, shell_complete=completing.projects())
@click.argument("tags", metavar="[TAG]...", nargs=-1, shell_complete=completing.tags)
@click.option(
    "--rm",
    "off",
    multiple=True,
    metavar="TAG",
    help="take it away; may be repeated",
    shell_complete=completing.tags,
)
@click.option("--dry-run", is_flag=True, help="only show what would be tagged")
@pass_session
def command(
    session: Session,
    *,
    ref: str | None,
    tags: tuple[str, ...],
    off: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Tag projects, or take tags away; alone, this lists the tags there are.

    Tags are published with the root. bridge and run take --only tag:TAG, and focus narrows all
    sessions to a tag. REF without a TAG shows what is tagged how.
    """
    if ref is None:
        _list(session)
    elif tags or off:
        decide(session, Tagging((ref,), session.cwd, tags, off, effect_of(dry_run=dry_run)))
    else:
        listing = session.call(ProjectsQuery(session.cwd, refs=(ref,)))
        answer = Answer(listing["items"], listing["revision"], listing["warnings"])
        session.output.show(answer, PROJECT_COLUMNS)


def _list(session: Session) -> None:
    listing = session.call(ProjectsQuery(session.cwd))
    counts = Counter(tag for item in listing["items"] for tag in item["tags"])
    items = [{"tag": tag, "projects": counts[tag]} for tag in sorted(counts)]
    output = session.output
    output.show(Answer(items, listing["revision"], listing["warnings"]), _COLUMNS)
    if output.on_terminal and not items:
        output.say("There is no tag: rootsd tag REF TAG")
