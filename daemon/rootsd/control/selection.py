"""Select the projects and rules that a decision request means, by reference or by selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from rootsd.control.references import (
    ResolvedReference,
    is_glob,
    is_selected,
    meant_projects,
)
from rootsd.control.services import Handlers
from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.decide import bulk_approval_blocker
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import IdentityChanged, NotPresent, RootsdError, UnknownProject
from rootsd.core.inputs import ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    LapseReason,
    Project,
    Rule,
    Verdict,
)
from rootsd.core.paths import contains
from rootsd.core.uris import looks_like_uri
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_BY_NAME = "rootsd approve PATH"
_MAX_NAMED = 10
_REPLACED = (LapseReason.REPLACED, LapseReason.RETARGETED, LapseReason.MOUNTED_AGAIN)


def should_reinstate(request: DecideRequest, project: Project) -> bool:
    """Return whether a request to restore everything covers a project that no person approved.

    A rule or a main checkout had approved it. Then that giver must approve it again.
    """
    lapse = project.ruling.lapse
    is_by_person = lapse is None or lapse.by is None or lapse.by.may_decide
    asks_for_more = request.tags or request.lasts is not None or request.access is Access.READ
    return request.select is Selection.LAPSED and not is_by_person and not asks_for_more


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

    def as_known(self, now: Catalog) -> ProjectSelection:
        """Return the selection once its folders are in the ledger, without resolving it again.

        Raises UnknownProject if one of them is not there any more.
        """
        for project in self.projects:
            if project.path not in now.projects:
                shown = safe_label(project.path, limit=None)
                raise UnknownProject(f"no project is known at {shown} any more", "rootsd scan")
        projects = tuple(now.projects[project.path] for project in self.projects)
        return replace(self, catalog=now, projects=projects, unseen=())

    def without_changed(self, now: Catalog) -> ProjectSelection:
        """Return the selection without the projects that changed on disk since it was made."""
        unchanged, warnings = [], [*self.warnings]
        for project in self.projects:
            known = now.projects.get(project.path)
            seen = replace(project.observed, inspection=None)
            if known is not None and replace(known.observed, inspection=None) == seen:
                unchanged.append(project)
            else:
                warnings.append(_left_out(self.catalog, project, "it changed just now"))
        return replace(self, projects=tuple(unchanged), warnings=tuple(warnings))


class ProjectSelector(Handlers):
    """Finds the projects that a request means."""

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
        resolver = self.resolver(catalog, request.cwd)
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

    async def look_again(self, request: DecideRequest) -> None:
        """Have the projects of the request read again, and wait for those that just appeared."""
        await self.discovery.look_again([project.path for project in await self._meant(request)])

    async def why_unsafe(self, request: DecideRequest, refused: str) -> str | None:
        """Return why one project of the request is refused, or None if its folder is safe.

        `refused` is the message that begins with the folder.
        """
        for project in await self._meant(request):
            shown = safe_label(project.path, limit=None)
            is_meant = project.observed.hazard is not None and refused.startswith(f"{shown} ")
            if is_meant and (why := await self.discovery.why_unsafe(project.path)) is not None:
                return f"{shown} cannot be published: {why}"
        return None

    async def _meant(self, request: DecideRequest) -> Sequence[Project]:
        try:
            return (await self.choose(request)).projects
        except RootsdError:
            return ()

    async def _selected(self, catalog: Catalog, request: DecideRequest) -> ProjectSelection:
        under = b"/"
        if request.under is not None:
            under = await to_thread.run_sync(self.canonical, request.under, request.cwd)
        among: Iterable[Project] = catalog.projects.values()
        if request.refs:
            resolver = self.resolver(catalog, request.cwd)
            among = await to_thread.run_sync(resolver.all, request.refs)
        selected = [
            project
            for project in sorted(among, key=lambda p: p.path)
            if contains(under, project.path) and _is_considered(catalog, project, request.select)
        ]
        fits = _inclusion_test(catalog, request.verb)
        fitting = tuple(p for p in selected if fits(p) and not self._has_ended(request, p))
        elsewhere = await self._other_origins(request, fitting)
        fitting = tuple(p for p in fitting if p.path not in elsewhere)
        paths = {project.path for project in fitting}
        others = [p for p in selected if p.path not in paths]
        warnings = (
            *(
                _left_out(catalog, p, why)
                for p in others
                if (why := elsewhere.get(p.path) or self._why_left_out(catalog, request, p))
            ),
            *_name_warnings(catalog, request, others),
        )
        rules = _lapsed_rules(catalog, request)
        if not fitting and not rules:
            nothing = "no project there is pending"
            if request.select is Selection.LAPSED:
                nothing = "no approval there has lapsed"
            by_name = elsewhere or _name_warnings(catalog, request, others)
            remedy = _BY_NAME if by_name else "rootsd ls"
            raise UnknownProject("; ".join(warnings) or nothing, remedy)
        return ProjectSelection(catalog, fitting, warnings, rules)

    async def _other_origins(
        self, request: DecideRequest, lapsed: Sequence[Project]
    ) -> Mapping[bytes, str]:
        """Return why an approval that is to be restored was for another repository, by path.

        A folder with another origin is not what the person approved, wherever it lies.
        """
        if request.verb is not DecisionVerb.APPROVE or request.select is not Selection.LAPSED:
            return {}
        # A rule, or a main checkout, gives its approval to any repository.
        restored = [p for p in lapsed if not should_reinstate(request, p)]
        origins = await self.services.reader.origins(restored)
        whys = ((p.path, _why_other_origin(p, origins.get(p.path))) for p in restored)
        return {path: why for path, why in whys if why is not None}

    def _has_ended(self, request: DecideRequest, project: Project) -> bool:
        """Return whether a lapsed approval that is to be restored would have ended by now."""
        is_restored = request.verb is DecisionVerb.APPROVE and request.select is Selection.LAPSED
        return is_restored and request.lasts is None and self.ledger.expiries.has_ended(project)

    def _why_left_out(
        self, catalog: Catalog, request: DecideRequest, project: Project
    ) -> str | None:
        if self._has_ended(request, project):
            return "its approval has ended in the meantime"
        if (incomplete := project.observed.incomplete) is not None:
            return f"it is incomplete: {incomplete.value}"
        return _obstacle(catalog, project)

    async def _look_at_unknown(
        self, request: DecideRequest, unknown: Sequence[ResolvedReference]
    ) -> Sequence[ProjectObserved]:
        """Read the folders that no scan has found, and return them.

        Check all other references first, so that a request that fails has no effect.
        """
        if request.verb is DecisionVerb.FORGET:
            return ()
        meant_projects(each for each in unknown if not _looks_like_a_path(each.reference))
        return [await self._look_at(each, each.path) for each in unknown if each.path is not None]

    async def _look_at(self, unknown: ResolvedReference, path: bytes) -> ProjectObserved:
        try:
            return await self.discovery.observe_project(path)
        except NotPresent as error:
            likely = unknown.unknown()
            if likely.choices or is_glob(unknown.reference):
                raise likely from error
            raise


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
    is_all = request.verb is DecisionVerb.APPROVE and request.under is None and not request.refs
    if not is_all or request.select is not Selection.LAPSED:
        return ()
    return tuple(rule for rule in catalog.rules if rule.verdict is Verdict.PENDING)


def _obstacle(catalog: Catalog, project: Project) -> str | None:
    """Return a sentence that says why an approval of the project would be refused, or None."""
    if project.path in catalog.decision_context.holding_denied:
        return "it holds a denied project"
    return catalog.why_unpublishable(project)


def _why_other_origin(project: Project, now: str | None) -> str | None:
    """Return why the repository at a lapsed approval is another one, or None.

    Without a recorded origin, only a replaced folder can be another repository.
    """
    before, lapse = project.ruling.origin, project.ruling.lapse
    is_replaced = lapse is not None and lapse.reason in _REPLACED
    if before == now or (before is None and not is_replaced):
        return None
    was = f"was {safe_label(before, limit=None)}" if before else "was not known"
    is_now = safe_label(now, limit=None) if now else "not there any more"
    return f"its origin is {is_now}, and {was} when you approved it"


def _left_out(catalog: Catalog, project: Project, why: str) -> str:
    return f"{safe_label(catalog.name_of(project))} is left out: {why}"


def _looks_like_a_path(reference: str) -> bool:
    return (reference in (".", "..") or "/" in reference) and not looks_like_uri(reference)
