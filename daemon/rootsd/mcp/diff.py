"""Compare two published sets, for change notifications and as text for models.

`diff_published` finds the changes that a connection must report to its subscribers.
`describe_root_changes` describes, in a sentence, what changed between two tool results of one
session. No client that we know tells its model that a resource or a list has changed. So the next
result of any tool says so.
"""

from __future__ import annotations

from operator import is_

from msgspec import Struct

from rootsd.core.labels import first_of
from rootsd.core.model import PublishedRoot, PublishedSet
from rootsd.core.scope import UriFilter, is_folder
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.serializers import APPROVED_URI, quoted, root_label, root_uri


class PublishedDiff(Struct, frozen=True):
    """The changes between two published sets, as a client sees them.

    `resources` are the URIs of resources that were added, removed, or changed. `revokes` means
    that a root was removed or changed. Such a notification must not be delayed.
    """

    resources: frozenset[str]
    lists_resources: bool
    lists_roots: bool
    revokes: bool

    def __or__(self, later: PublishedDiff) -> PublishedDiff:
        """Return both changes as one.

        A root that came and went in between still counts: a client may have read it.
        """
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
    """Return the difference between two sets.

    If sets in between were missed, a root may have come and gone. That counts as a revocation.
    """
    found = _diff_adjacent(before, after, uris)
    return found if after.revision <= before.revision + 1 else found | _MISSED_SETS


def _diff_adjacent(before: PublishedSet, after: PublishedSet, uris: UriFilter) -> PublishedDiff:
    old_roots, new_roots = _without_common_ends(before.roots, after.roots)
    old = {root.name: root for root in old_roots}
    new = {root.name: root for root in new_roots}
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
    old: tuple[PublishedRoot, ...], new: tuple[PublishedRoot, ...]
) -> tuple[tuple[PublishedRoot, ...], ...]:
    """Return both tuples without the objects that they share at the beginning and at the end.

    If one of thousands of roots has changed, almost nothing is left to compare.
    """
    start = _common_prefix_length(old, new)
    old, new = old[start:], new[start:]
    end = _common_prefix_length(old[::-1], new[::-1])
    return old[: len(old) - end], new[: len(new) - end]


def _common_prefix_length(old: tuple[PublishedRoot, ...], new: tuple[PublishedRoot, ...]) -> int:
    """Return how many of the first elements are the same objects."""
    compared = bytes(map(is_, old, new))
    first_other = compared.find(0)
    return len(compared) if first_other < 0 else first_other


_MAX_NAMES = 10


@cached_by_identity(size=8)
def describe_root_changes(before: PublishedSet, after: PublishedSet) -> str:
    """Return one sentence about the roots that differ; empty if none does.

    Names are in the order of the sets. At most ten names of each kind are spelled out.
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
    return first_of([quoted(root_label(root)) for root in roots], _MAX_NAMES)
