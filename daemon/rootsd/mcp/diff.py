"""Compare two published sets, for change notifications and as text for models.

What changed between two published sets, in the terms of those who must be told.

What changed between two tool answers of one session, in words for a model.

No client that we know tells its model that a resource or a list changed. So the next answer of any
tool says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import is_

from rootsd.core.model import PublishedRoot, PublishedSet
from rootsd.core.scope import UriFilter, is_folder
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.serializers import APPROVED_URI, quoted, root_label, root_uri


@dataclass(frozen=True, slots=True)
class PublishedDiff:
    """`resources` are the URIs whose content changed, came or went. `revokes`: something that was
    published is not published in that way any more, so that nobody may be told later."""

    resources: frozenset[str]
    lists_resources: bool
    lists_roots: bool
    revokes: bool

    def __or__(self, later: PublishedDiff) -> PublishedDiff:
        """Both pieces of news as one. What came and went in between stays news: a client may have
        read it there."""
        return PublishedDiff(
            self.resources | later.resources,
            self.lists_resources or later.lists_resources,
            self.lists_roots or later.lists_roots,
            self.revokes or later.revokes,
        )


_MISSED_SETS = PublishedDiff(
    frozenset({APPROVED_URI}), lists_resources=True, lists_roots=True, revokes=True
)


@cached_by_identity(size=8)
def diff_published(before: PublishedSet, after: PublishedSet, uris: UriFilter) -> PublishedDiff:
    """Compare two sets. Where sets in between were missed, something may have come and gone:
    in doubt, that counts as a revoke."""
    seen = _diff_adjacent(before, after, uris)
    return seen if after.revision <= before.revision + 1 else seen | _MISSED_SETS


def _diff_adjacent(before: PublishedSet, after: PublishedSet, uris: UriFilter) -> PublishedDiff:
    ours, theirs = _without_common_ends(before.roots, after.roots)
    old = {root.name: root for root in ours}
    new = {root.name: root for root in theirs}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    touched = [root for name in changed for root in (old.get(name), new.get(name)) if root]
    resources = {root_uri(name) for name in changed}
    if changed:
        resources.add(APPROVED_URI)  # it shows the revision, so it changes with any root
    return PublishedDiff(
        frozenset(resources),
        lists_resources=bool(changed),
        lists_roots=any(uris is UriFilter.ANY or is_folder(root) for root in touched),
        revokes=any(name in old for name in changed),
    )


def _without_common_ends(
    ours: tuple[PublishedRoot, ...], theirs: tuple[PublishedRoot, ...]
) -> tuple[tuple[PublishedRoot, ...], ...]:
    """Both without the objects that they begin with alike, and end with alike: where one of
    thousands has changed, that leaves hardly any."""
    start = _common_prefix_length(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = _common_prefix_length(ours[::-1], theirs[::-1])
    return ours[: len(ours) - end], theirs[: len(theirs) - end]


def _common_prefix_length(
    ours: tuple[PublishedRoot, ...], theirs: tuple[PublishedRoot, ...]
) -> int:
    """How many of the first are the same objects."""
    compared = bytes(map(is_, ours, theirs))
    first_other = compared.find(0)
    return len(compared) if first_other < 0 else first_other


_MAX_NAMES = 10


@cached_by_identity(size=8)
def describe_root_changes(before: PublishedSet, after: PublishedSet) -> str:
    """Return one sentence about the roots that differ; empty if none does.

    Names are in the order of the sets, and at most ten of a kind are spelled out.
    """
    old = {root.name: root for root in before.roots}
    new = {root.name: root for root in after.roots}
    added = [root for root in after.roots if root.name not in old]
    removed = [root for root in before.roots if root.name not in new]
    changed = [root for root in after.roots if root.name in old and old[root.name] != root]
    parts = [
        f"{verb} {_format_names(roots)}"
        for verb, roots in (("added", added), ("removed", removed), ("changed", changed))
        if roots
    ]
    return f"Since your last call: {'; '.join(parts)}." if parts else ""


def _format_names(roots: list[PublishedRoot]) -> str:
    shown: Iterable[str] = (quoted(root_label(root)) for root in roots[:_MAX_NAMES])
    more = len(roots) - _MAX_NAMES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
