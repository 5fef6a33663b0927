"""Find the projects that a `ProjectsQuery` asks for.

The daemon uses this for its answers, and the command line for the stored state while no daemon
runs. So a filter means the same in both, and there is one place for it. References and folders
need the catalog and the disk, and the daemon reads the risks of only the projects that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rootsd.control.references import ReferenceResolver, canonical_path
from rootsd.core.catalog import Catalog
from rootsd.core.labels import safe_label
from rootsd.core.model import Project
from rootsd.core.paths import contains
from rootsd.wire.projects import ProjectsQuery
from rootsd.wire.request import BadRequest


def matching_projects(
    catalog: Catalog, query: ProjectsQuery, real_path: Callable[[str, str], bytes]
) -> list[Project]:
    """Return the projects that match everything in `query` except its selection.

    They are in the order of the references, or else of their paths. With references or `under`,
    this reads the disk, so call it in a thread. Raises RootsdError if a reference means nothing or
    is ambiguous, and BadRequest if `under` is not a path or `since` is not a time.
    """

    def canonical(typed: str) -> bytes:
        return canonical_path(real_path, typed, query.cwd)

    named: Sequence[Project] = (
        ReferenceResolver(catalog, canonical).all(query.refs)
        if query.refs
        else sorted(catalog.projects.values(), key=lambda project: project.path)
    )
    under = None if query.under is None else canonical(query.under)
    since = None if query.since is None else _time(query.since)
    return [
        project
        for project in named
        if (query.verdict is None or catalog.judgments[project.path].verdict is query.verdict)
        and (query.tag is None or query.tag in project.ruling.tags)
        and (not query.kinds or project.observed.kind in query.kinds)
        and (under is None or contains(under, project.path))
        and (since is None or project.observed.first_seen >= since)
    ]


def _time(typed: str) -> datetime:
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        shown = safe_label(typed)
        raise BadRequest(f"{shown} is not an RFC 3339 time such as 2026-11-21T12:00:00Z")
    return moment
