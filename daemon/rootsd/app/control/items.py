"""Projects as items of the public `rootsd/1` schema."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

from rootsd.app.control.worktrees import why_not_inherited
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.model import Presence, Project, ProjectKind, Verdict
from rootsd.core.parents import Parent
from rootsd.core.paths import contains, is_utf8, text_of, to_uri
from rootsd.wire.projects import Item

NoteOn = Callable[[bytes], str | None]

_NO_ORIGINS: Mapping[bytes, str] = MappingProxyType({})


class RequestNote(str):
    """A note that says which session asks for a folder, and why."""

    __slots__ = ()


def without_note(_: bytes) -> str | None:
    """What to say of a folder where nothing is known beside the catalogue."""
    return None


def items_of(
    catalog: Catalog,
    projects: Iterable[Project],
    parents: Sequence[Parent],
    note_on: NoteOn = without_note,
    origins: Mapping[bytes, str] = _NO_ORIGINS,
) -> list[Item]:
    """The items of `projects`, in their order. `note_on` says more of those that wait for a
    decision, by their path; `origins` are those that were read, by path."""
    items = []
    for project in projects:
        item = _item(catalog, project, parents)
        if (session := catalog.bound.get(project.path)) is not None:
            item["session"] = session.label
        item["origin"] = origin = origins.get(project.path)
        asker = note_on(project.path) if catalog.is_waiting(project) else None
        if isinstance(asker, RequestNote):
            item["request"] = asker
        inherits = why_not_inherited(catalog, project)
        notes = (item["note"], inherits, _on_origin(catalog, project, origin), asker)
        item["note"] = "; ".join(note for note in notes if note) or None
        items.append(item)
    return items


def dropped_items_of(
    before: Catalog, projects: Iterable[Project], parents: Sequence[Parent]
) -> list[Item]:
    """The items of projects that `before` still held: gone from the disk, nothing decided."""
    items = items_of(before, projects, parents)
    for item in items:
        item["verdict"] = Verdict.PENDING.value
        item["presence"] = Presence.MISSING.value
        item["lapsed"] = item["note"] = None
    return items


@lru_cache(maxsize=64)  # thousands of projects were found, or decided about, in one moment
def rfc3339(moment: datetime) -> str:
    """A time as RFC 3339 in UTC with whole seconds: `2026-11-21T12:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(catalog: Catalog, project: Project, parents: Sequence[Parent]) -> Item:
    seen, ruling = project.sighting, project.ruling
    decided_at = ruling.decision.at if ruling.decision else None
    if decided_at is None and ruling.grants:
        decided_at = ruling.grants[-1].at
    expires = ruling.decision.expires if ruling.decision else None
    root = catalog.roots.get(project.path)
    is_folder = seen.kind is not ProjectKind.URI
    readable = is_utf8(project.path)
    return Item(
        id=project.id,
        name=catalog.name_of(project),
        path=text_of(project.path) if is_folder and readable else None,
        path_b64=None if readable else b64encode(project.path).decode(),
        uri=(to_uri(project.path) if is_folder else text_of(project.path)) if readable else None,
        kind=seen.kind.value,
        verdict=catalog.judgements[project.path].verdict.value,
        presence=seen.presence.value,
        published=root is not None,
        lapsed=ruling.lapse.reason.value if ruling.lapse and ruling.is_lapsed else None,
        incomplete=seen.incomplete.value if seen.incomplete else None,
        tags=list(ruling.tags),
        access=ruling.access.value,
        parent=_parent_of(project, parents),
        discovered_at=rfc3339(seen.first_seen),
        decided_at=rfc3339(decided_at) if decided_at else None,
        expires_at=rfc3339(expires.at) if expires else None,
        origin=None,
        branch=None,
        worktree_of=text_of(seen.main_checkout) if seen.main_checkout else None,
        declared_names=None,
        project_files=None,
        findings=None,
        note=_note(catalog, project),
    )


def _parent_of(project: Project, parents: Sequence[Parent]) -> str | None:
    """The innermost parent that the project lies in."""
    holding = [parent.path for parent in parents if contains(parent.path, project.path)]
    return text_of(max(holding, key=len)) if holding else None


def _note(catalog: Catalog, project: Project) -> str | None:
    """Return what a person should know that no other field says."""
    return _why_unpublishable(catalog, project) or _why_this_verdict(catalog, project)


def _why_unpublishable(catalog: Catalog, project: Project) -> str | None:
    """Return why no approval could publish `project` as it is, or None."""
    if catalog.is_hopeless(project):
        return f"can never be published: {catalog.why_never(project)}"
    if not is_utf8(project.path):
        return "not published: the path is not UTF-8"
    if project.sighting.hazard is not None:
        return f"cannot be published: {project.sighting.hazard.value}"
    return None


def _why_this_verdict(catalog: Catalog, project: Project) -> str | None:
    """Return what led to the verdict on `project`, or None if the verdict says it all."""
    judgement = catalog.judgements[project.path]
    match judgement.ground:
        case Ground.APPROVED if (session := catalog.bound.get(project.path)) is not None:
            return f"for the session of {session.label} alone"
        case Ground.HOLDS_DENIED:
            inner = next(p for p in catalog.below(project.path) if catalog.is_denied(p))
            return f"withheld: holds {catalog.name_of(inner)}, which is denied"
        case Ground.DENIED_ABOVE | Ground.MAIN_CHECKOUT if isinstance(judgement.by, bytes):
            return f"{judgement.ground.value}: {text_of(judgement.by)}"
        case Ground.DENY_RULE | Ground.APPROVE_RULE if isinstance(judgement.by, int):
            return f"{judgement.ground.value} {judgement.by}"
        case Ground.LAPSED if project.ruling.lapse is not None and not project.ruling.is_lapsed:
            return f"its approval ended {rfc3339(project.ruling.lapse.at)}"
        case Ground.LAPSED if project.ruling.lapse is not None:
            return f"approval lapsed: {project.ruling.lapse.reason.value}"
        case Ground.UNDECIDED if (before := catalog.moved_from(project)) is not None:
            return f"moved from {_as_it_was(catalog, before)}"
        case _:
            return None


def _on_origin(catalog: Catalog, project: Project, origin: str | None) -> str | None:
    """What a project's origin, as it is now, says beside that of what was decided about."""
    if origin is None:
        return None
    known = project.ruling.origin
    if known is not None and known != origin:
        return f"its origin was {known}"
    if known is not None:
        return "same origin" if catalog.is_waiting(project) else None
    before = catalog.cloned_again(project, origin)
    if before is None or catalog.moved_from(project) is not None:
        return None
    return f"same origin as {_as_it_was(catalog, before)}"


def _as_it_was(catalog: Catalog, before: Project) -> str:
    """Where a project was before it came here, and what it was there."""
    decision = before.ruling.decision
    was = [decision.verdict.value] if decision is not None else []
    was += [f"as {catalog.name_of(before)}", *(f"#{tag}" for tag in before.ruling.tags)]
    return f"{text_of(before.path)}, was {' '.join(was)}"
