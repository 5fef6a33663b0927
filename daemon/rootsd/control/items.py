"""Convert projects and worktrees to items of the public `rootsd/1` schema."""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from rootsd.core.catalog import Catalog
from rootsd.core.decide import (
    InheritanceBlocker,
    VerdictReason,
    inheritance_blocker,
    policy_refusal,
)
from rootsd.core.encoding import changes_fingerprint, identity_fingerprint
from rootsd.core.labels import safe_label
from rootsd.core.model import Parent, Presence, Project, ProjectKind, Verdict
from rootsd.core.paths import PolicyEntry, bytes_of, contains, is_utf8, text_of, to_uri
from rootsd.core.rules import why_uncovered
from rootsd.core.shared_git import GitAccess, shared_git
from rootsd.core.timestamps import rfc3339
from rootsd.wire.projects import (
    ProjectItem,
    RequestNote,
    SharedGitItem,
    WorktreeItem,
    named_folder,
)

NO_LONGER_LISTED = "no longer listed"
_UNDECIDED_REASONS = (VerdictReason.UNDECIDED, VerdictReason.LAPSED)


def worktree_items(catalog: Catalog, mains: Iterable[bytes]) -> list[WorktreeItem]:
    """Return the worktrees of the checkouts `mains` that inherit an approval, or could.

    Leave out worktrees with a decision of their own, and those that are incomplete or out of
    reach.
    """
    linked = (path for main in mains for path in sorted(catalog.worktrees.get(main, ())))
    projects = (catalog.projects[path] for path in linked)
    return [item for each in projects if (item := _worktree_item(catalog, each)) is not None]


def _worktree_item(catalog: Catalog, project: Project) -> WorktreeItem | None:
    path, main = project.path, project.observed.main_checkout
    reason = catalog.judgments[path].reason
    is_inherited = reason is VerdictReason.MAIN_CHECKOUT and path in catalog.roots
    blocker = (
        inheritance_blocker(project, catalog.decision_context)
        if catalog.is_pending(project)
        else None
    )
    if main is None or not (is_inherited or blocker):
        return None
    return WorktreeItem(
        **named_folder(project.id, catalog.name_of(project), path),
        main=text_of(main),
        identity=identity_fingerprint(project.observed.identity),
        published=is_inherited,
        confirmable=blocker is InheritanceBlocker.OLDER,
        reason=blocker.value if blocker else None,
    )


def shared_git_item(
    catalog: Catalog, project: Project, git_directory: str | None = None
) -> SharedGitItem | None:
    """Return the Git directory that `project` uses in another checkout, or None if it has its own.

    An approval of `project` can include it if the checkout is undecided. `git_directory` is where
    it is, if somebody has looked. The wall shows none that lies outside of its checkout.
    """
    git = shared_git(catalog, project)
    if git is None:
        return None
    checkout = catalog.projects.get(git.checkout)
    is_bare = checkout is not None and checkout.observed.kind is ProjectKind.GIT_BARE
    place = text_of(git.checkout)
    if git_directory is None:
        git_directory = place if is_bare else f"{place}/.git"
    access = git.access
    if (access.is_granted or access is GitAccess.CHECKOUT_PENDING) and not contains(
        git.checkout, bytes_of(git_directory)
    ):
        access = GitAccess.OUTSIDE
    id_, name = ("", place) if checkout is None else (checkout.id, catalog.name_of(checkout))
    return SharedGitItem(
        **named_folder(id_, name, git.checkout),
        root=project.id,
        root_name=catalog.name_of(project),
        access=project.ruling.access.value,
        git_directory=git_directory if is_utf8(bytes_of(git_directory)) else None,
        identity=identity_fingerprint(git.identity),
        included=access.is_granted,
        confirmable=access is GitAccess.CHECKOUT_PENDING,
        reason=access.value,
    )


