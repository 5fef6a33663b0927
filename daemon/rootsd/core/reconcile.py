"""What a scan proves, and what it only makes doubtful.

A scan does not prove absence: a folder it could not read looks empty. Projects that were expected
and not seen become doubts, to be probed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rootsd.core.inputs import Observation, Sighted, Unreachable
from rootsd.core.parents import Coverage
from rootsd.core.paths import contains


@dataclass(frozen=True, slots=True)
class Reconciled:
    """`observations` are facts; `doubts` are paths to probe."""

    observations: tuple[Observation, ...]
    doubts: tuple[bytes, ...]


def reconcile(
    parent: bytes, sighted: Iterable[Sighted], coverage: Coverage, known: Iterable[bytes]
) -> Reconciled:
    """One scan of `parent` against the projects known before.

    A parent that could not be read at all suspends what is known below it.
    """
    seen = tuple(sighted)
    found = {sighting.path for sighting in seen}
    unseen = sorted(path for path in known if contains(parent, path) and path not in found)
    if coverage is Coverage.NONE:
        return Reconciled((*seen, *(Unreachable(path) for path in unseen)), ())
    return Reconciled(seen, tuple(unseen))
