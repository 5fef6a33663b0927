"""Explain to a person why discovery does not see a folder, or why it is not safe to publish.

This runs in worker threads. It reads the configuration and the mounts itself, so that nobody waits
for the thread of discovery, which may be busy with a scan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from rootsd.core.exclusion import Exclusion
from rootsd.core.model import Parent
from rootsd.core.paths import RefusedPlaces, contains
from rootsd.discovery.mount_context import walk_rules
from rootsd.disk.explanation import explain_absence, explain_absence_outside
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.markers import WalkRules
from rootsd.disk.mounts import process_mounts
from rootsd.disk.safety import FolderSafety
from rootsd.disk.survey import FollowLinks, survey


class SightExplainer:
    """Answers questions about single folders. Several threads may use it.

    `parents` and `places` return the configured ones of this moment. Nobody else may use `safety`.
    """

    def __init__(
        self,
        parents: Callable[[], Sequence[Parent]],
        places: Callable[[], RefusedPlaces],
        detector: HungMountDetector,
        safety: FolderSafety,
    ) -> None:
        self._parents = parents
        self._places = places
        self._detector = detector
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
            return explain_absence_outside(path, self._detector.responds)
        return explain_absence(path, parent, self._rules(parent), self._detector.responds)

    def left_out(self) -> list[Exclusion]:
        """Return what the walks of all parents leave out although it may hold projects."""
        parents = self._parents()
        links = FollowLinks(
            self._detector.real_path,
            self._detector.responds,
            tuple(parent.path for parent in parents),
        )
        return [each for parent in parents for each in survey(parent, self._rules(parent), links)]

    def _rules(self, parent: Parent) -> WalkRules:
        places = self._places()
        return walk_rules(
            parent,
            (each.path for each in self._parents()),
            process_mounts().now(),
            lambda place: places.why_no_root(place) is None,
        )

    def why_unsafe(self, path: bytes) -> str | None:
        """Return why the folder may not be published, as a clause, or None if it may.

        The result is also None if the folder is out of reach.
        """
        if not self._detector.responds(path):
            return None
        with self._lock:
            try:
                hazard = self._safety.hazard(path)
            except OSError:
                return None
        return None if hazard is None else hazard.sentence