def why_not_inherited(catalog: Catalog, project: Project) -> str | None:
    """Return a sentence that says why a worktree is not published with its main checkout.

    Return None for a decided project, and for a project that is no worktree of an approved
    checkout.
    """
    seen = project.observed
    if seen.kind is not ProjectKind.GIT_WORKTREE or seen.presence is not Presence.PRESENT:
        return None
    judgment = catalog.judgments[project.path]
    if judgment.verdict is not Verdict.PENDING or judgment.reason not in _UNDECIDED_REASONS:
        return None
    if seen.main_checkout is None:
        return (
            "no repository links back to this worktree; if you moved it:"
            f" git -C {shlex.quote(safe_label(project.path, limit=None))} worktree repair"
        )
    if (blocker := inheritance_blocker(project, catalog.decision_context)) is None:
        return None
    main = catalog.projects[seen.main_checkout]
    name = safe_label(catalog.name_of(main))
    how = f" (rootsd approve {name} --worktrees)" if blocker is InheritanceBlocker.OLDER else ""
    return f"not published with {name}: {blocker.value}{how}"


NoteForPath = Callable[[bytes], str | None]

_NO_ORIGINS: Mapping[bytes, str] = MappingProxyType({})


def project_items(
    catalog: Catalog,
    projects: Iterable[Project],
    parents: Sequence[Parent],
    note_on: NoteForPath | None = None,
    origins: Mapping[bytes, str] = _NO_ORIGINS,
) -> list[ProjectItem]:
    """Return the items of `projects`, in their order.

    `note_on` returns a note about a pending project by its path. `origins` are the origins that
    were read, by path.
    """
    items = []
    for project in projects:
        is_open = catalog.is_open(project)
        obstacle = catalog.why_unpublishable(project) if is_open else None
        item = _project_item(catalog, project, parents)
        if (session := catalog.session_bound.get(project.path)) is not None:
            item["session"] = session.label
        if changed := project.changed_files:
            item["changed"] = changed
            item["changes"] = changes_fingerprint(project)
        item["origin"] = origin = origins.get(project.path)
        request_note = None
        if note_on is not None and is_open and obstacle is None:
            request_note = note_on(project.path)
        if isinstance(request_note, RequestNote):
            item["request"] = request_note
            item["requests"] = list(request_note.requests)
        notes = (
            _why_unpublishable(project, obstacle) or _why_this_verdict(catalog, project),
            why_not_inherited(catalog, project),
            _origin_note(catalog, project, origin),
            request_note,
        )
        item["note"] = "; ".join(note for note in notes if note) or None
        items.append(item)
    return items


def dropped_project_items(
    before: Catalog, projects: Iterable[Project], parents: Sequence[Parent]
) -> list[ProjectItem]:
    """Return the items of undecided projects that were in `before` and are gone from the disk."""
    items = unlisted_project_items(before, projects, parents)
    for item in items:
        item["presence"] = Presence.MISSING.value
        item["note"] = None
    return items


def unlisted_project_items(
    before: Catalog, projects: Iterable[Project], parents: Sequence[Parent]
) -> list[ProjectItem]:
    """Return the items of forgotten projects that were in `before`, and that no scan finds."""
    items = project_items(before, projects, parents)
    for item in items:
        item["verdict"] = Verdict.PENDING.value
        item["published"] = False
        item["lapsed"] = None
        item["note"] = NO_LONGER_LISTED
    return items


def _project_item(catalog: Catalog, project: Project, parents: Sequence[Parent]) -> ProjectItem:
    seen, ruling = project.observed, project.ruling
    decided_at = ruling.decision.at if ruling.decision else None
    if decided_at is None and ruling.grants:
        decided_at = ruling.grants[-1].at
    expires = ruling.decision.expires if ruling.decision else None
    root = catalog.roots.get(project.path)
    is_folder = seen.kind is not ProjectKind.URI
    readable = is_utf8(project.path)
    return ProjectItem(
        id=project.id,
        name=catalog.name_of(project),
        path=text_of(project.path) if is_folder and readable else None,
        path_b64=None if readable else b64encode(project.path).decode(),
        uri=(to_uri(project.path) if is_folder else text_of(project.path)) if readable else None,
        kind=seen.kind.value,
        verdict=catalog.judgments[project.path].verdict.value,
        presence=seen.presence.value,
        published=root is not None,
        lapsed=ruling.lapse.reason.value if ruling.lapse and ruling.is_lapsed else None,
        incomplete=seen.incomplete.value if seen.incomplete else None,
        tags=list(ruling.tags),
        access=ruling.access.value if root is None else root.access.value,
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
        note=None,
    )


def _parent_of(project: Project, parents: Sequence[Parent]) -> str | None:
    """Return the innermost parent that contains the project."""
    holding = [parent.path for parent in parents if contains(parent.path, project.path)]
    return text_of(max(holding, key=len)) if holding else None


