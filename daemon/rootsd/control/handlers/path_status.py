"""Handle check and why: report the status of a path and the reasons for its verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from anyio import to_thread

from rootsd.control.exclusions import clause_of, explain_exclusion
from rootsd.control.items import project_items, uncovered_rules, why_not_inherited
from rootsd.control.references import (
    ReferenceResolver,
    several_match,
)
from rootsd.control.routes import Route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Judgment, VerdictReason, approving_rule, judgments_by_precedence
from rootsd.core.exclusion import ExclusionReason
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    IncompleteReason,
    Presence,
    Project,
    PublishedRoot,
    PublishedSet,
    Verdict,
)
from rootsd.core.paths import PolicyEntry, bytes_of, text_of
from rootsd.core.policy import NO_POLICY
from rootsd.core.scope import session_start_in, workspace_at_start
from rootsd.core.transition import incomplete_error
from rootsd.core.uris import looks_like_uri
from rootsd.wire.projects import CheckQuery, PathCheckResult, ReasonItem, WhyQuery, WhyResult
from rootsd.wire.request import BadRequest

# These reasons apply only if no other does.
_FALLBACK_REASONS = (VerdictReason.LAPSED, VerdictReason.UNDECIDED)
_UNUSUAL_REASONS = (
    *_FALLBACK_REASONS,
    VerdictReason.POLICY_PLACE,
    VerdictReason.POLICY_DENY_RULE,
    VerdictReason.POLICY_APPROVE_RULE,
)
# A decision of a person about the project itself.
_PERSON_REASONS = (VerdictReason.APPROVED, VerdictReason.DENIED)


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = PathStatusHandlers(services)
    return query_route(CheckQuery, handlers.check), query_route(WhyQuery, handlers.why)


class PathStatusHandlers(Handlers):
    """Handles `CheckQuery` and `WhyQuery`."""

    async def check(self, query: CheckQuery) -> PathCheckResult:
        """Return whether the path is in a root as the disk is now, or whether the URI is a root.

        Raises BadRequest if it is neither an absolute path nor a URI, and AmbiguousReference if
        its name means several projects.
        """
        path = await self._canonical(query.path)
        if (named := await self._named(query.name, path)) is None:
            return await self._status(path, query.workspace)
        status = await self._status(named.path, query.workspace)
        status["named_path"] = text_of(named.path)
        return status

    async def _status(self, path: bytes, workspace: str | None) -> PathCheckResult:
        where = None if workspace is None else await self._canonical(workspace)
        root = await self.ledger.root_at(path)
        if root is not None and where is not None and not self._is_in_workspace(root, where):
            return PathCheckResult(
                published=False, verdict=Verdict.APPROVED.value, root=None, access=None
            )
        if root is not None:
            return PathCheckResult(
                published=True,
                verdict=Verdict.APPROVED.value,
                root=root.name,
                access=root.access.value,
            )
        catalog = self.ledger.catalog
        project = catalog.project_containing(path)
        verdict = catalog.judgments[project.path].verdict if project else None
        if verdict is Verdict.APPROVED:
            # The project is approved but not published, because its folder is out of reach.
            verdict = Verdict.PENDING
        return PathCheckResult(published=False, verdict=verdict, root=None, access=None)

    def _is_in_workspace(self, root: PublishedRoot, folder: bytes) -> bool:
        catalog = self.ledger.catalog
        published = PublishedSet(self.ledger.revision, tuple(catalog.roots.values()))
        return root.path in workspace_at_start(published, session_start_in(catalog, folder))

    async def why(self, query: WhyQuery) -> WhyResult:
        """Return the reasons for and against the innermost project at or above the path.

        The project is verified on disk. Raises BadRequest if the query has neither an absolute
        path nor a URI.
        """
        path = await self._canonical(query.path)
        named = await self._named(query.name, path)
        path = path if named is None else named.path
        revision = (await self.ledger.current()).revision
        root = await self.ledger.root_at(path)
        catalog = self.ledger.catalog
        project = catalog.project_containing(path)
        known = [] if project is None else [project]
        # A root for one session is published, too, but `check` cannot tell which session asks.
        root = root or (catalog.roots.get(project.path) if project is not None else None)
        return WhyResult(
            revision=revision,
            path=text_of(path),
            published=root is not None,
            root=None if root is None else root.name,
            items=project_items(catalog, known, self.discovery.parents(), self.services.note_on),
            voices=[] if project is None else _reasons(project, catalog),
            obstacles=await self._obstacles(query.path, path, project),
            warnings=[],
        )

    async def _obstacles(self, typed: str, path: bytes, project: Project | None) -> list[str]:
        """Return a sentence for each reason, besides a verdict, why `path` is not published.

        `typed` is the path with its links.
        """
        catalog = self.ledger.catalog
        if project is None:
            obstacles = ["no project is known at or above it"]
            if (reason := catalog.places.why_no_root(path)) is not None:
                obstacles.append(reason)
            return [*obstacles, *await self._why_unknown(typed, path)]
        hazard = await self.discovery.why_unsafe(project.path) if project.observed.hazard else None
        obstacles = _obstacles(project, catalog, hazard)
        if project.path != path:
            unseen = await self.discovery.why_unseen(path)
            if unseen is not None and unseen.reason is ExclusionReason.IN_PROJECT:
                obstacles.append(explain_exclusion(unseen, path))
        return obstacles

    async def _why_unknown(self, typed: str, path: bytes) -> list[str]:
        """Return why discovery does not find the path that was typed, and the one it leads to."""
        if looks_like_uri(typed):
            return []
        reasons = []
        if (raw := _normal(typed)) != path:
            link = await self.discovery.why_unseen(raw)
            if link is not None and link.reason is ExclusionReason.LINK:
                reasons.append(clause_of(link))
        unseen = await self.discovery.why_unseen(path)
        if unseen is None:
            return [*reasons, "it was not there when rootsd looked last (rootsd scan)"]
        return [*reasons, explain_exclusion(unseen, path)]

    async def _named(self, name: str | None, path: bytes) -> Project | None:
        """Return the project that the typed word `name` means, or None. It is no path that exists.

        Raises AmbiguousReference.
        """
        if name is None:
            return None
        catalog = self.ledger.catalog
        resolver = ReferenceResolver(catalog, lambda word: _path_of_word(word, path))
        if resolver.reads_disk((name,)):
            [meant] = await to_thread.run_sync(resolver.resolve, (name,))
        else:
            [meant] = resolver.resolve((name,))
        if len(meant.projects) > 1:
            raise several_match(catalog, name, meant.projects)
        return meant.projects[0] if meant.projects else None

    async def _canonical(self, path: str) -> bytes:
        is_uri = looks_like_uri(path)
        if not (is_uri or path.startswith("/")):
            raise BadRequest(f"{safe_label(path, limit=None)} is not an absolute path")
        with suppress(ValueError):  # for an invalid path, `canonical_path` raises the error
            raw = bytes_of(path)
            if is_uri or self.services.is_canonical(raw):
                return raw  # a thread would take longer than the whole query
        return await to_thread.run_sync(self.canonical, path, "/")


def _path_of_word(word: str, path: bytes) -> bytes:
    """Return the path that `word` means. `path` is the canonical one that was typed."""
    return _normal(word) if word.startswith("/") else path


def _normal(typed: str) -> bytes:
    """Return an absolute path without `.` and `..`. Its links stay."""
    return os.path.normpath(bytes_of(typed))


def _reasons(project: Project, catalog: Catalog) -> list[ReasonItem]:
    applied = {
        judgment.reason: judgment
        for judgment in judgments_by_precedence(project, catalog.decision_context)
    }
    deciding = catalog.judgments[project.path].reason
    entry = catalog.policy.approve_rule(project.path)
    if entry is not None and catalog.is_denied(project):
        outweighed = Judgment(Verdict.APPROVED, VerdictReason.POLICY_APPROVE_RULE, entry)
        applied.setdefault(VerdictReason.POLICY_APPROVE_RULE, outweighed)
    # A rule grants nothing to a denied project. Show the rule, so that a person can see why.
    rule = approving_rule(project, catalog.decision_context)
    if rule is not None and catalog.is_denied(project):
        outweighed = Judgment(Verdict.APPROVED, VerdictReason.APPROVE_RULE, rule.number)
        applied.setdefault(VerdictReason.APPROVE_RULE, outweighed)
    # Without a policy, nobody needs to read about it.
    hidden = _FALLBACK_REASONS if catalog.policy != NO_POLICY else _UNUSUAL_REASONS
    if VerdictReason.POLICY_BROKEN not in applied:
        hidden = (*hidden, VerdictReason.POLICY_BROKEN)
    return [
        ReasonItem(
            ground=reason.value,
            verdict=applied[reason].verdict.value if reason in applied else None,
            by=_reason_source(applied[reason], project, catalog) if reason in applied else None,
            decides=reason is deciding,
        )
        for reason in VerdictReason
        if reason not in hidden or reason is deciding
    ]


def _reason_source(judgment: Judgment, project: Project, catalog: Catalog) -> str | None:
    match judgment.by:
        case bytes() as folder:
            return text_of(folder)
        case PolicyEntry(pattern, source):
            return f"{source}: {text_of(pattern)}"
        case int() as number:
            rule = next(rule for rule in catalog.rules if rule.number == number)
            return f"{number}: {text_of(rule.pattern)}{rule.conditions}"
        case None if judgment.reason is VerdictReason.POLICY_BROKEN:
            return catalog.policy.problem
        case None:
            return text_of(project.path) if judgment.reason in _PERSON_REASONS else None


def _obstacles(project: Project, catalog: Catalog, hazard: str | None) -> list[str]:
    """Return a sentence for each obstacle to publishing a project, besides its verdict.

    `hazard` says what makes the folder unsafe, if that is known.
    """
    seen = project.observed
    obstacles = []
    if seen.presence is not Presence.PRESENT:
        obstacles.append(f"it is {seen.presence.value}")
    if seen.incomplete is not None:
        obstacles.append(_why_incomplete(project, seen.incomplete, catalog))
    if seen.hazard is not None:
        obstacles.append(f"it cannot be published: {hazard or seen.hazard.value}")
    if (reason := catalog.why_unpublishable(project)) is not None:
        obstacles.append(f"it can never be published: {reason}")
    if (reason := why_not_inherited(catalog, project)) is not None:
        obstacles.append(reason)
    if catalog.judgments[project.path].reason in _FALLBACK_REASONS:
        obstacles += uncovered_rules(catalog, project)
    return obstacles


def _why_incomplete(project: Project, reason: IncompleteReason, catalog: Catalog) -> str:
    """Return what the project lacks, and how to approve it anyway, as a clause."""
    clause = f"it is incomplete ({reason.value}): {reason.lacks}"
    if not catalog.is_incomplete(project):
        return clause
    has_rule = approving_rule(project, catalog.decision_context) is not None
    no_rule = "; no rule approves it until it is complete" if has_rule else ""
    remedy = incomplete_error(project.path, reason).remedy
    return f"{clause}{no_rule} (to approve it anyway: {remedy})"
