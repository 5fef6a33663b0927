"""The options of `pending` and `ls` that choose and sort projects.

The daemon filters (`rootsd.control.listing`), because references and folders need its catalog. The
command line sorts, because the order is only for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import click

from rootsd.cli.options import completion
from rootsd.cli.options.times import Since
from rootsd.cli.text.field_columns import RISK_FIELDS, FieldList, field_columns
from rootsd.cli.text.grouping import by_folder, grouped_table
from rootsd.cli.text.phrases import any_of
from rootsd.cli.text.projects import OWNER
from rootsd.cli.text.render import Column, CommandResult, Output
from rootsd.cli.text.sorting import READ_FROM_DISK, SORT_KEYS, in_order_of
from rootsd.core.project_kind import ProjectKind
from rootsd.core.verdict import Verdict
from rootsd.wire.projects import ProjectsQuery, RiskFilter, RiskReading, Selection

Item = Mapping[str, Any]
Verb = Callable[..., Any]


class ListingWords(TypedDict):
    """The values of the options, as click passes them to a command."""

    refs: tuple[str, ...]
    kinds: tuple[str, ...]
    tag: str | None
    under: str | None
    since: str | None
    risk: tuple[str, ...]
    sort: str | None
    reverse: bool
    fields: tuple[str, ...] | None


_OPTIONS = (
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice([kind.value for kind in ProjectKind]),
        metavar="KIND",
        help="only projects of this kind, such as git or project; may be repeated",
    ),
    click.option(
        "--tag",
        metavar="TAG",
        shell_complete=completion.tags,
        help="only projects with this tag",
    ),
    click.option(
        "--under",
        "under",
        metavar="PATH",
        shell_complete=completion.parents,
        help="only projects below this folder",
    ),
    click.option(
        "--since",
        type=Since(),
        metavar="TIME",
        help="only projects found since then: 2d, 8h, or 2026-11-20",
    ),
    click.option(
        "--risk",
        multiple=True,
        type=click.Choice([each.value for each in RiskFilter]),
        metavar="RISK",
        help=f"only projects with this risk: {any_of(RiskFilter)}; may be repeated",
    ),
    click.option(
        "--sort",
        type=click.Choice(list(SORT_KEYS)),
        metavar="KEY",
        help=f"order by {any_of(SORT_KEYS)}; age lists the newest first",
    ),
    click.option("--reverse", is_flag=True, help="list the projects in the other direction"),
    click.option(
        "--format",
        "fields",
        type=FieldList(),
        metavar="FIELD,...",
        help="print these fields of --json in columns: id,name,risk",
    ),
)


def listing_options(select: Selection) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options; `select` are the projects to complete."""
    refs = click.argument(
        "refs", nargs=-1, metavar="[REF]...", shell_complete=completion.projects(select)
    )

    def decorate(verb: Verb) -> Verb:
        for each in reversed(_OPTIONS):
            verb = each(verb)
        return refs(verb)

    return decorate


def query_of(
    words: ListingWords,
    cwd: str,
    select: Selection,
    *,
    verdict: Verdict | None = None,
    risks: RiskReading = RiskReading.NEVER,
) -> ProjectsQuery:
    """Return the query for the projects that the options choose.

    `risks` says whether to read the risks for columns that `--format` does not replace.
    """
    fields = words["fields"]
    is_needed = words["sort"] in READ_FROM_DISK or not RISK_FIELDS.isdisjoint(fields or ())
    if words["risk"] or (is_needed and risks is RiskReading.NEVER):
        risks = RiskReading.THOROUGH
    elif fields and not is_needed:
        risks = RiskReading.NEVER
    return ProjectsQuery(
        cwd=cwd,
        refs=words["refs"],
        select=select,
        verdict=verdict,
        tag=words["tag"],
        under=words["under"],
        kinds=tuple(map(ProjectKind, words["kinds"])),
        since=words["since"],
        risks=risks,
        risk=tuple(map(RiskFilter, words["risk"])),
    )


def is_narrowed(words: ListingWords) -> bool:
    """Return whether the options leave projects out."""
    return any(words[name] for name in ("refs", "kinds", "tag", "under", "since", "risk"))


def in_order(items: Iterable[Item], words: ListingWords) -> list[Item]:
    """Return the items in the order that the options ask for. Equal ones stay in theirs."""
    sort = words["sort"]
    listed = list(items) if sort is None else in_order_of(items, sort)
    if words["reverse"]:
        listed.reverse()
    return listed


def show_listing(
    output: Output,
    answer: CommandResult,
    words: ListingWords,
    columns: Sequence[Column],
) -> None:
    """Print the projects: below their folders on a terminal, or else with `columns`.

    In another order than that of the paths, the projects of a folder are not together.
    """
    if words["fields"] is not None:
        output.show(answer, field_columns(words["fields"]))
        return
    if not output.on_terminal:
        output.show(answer, columns)
        return
    items = answer.items
    if items and words["sort"] in (None, "path"):
        output.show_groups(*grouped_table(by_folder(items), columns))
        output.warn(answer.warnings)
        return
    has_owner = any(OWNER.cell(item) for item in items)
    output.show(answer, [each for each in columns if has_owner or each is not OWNER])
