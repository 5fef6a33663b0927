"""Orders that were chosen by what somebody saw, when somebody else has decided since."""

from __future__ import annotations

from collections.abc import Iterable

from rootsd.core.catalog import Catalog
from rootsd.core.errors import Busy
from rootsd.core.model import Project


class Overtaken(Busy):
    """Somebody decided about one of the projects meanwhile; what was to be done may differ now."""


def refuse_overtaken(seen: Iterable[Project], catalog: Catalog) -> None:
    """Raise Overtaken where one of the projects was decided about since it was `seen`."""
    if any(_is_overtaken(project, catalog) for project in seen):
        raise Overtaken("somebody else decided about this meanwhile", "rootsd ls")


def _is_overtaken(seen: Project, catalog: Catalog) -> bool:
    """A lapse is nobody's decision; an approval runs into it by the identity it carries."""
    known = catalog.projects.get(seen.path)
    if known is None or known.ruling.decision == seen.ruling.decision:
        return False
    return known.ruling.lapse is None or known.ruling.lapse == seen.ruling.lapse