def _why_unpublishable(project: Project, obstacle: str | None) -> str | None:
    """Return why no approval could publish `project` as it is, or None.

    `obstacle` is why one could not publish it in its place.
    """
    if obstacle is not None:
        return f"can never be published: {obstacle}"
    if not is_utf8(project.path):
        return "not published: the path is not UTF-8"
    if project.observed.hazard is not None:
        return f"cannot be published: {project.observed.hazard.value}"
    return None


def _why_this_verdict(catalog: Catalog, project: Project) -> str | None:
    """Return the reason for the verdict on `project`, or None if none is needed."""
    judgment = catalog.judgments[project.path]
    match judgment.reason:
        case VerdictReason.UNDECIDED:  # first, because most projects of a long listing are
            return _why_undecided(catalog, project)
        case VerdictReason.APPROVED if (
            session := catalog.session_bound.get(project.path)
        ) is not None:
            return f"only for the session of {session.label}"
        case reason if reason.is_policy_denial:
            return policy_refusal(judgment, catalog.policy)
        case VerdictReason.POLICY_APPROVE_RULE if isinstance(judgment.by, PolicyEntry):
            return f"{judgment.reason.value}: {judgment.by.source}"
        case VerdictReason.HOLDS_DENIED:
            inner = catalog.denied_inside(project.path)
            return f"withheld: contains {catalog.name_of(inner)}, which is denied"
        case VerdictReason.DENIED_ABOVE | VerdictReason.MAIN_CHECKOUT if isinstance(
            judgment.by, bytes
        ):
            return _verdict_of(catalog, judgment.reason, judgment.by)
        case VerdictReason.DENY_RULE | VerdictReason.APPROVE_RULE if isinstance(judgment.by, int):
            rule = next(each for each in catalog.rules if each.number == judgment.by)
            return f"{judgment.reason.value} {rule.number}{rule.conditions}"
        case VerdictReason.LAPSED if (
            project.ruling.lapse is not None and not project.ruling.is_lapsed
        ):
            return f"its approval ended {rfc3339(project.ruling.lapse.at)}"
        case VerdictReason.LAPSED if project.ruling.lapse is not None:
            return f"approval lapsed: {project.ruling.lapse.reason.value}"
        case _:
            return None


def _why_undecided(catalog: Catalog, project: Project) -> str | None:
    before = catalog.moved_from(project)
    if before is not None:
        return f"moved from {_previous_state(catalog, before)}"
    return "; ".join(uncovered_rules(catalog, project)) or None


def uncovered_rules(catalog: Catalog, project: Project) -> list[str]:
    """Return a sentence for each approve rule whose pattern matches, and that does not cover."""
    return [
        f"rule {rule.number} does not cover it: {why}"
        for rule in catalog.rules
        if rule.verdict is Verdict.APPROVED and (why := why_uncovered(rule, project))
    ]


def _verdict_of(catalog: Catalog, reason: VerdictReason, path: bytes) -> str:
    """Return the reason for a verdict that is that of another project, at `path`."""
    main = catalog.projects.get(path)
    if reason is VerdictReason.MAIN_CHECKOUT and main is not None:
        return f"approved with {catalog.name_of(main)}"
    return f"{reason.value}: {text_of(path)}"


def _origin_note(catalog: Catalog, project: Project, origin: str | None) -> str | None:
    """Return how the origin compares with the origin at the time of the decision, or None."""
    if origin is None:
        return None
    known = project.ruling.origin
    if known is not None and known != origin:
        return f"its origin was {known}"
    if known is not None:
        return "same origin" if catalog.is_pending(project) else None
    before = catalog.missing_with_origin(project, origin)
    if before is None or catalog.moved_from(project) is not None:
        return None
    return f"same origin as {_previous_state(catalog, before)}"


def _previous_state(catalog: Catalog, before: Project) -> str:
    """Return the previous path, verdict, name, and tags of a project that moved."""
    decision = before.ruling.decision
    was = [decision.verdict.value] if decision is not None else []
    was += [f"as {catalog.name_of(before)}", *(f"#{tag}" for tag in before.ruling.tags)]
    return f"{text_of(before.path)}, was {' '.join(was)}"
