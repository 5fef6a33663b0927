"""What a person's reference means: a name, an id, a path, or a glob over names and paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from rootsd.core.catalog import Catalog
from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Project
from rootsd.core.paths import text_of

_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves references in one catalogue.

    `real_path` turns what a person typed into a canonical absolute path, following symlinks.
    """

    catalog: Catalog
    real_path: Callable[[str], bytes]

    def one(self, reference: str) -> Project | None:
        """The project that a name, an id or a path means; None where it means none.

        A name wins over an id, an id over a path. Raises AmbiguousReference where a last
        component fits several names.
        """
        catalog = self.catalog
        if (path := catalog.frozen_names.get(reference)) is not None:
            return catalog.projects[path]
        named = [p for p, name in catalog.proposed_names.items() if name == reference]
        if named:
            return catalog.projects[named[0]]
        if (path := catalog.ids.get(reference)) is not None:
            return catalog.projects[path]
        if (project := catalog.projects.get(self.real_path(reference))) is not None:
            return project
        return self._by_ending(reference)

    def all(
        self, references: Iterable[str], fits: Callable[[Project], bool] = lambda _: True
    ) -> list[Project]:
        """The projects that the references mean, each once, in that order.

        A glob means only projects that `fits` takes; a project that is named is named.
        Raises UnknownProject where a reference means nothing, AmbiguousReference where one that
        is no glob means several.
        """
        found: dict[bytes, Project] = {}
        for reference in references:
            for project in self._matches(reference, fits):
                found.setdefault(project.path, project)
        return list(found.values())

    def _matches(self, reference: str, fits: Callable[[Project], bool]) -> Sequence[Project]:
        if (project := self.one(reference)) is not None:
            return (project,)
        if _GLOB.isdisjoint(reference):
            raise UnknownProject(
                f"no project is called {safe_label(reference, limit=None)}", "rootsd ls"
            )
        matches = [project for project in self._by_glob(reference) if fits(project)]
        if not matches:
            raise UnknownProject(
                f"no project matches {safe_label(reference, limit=None)}", "rootsd ls"
            )
        return matches

    def _by_glob(self, pattern: str) -> list[Project]:
        matches = re.compile(translate(pattern)).match
        catalog = self.catalog
        return [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if matches(catalog.name_of(project)) or matches(text_of(project.path))
        ]

    def _by_ending(self, reference: str) -> Project | None:
        """`api` for the only one of `acme/api` and `beta/web` that ends so."""
        catalog = self.catalog
        ending = "/" + reference
        fits = [
            project
            for project in catalog.projects.values()
            if catalog.name_of(project).endswith(ending)
        ]
        if len(fits) > 1:
            names = sorted(safe_label(catalog.name_of(project)) for project in fits)
            shown = safe_label(reference)
            raise AmbiguousReference(
                f"{shown} fits several projects: {', '.join(names)}", f"rootsd show {names[0]}"
            )
        return fits[0] if fits else None
