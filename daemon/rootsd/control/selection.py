"""Select the projects and rules that a decision request means, by reference or by selection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from rootsd.control.references import (
    ReferenceResolver,
    ResolvedReference,
    canonical_path,
    is_selected,
    meant_projects,
)
from rootsd.core.catalog import Catalog
from rootsd.core.decide import bulk_approval_blocker
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import IdentityChanged, UnknownProject
from rootsd.core.inputs import ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import Project, Rule, Verdict
from rootsd.core.paths import contains
from rootsd.core.uris import looks_like_uri
from rootsd.state.ledger import Ledger
from rootsd.wire.decisions import ApplyMode, DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_BY_NAME = "rootsd approve PATH"
_MAX_NAMED = 10


class ProjectSelection(Struct, frozen=True):
    """The projects that a request means, as they are in `catalog`, and the lapsed rules.

    `unseen` are folders that are in `catalog`, but not yet in the ledger.
    """

    catalog: Catalog
    projects: tuple[Project, ...]
    warnings: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    unseen: tuple[ProjectObserved, ...] = ()

    def __len__(self) -> int:
        """Return the number of projects."""
        return len(self.projects)

    def without_changed(self, now: Catalog) -> ProjectSelection:
        """Return the selection without the projects that changed on disk since it was made."""
        unchanged, warnings = [], [*self.warnings]
        for project in self.projects:
            known = now.projects.get(project.path)
            if known is not None and known.observed == project.observed:
                unchanged.append(project)
            else:
                warnings.append(_left_out(self.catalog, project, "it changed just now"))
        return replace(self, projects=tuple(unchanged), warnings=tuple(warnings))


class ProjectSelector(Struct, frozen=True):
    """Finds the projects that a request means.

    `real_path` canonicalizes a typed path. It reads the disk, so it is called in a thread.
    `propose` reads one folder and adds it to the catalog. It raises RootsdError if it finds no
    folder. `observe_project` reads the folder the same way and adds nothing.
    """

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    observe_project: Callable[[bytes], Awaitable[ProjectObserved]]

    async def choose(self, request: DecideRequest) -> ProjectSelection:
        """Return the projects that the request means. Each reference is resolved once.

        Raises UnknownProject if there are none, AmbiguousReference, and IdentityChanged if one is
        not the directory that the person was shown.
        """
        catalog = self.ledger.catalog
        if request.select is not Selection.NAMED:
            return await self._selected(catalog, request)
        if not request.refs:
            raise UnknownProject("no project was named", "rootsd pending")
        resolver = self._resolver(catalog, request.cwd)
        if resolver.reads_disk(request.refs):
            resolved = await to_thread.run_sync(resolver.resolve, request.refs)
        else:
            resolved = resolver.resolve(request.refs)
        unseen: Sequence[ProjectObserved] = ()
        if unknown := [each for each in resolved if not each.projects]:
            unseen = await self._look_at_unknown(request, unknown)
            catalog = self.ledger.dry_run(unseen).catalog if unseen else self.ledger.catalog
            resolved = [_in_catalog(catalog, each) for each in resolved]
        try:
            chosen = meant_projects(resolved, _inclusion_test(catalog, request.verb))
        except UnknownProject as error:
            if left_out := _glob_warnings(catalog, request, resolved):
                raise UnknownProject("; ".join(left_out), _BY_NAME) from error
            raise
        if request.shown:
            _check_as_shown(chosen, request)
        left_out = _glob_warnings(catalog, request, resolved, chosen)
        return ProjectSelection(catalog, tuple(chosen), left_out, unseen=tuple(unseen))

    async def _selected(self, catalog: Catalog, request: DecideRequest) -> ProjectSelection:
        under = b"/"
        if request.under is not None:
            under = await to_thread.run_sync(self._canonical, request.under, request.cwd)
        selected = [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if contains(under, project.path) and _is_considered(catalog, project, request.select)
        ]
        fits = _inclusion_test(catalog, request.verb)
        fitting = tuple(p for p in selected if fits(p) and not self._has_ended(request, p))
        paths = {project.path for project in fitting}
        others = [p for p in selected if p.path not in paths]
        warnings = (
            *(
                _left_out(catalog, p, why)
                for p in others
                if (why := self._why_left_out(catalog, request, p)) is not None
            ),
            *_name_warnings(catalog, request, others),
        )
        rules = _lapsed_rules(catalog, request)
        if not fitting and not rules:
            nothing = "no project there is pending"
            if request.select is Selection.LAPSED:
                nothing = "no approval there has lapsed"
            remedy = _BY_NAME if _name_warnings(catalog, request, others) else "rootsd ls"
            raise UnknownProject("; ".join(warnings) or nothing, remedy)
        return ProjectSelection(catalog, fitting, warnings, rules)

    def _has_ended(self, request: DecideRequest, project: Project) -> bool:
        """Return whether a lapsed approval that is to be restored would have ended by now."""
        is_restored = request.verb is DecisionVerb.APPROVE and request.select is Selection.LAPSED
        return is_restored and request.lasts is None and self.ledger.expiries.has_ended(project)

    def _why_left_out(
        self, catalog: Catalog, request: DecideRequest, project: Project
    ) -> str | None:
        if self._has_ended(request, project):
            return "its approval has ended in the meantime"
        return _obstacle(catalog, project)

    async def _look_at_unknown(
        self, request: DecideRequest, unknown: Sequence[ResolvedReference]
    ) -> Sequence[ProjectObserved]:
        """Read the folders that no scan has found, and return those that are not proposed yet.

        An approval proposes them first. A denial does not, because a rule could approve a folder
        between the proposal and the denial. Check all other references first, so that a request
        that fails has no effect.
        """
        if request.verb is DecisionVerb.FORGET:
            return ()
        meant_projects(each for each in unknown if not _looks_like_a_path(each.reference))
        paths = [each.path for each in unknown if each.path is not None]
        if request.verb is DecisionVerb.DENY:
            return [await self.observe_project(path) for path in paths]
        for path in paths:
            if request.effect is ApplyMode.DRY_RUN:
                shown = safe_label(path, limit=None)
                raise UnknownProject(
                    f"{shown} is not known yet, and a dry run proposes nothing",
                    "rootsd approve PATH",
                )
            await self.propose(path)
        return ()

    def _resolver(self, catalog: Catalog, cwd: str) -> ReferenceResolver:
        return ReferenceResolver(catalog, lambda typed: self._canonical(typed, cwd))

    def _canonical(self, typed: str, cwd: str) -> bytes:
        return canonical_path(self.real_path, typed, cwd)


def _check_as_shown(chosen: list[Project], request: DecideRequest) -> None:
    if not len(chosen) == len(request.refs) == len(request.shown):
        raise BadRequest("each reference needs one shown folder", "rootsd pending")
    for project, fingerprint in zip(chosen, request.shown, strict=True):
        if identity_fingerprint(project.observed.identity) != fingerprint:
            shown = safe_label(project.path, limit=None)
            raise IdentityChanged(
                f"{shown} is not the folder you were shown: it was replaced", "rootsd pending"
            )


def _inclusion_test(catalog: Catalog, verb: DecisionVerb) -> Callable[[Project], bool]:
    """Return a function that tells whether a request may include a project it does not name.

    Such a request does not override a denial. It leaves out projects that cannot be approved, and
    those that a person has to name.
    """
    if verb is not DecisionVerb.APPROVE:
        return lambda _: True
    return lambda p: (
        p.path in catalog.roots
        or (
            catalog.is_pending(p)
            and _obstacle(catalog, p) is None
            and bulk_approval_blocker(p, catalog.decision_context) is None
        )
    )


def _in_catalog(catalog: Catalog, resolved: ResolvedReference) -> ResolvedReference:
    """Return the reference with its projects as they are in the newer `catalog`.

    The paths stay, so the reference keeps the meaning that it had when it was resolved.
    """
    paths = [project.path for project in resolved.projects]
    if not paths and resolved.path is not None:
        paths = [resolved.path]
    is_pattern = resolved.is_pattern and bool(resolved.projects)
    known = tuple(catalog.projects[path] for path in paths if path in catalog.projects)
    return replace(resolved, projects=known, is_pattern=is_pattern)


def _glob_warnings(
    catalog: Catalog,
    request: DecideRequest,
    resolved: Sequence[ResolvedReference],
    chosen: Sequence[Project] = (),
) -> tuple[str, ...]:
    """Return a warning for each project that a glob matched and that has to be named."""
    paths = {project.path for project in chosen}
    others = {
        project.path: project
        for each in resolved
        if each.is_pattern
        for project in each.projects
        if project.path not in paths
    }
    return _name_warnings(catalog, request, list(others.values()))


def _name_warnings(
    catalog: Catalog, request: DecideRequest, others: Sequence[Project]
) -> tuple[str, ...]:
    """Return warnings for the pending projects among `others` that an approval has to name.

    The last warning has their number and the command that approves one.
    """
    if request.verb is not DecisionVerb.APPROVE:
        return ()
    around = catalog.decision_context
    blocked = [
        (project, blocker)
        for project in others
        if catalog.is_pending(project) and _obstacle(catalog, project) is None
        if (blocker := bulk_approval_blocker(project, around)) is not None
    ]
    if not blocked:
        return ()
    count = "1 project has" if len(blocked) == 1 else f"{len(blocked):,} projects have"
    return (
        *(_left_out(catalog, project, blocker.value) for project, blocker in blocked[:_MAX_NAMED]),
        f"{count} to be approved by name: {_BY_NAME}",
    )


def _is_considered(catalog: Catalog, project: Project, select: Selection) -> bool:
    """Return whether a selection considers `project`, even if it skips it with a reason."""
    is_left_out = select is Selection.PENDING and catalog.is_unpublishable(project)
    return is_left_out or is_selected(catalog, project, select)


def _lapsed_rules(catalog: Catalog, request: DecideRequest) -> tuple[Rule, ...]:
    """Return the lapsed rules, if the request approves everything that lapsed."""
    is_all = request.verb is DecisionVerb.APPROVE and request.under is None
    if not is_all or request.select is not Selection.LAPSED:
        return ()
    return tuple(rule for rule in catalog.rules if rule.verdict is Verdict.PENDING)


def _obstacle(catalog: Catalog, project: Project) -> str | None:
    """Return a sentence that says why an approval of the project would be refused, or None."""
    if project.path in catalog.decision_context.holding_denied:
        return "it holds a denied project"
    return catalog.why_unpublishable(project)


def _left_out(catalog: Catalog, project: Project, why: str) -> str:
    return f"{safe_label(catalog.name_of(project))} is left out: {why}"


def _looks_like_a_path(reference: str) -> bool:
    return (reference in (".", "..") or "/" in reference) and not looks_like_uri(reference)
