"""Explain to a person why discovery does not see a folder, or why it is not safe to publish.

This runs in worker threads. It reads the configuration and the mounts itself, so that nobody waits
for the thread of discovery, which may be busy with a scan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import Parent
from rootsd.core.paths import RefusedPlaces, contains
from rootsd.discovery.mount_context import walk_rules
from rootsd.disk.explanation import explain_absence
from rootsd.disk.mounts import list_mounts
from rootsd.disk.safety import FolderSafety


class SightExplainer:
    """Answers questions about single folders. Several threads may use it.

    `parents` and `places` return the configured ones of this moment. `responds` tells whether the
    file system of a path responds. Nobody else may use `safety`.
    """

    def __init__(
        self,
        parents: Callable[[], Sequence[Parent]],
        places: Callable[[], RefusedPlaces],
        responds: Callable[[bytes], bool],
        safety: FolderSafety,
    ) -> None:
        self._parents = parents
        self._places = places
        self._responds = responds
        self._safety = safety
        self._lock = threading.Lock()

    def why_unseen(self, path: bytes) -> Exclusion | None:
        """Return why discovery does not propose the folder at `path`, or None if it does.

        `path` is absolute. No link in it is followed.
        """
        parents = self._parents()
        holding = (parent for parent in parents if contains(parent.path, path))
        parent = max(holding, key=lambda each: len(each.path), default=None)
        if parent is None:
            return Exclusion(ExclusionReason.OUTSIDE, path)
        places = self._places()
        rules = walk_rules(
            parent,
            (each.path for each in parents),
            list_mounts(),
            lambda place: places.why_no_root(place) is None,
        )
        return explain_absence(path, parent, rules, self._responds)

    def why_unsafe(self, path: bytes) -> str | None:
        """Return why the folder may not be published, as a clause, or None if it may.

        The result is also None if the folder is out of reach.
        """
        if not self._responds(path):
            return None
        with self._lock:
            try:
                hazard = self._safety.hazard(path)
            except OSError:
                return None
        return None if hazard is None else hazard.sentence
