"""What changed between two published sets, in the terms of those who must be told."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_

from rootsd.core.model import Published, Root
from rootsd.core.scope import Uris, is_folder
from rootsd.publish.memo import shared
from rootsd.publish.shapes import APPROVED_URI, root_uri


@dataclass(frozen=True, slots=True)
class Difference:
    """`resources` are the URIs whose content changed, came or went. `revokes`: something that was
    published is not published in that way any more, so that nobody may be told later."""

    resources: frozenset[str]
    lists_resources: bool
    lists_roots: bool
    revokes: bool

    def __or__(self, later: Difference) -> Difference:
        """Both pieces of news as one. What came and went in between stays news: a client may have
        read it there."""
        return Difference(
            self.resources | later.resources,
            self.lists_resources or later.lists_resources,
            self.lists_roots or later.lists_roots,
            self.revokes or later.revokes,
        )


_UNSEEN = Difference(
    frozenset({APPROVED_URI}), lists_resources=True, lists_roots=True, revokes=True
)


@shared(size=8)
def difference(before: Published, after: Published, uris: Uris) -> Difference:
    """Compare two sets. Where sets in between were missed, something may have come and gone:
    in doubt, that counts as a revoke."""
    seen = _compared(before, after, uris)
    return seen if after.revision <= before.revision + 1 else seen | _UNSEEN


def _compared(before: Published, after: Published, uris: Uris) -> Difference:
    ours, theirs = _apart(before.roots, after.roots)
    old = {root.name: root for root in ours}
    new = {root.name: root for root in theirs}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    touched = [root for name in changed for root in (old.get(name), new.get(name)) if root]
    resources = {root_uri(name) for name in changed}
    if changed:
        resources.add(APPROVED_URI)  # it shows the revision, so it changes with any root
    return Difference(
        frozenset(resources),
        lists_resources=bool(changed),
        lists_roots=any(uris is Uris.ANY or is_folder(root) for root in touched),
        revokes=any(name in old for name in changed),
    )


def _apart(ours: tuple[Root, ...], theirs: tuple[Root, ...]) -> tuple[tuple[Root, ...], ...]:
    """Both without the objects that they begin with alike, and end with alike: where one of
    thousands has changed, that leaves hardly any."""
    start = _alike(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = _alike(ours[::-1], theirs[::-1])
    return ours[: len(ours) - end], theirs[: len(theirs) - end]


def _alike(ours: tuple[Root, ...], theirs: tuple[Root, ...]) -> int:
    """How many of the first are the same objects."""
    compared = bytes(map(is_, ours, theirs))
    first_other = compared.find(0)
    return len(compared) if first_other < 0 else first_other
