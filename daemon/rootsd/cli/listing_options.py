"""The options of `pending` and `ls` that choose and sort projects.

The daemon filters (`rootsd.control.listing`), because references and folders need its catalog. The
command line sorts, because the order is only for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

import click

from rootsd.cli import completion
from rootsd.cli.formatting import path_of
from rootsd.cli.time_options import Since
from rootsd.core.model import ProjectKind, Verdict
from rootsd.wire.projects import ProjectsQuery, Selection

Item = Mapping[str, Any]
Verb = Callable[..., Any]


class ListingWords(TypedDict):
    """The values of the options, as click passes them to a command."""

    refs: tuple[str, ...]
    kinds: tuple[str, ...]
    tag: str | None
    under: str | None
    since: str | None
    sort: str | None
    reverse: bool


_SORT_KEYS: Mapping[str, Callable[[Item], Any]] = {
    "name": lambda item: (item["name"].casefold(), item["name"]),
    "path": path_of,
    "age": lambda item: item["discovered_at"],
    "kind": lambda item: item["kind"],
    "verdict": lambda item: item["verdict"],
}
# What a person looks for first in these orders is at the end of the usual one.
_DESCENDING = frozenset(("age",))


def listing_options(select: Selection) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options; `select` are the projects to complete."""
    decorators = (
        click.argument(
            "refs", nargs=-1, metavar="[REF]...", shell_complete=completion.projects(select)
        ),
        click.option(
            "--kind",
            "kinds",
            multiple=True,
            type=click.Choice([kind.value for kind in ProjectKind]),
            metavar="KIND",
            help="only projects of this kind; may be repeated",
        ),
        click.option(
            "--tag",
            metavar="TAG",
            shell_complete=completion.tags,
            help="only projects with this tag",
        ),
        click.option(
            "--parent",
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
            "--sort",
            type=click.Choice(list(_SORT_KEYS)),
            metavar="|".join(_SORT_KEYS),
            help="the order: path is usual; age lists the newest first",
        ),
        click.option("--reverse", is_flag=True, help="list the projects in the other direction"),
    )

    def decorate(verb: Verb) -> Verb:
        for each in reversed(decorators):
            verb = each(verb)
        return verb

    return decorate


def query_of(
    words: ListingWords, cwd: str, select: Selection, verdict: Verdict | None = None
) -> ProjectsQuery:
    """Return the query for the projects that the options choose."""
    return ProjectsQuery(
        cwd=cwd,
        refs=words["refs"],
        select=select,
        verdict=verdict,
        tag=words["tag"],
        under=words["under"],
        kinds=tuple(map(ProjectKind, words["kinds"])),
        since=words["since"],
    )


def is_narrowed(words: ListingWords) -> bool:
    """Return whether the options leave projects out."""
    return any(words[name] for name in ("refs", "kinds", "tag", "under", "since"))


def in_order(items: Iterable[Item], words: ListingWords) -> list[Item]:
    """Return the items in the order that the options ask for. Equal ones stay in theirs."""
    listed, sort = list(items), words["sort"]
    if sort is not None:
        listed.sort(key=_SORT_KEYS[sort], reverse=sort in _DESCENDING)
    if words["reverse"]:
        listed.reverse()
    return listed
