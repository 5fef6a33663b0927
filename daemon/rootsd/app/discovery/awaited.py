"""Approved roots that are gone: what comes to lie at their paths is looked at.

It may be the root itself, or something else that takes its place, by which the approval lapses. A
tree tells of neither a link nor a folder without a marker; and of what no parent holds, no watch
is left once it is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rootsd.app.discovery.strays import Strays
from rootsd.app.discovery.terrain import Terrain
from rootsd.app.discovery.territories import Territories
from rootsd.app.discovery.told import Told
from rootsd.core.inputs import Observation, Vanished
from rootsd.core.model import Project
from rootsd.core.paths import ancestors, base_name


class Awaited:
    """What a tree holds is left to it. Nothing is reported here: the observations are handed
    back."""

    def __init__(
        self, told: Told, strays: Strays, terrain: Terrain, territories: Territories
    ) -> None:
        self._told = told
        self._strays = strays
        self._terrain = terrain
        self._territories = territories
        self._all: Mapping[bytes, Project] = MappingProxyType({})

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._all)

    def expect(self, projects: Mapping[bytes, Project]) -> list[Observation]:
        """Await these, by path, from now on; what is to be said of those that came already."""
        fresh = projects.keys() - self._all.keys()
        self._all = projects
        self._terrain.heed_names(_names_on_the_way(projects))
        return self._look_at(fresh)

    def look_at_all(self) -> list[Observation]:
        """What came to lie at their paths."""
        return self._look_at(self._all)

    def look_below(self, changed: Iterable[bytes]) -> list[Observation]:
        """The same of those that lie at or below a path where something changed."""
        if not self._all:
            return []
        changed = set(changed)
        return self._look_at(
            path for path in self._all if not changed.isdisjoint((path, *ancestors(path)))
        )

    def _look_at(self, paths: Iterable[bytes]) -> list[Observation]:
        come = [path for path in paths if self._has_come(path)]
        self._told.know(self._all[path] for path in come)
        self._strays.know(come)
        self._strays.name(path for path in come if self._all[path].sighting.named)
        seen = self._strays.look_at(come)
        for path in (each.path for each in seen if each == Vanished(each.path)):
            self._told.forget(path)  # it is not what was awaited, and no other one: still gone
            self._strays.forget(path)
        return [each for each in seen if each != Vanished(each.path)]

    def _has_come(self, path: bytes) -> bool:
        if self._territories.hold(path) or not self._terrain.answers(path):
            return False
        return os.path.lexists(path)


def _names_on_the_way(paths: Iterable[bytes]) -> frozenset[bytes]:
    """The names of the folders at these paths and above: a link may come in the place of each."""
    return frozenset(base_name(on) for path in paths for on in (path, *ancestors(path)))
