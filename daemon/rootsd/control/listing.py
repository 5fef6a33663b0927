"""Find the projects that a `ProjectsQuery` asks for, and say what is risky about them.

The daemon uses this for its answers, and the command line for the stored state while no daemon
runs. So a filter means the same in both, and there is one place for it. References and folders
need the catalog and the disk, and the daemon reads the risks of only the projects that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from datetime import datetime

from rootsd.control.references import ReferenceResolver, canonical_path
from rootsd.core.catalog import Catalog
from rootsd.core.errors import UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.core.paths import contains
from rootsd.core.risks import describe_risks, risks_in
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.core.uris import owner_of
from rootsd.vcs.facts import CollectedRisks
from rootsd.wire.projects import ProjectItem, ProjectsQuery, RiskFilter, RiskReading, Selection
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

    resolver = ReferenceResolver(catalog, canonical)
    find = resolver.all if query.select is Selection.NAMED else resolver.every
    named: Sequence[Project] = (
        find(query.refs)
        if query.refs
        else [catalog.projects[path] for path in catalog.sorted_paths]
    )
    under = None if query.under is None else canonical(query.under)
    _check_tag(catalog, query.tag)
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


def _check_tag(catalog: Catalog, tag: str | None) -> None:
    """Raise UnknownProject if no project has the tag, and another tag is nearly the same."""
    if tag is None:
        return
    known = {each for project in catalog.projects.values() for each in project.ruling.tags}
    if tag in known or not (similar := nearest(tag, known)):
        return
    hint = did_you_mean(map(safe_label, similar))
    message = f"no project has the tag {safe_label(tag)}{hint}"
    raise UnknownProject(message, "rootsd tag", typed=tag, choices=similar)


def _time(typed: str) -> datetime:
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        shown = safe_label(typed)
        raise BadRequest(f"{shown} is not an RFC 3339 time such as 2026-11-21T12:00:00Z")
    return moment


def matches_risk(found: CollectedRisks | None, filters: Collection[RiskFilter]) -> bool:
    """Return whether a project matches any of the filters. Without filters, each one does.

    `found` is None if the project was not read. Then it may have any risk.
    """
    if not filters:
        return True
    risks = [] if found is None else [RiskFilter(risk.value) for risk in risks_in(found.findings)]
    if found is None or not found.is_whole:
        risks.append(RiskFilter.UNREAD)
    risks.append(RiskFilter.ANY if risks else RiskFilter.NONE)
    return not set(risks).isdisjoint(filters)


def add_risks(item: ProjectItem, found: CollectedRisks | None) -> None:
    """Add what was found to the item of a project. Without it, the risk is null."""
    if found is None:
        item["risk"] = item["origin_owner"] = None
        return
    item["findings"] = found.findings
    item["findings_left_out"] = found.left_out
    item["findings_whole"] = found.is_whole
    item["risk"] = describe_risks(found.findings, is_whole=found.is_whole)
    item["origin_owner"] = owner_of(found.origin) or None if found.origin else None


def unread_warnings(
    projects: Collection[Project], risks: Container[bytes], reading: RiskReading
) -> list[str]:
    """Return a warning if some of the projects were not read, although their folders are there."""
    if reading is RiskReading.NEVER:  # first, because counting 20,000 delays others by 6 ms
        return []
    unread = sum(
        project.path not in risks
        and project.observed.presence is Presence.PRESENT
        and project.observed.kind is not ProjectKind.URI
        for project in projects
    )
    if not unread:
        return []
    which = "the" if unread == len(projects) else f"{unread:,} of {len(projects):,}"
    how = "--risk any" if reading is RiskReading.QUICK else "--since"
    return [
        f"the risks of {which} projects are not known, because reading them takes too long;"
        f" use REF, --under, or {how}"
    ]
