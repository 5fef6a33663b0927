"""Select the projects and rules that a decision request means, by reference or by sweep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from anyio import to_thread

from rootsd.control.references import ReferenceResolver, canonical_path, is_glob, is_selected
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


@dataclass(frozen=True, slots=True)
class ProjectSelection:
    """The projects that a request means, as they are in `catalog`, and the rules that lapsed."""

    catalog: Catalog
    projects: tuple[Project, ...]
    warnings: tuple[str, ...]
    rules: tuple[Rule, ...] = ()

    def __len__(self) -> int:
        """How many projects there are."""
        return len(self.projects)

    def without_changed(self, now: Catalog) -> ProjectSelection:
        """Those that the disk shows as it did when they were chosen."""
        steady, warnings = [], [*self.warnings]
        for project in self.projects:
            known = now.projects.get(project.path)
            if known is not None and known.observed == project.observed:
                steady.append(project)
            else:
                warnings.append(_left_out(self.catalog, project, "it changed just now"))
        return ProjectSelection(self.catalog, tuple(steady), tuple(warnings), self.rules)


@dataclass(frozen=True, slots=True)
class ProjectSelector:
    """Finds what a request means.

    `real_path` makes a typed path canonical (it touches the disk: called in a thread). `propose`
    looks at one folder, takes what it sees into the catalog, and raises RootsdError where no
    folder can be seen; `foresee` does the same and takes nothing in.
    """

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    foresee: Callable[[bytes], Awaitable[ProjectObserved]]

    async def choose(
        self, request: DecideRequest, unseen: Sequence[ProjectObserved]
    ) -> ProjectSelection:
        """The projects, also of what was `unseen` by every scan. Raises UnknownProject where there
        are none, AmbiguousReference, and IdentityChanged where one is not the directory that the
        person was shown."""
        catalog = self.ledger.rehearse(unseen).catalog
        if request.select is not Selection.NAMED:
            return await self._selected(catalog, request)
        if not request.refs:
            raise UnknownProject("no project was named", "rootsd pending")
        resolver = self._resolver(catalog, request.cwd)
        fits = _fitting(catalog, request.verb)
        try:
            chosen = await to_thread.run_sync(resolver.all, request.refs, fits)
        except UnknownProject as error:
            if left_out := await _doubted_by_glob(resolver, request):
                raise UnknownProject("; ".join(left_out), _BY_NAME) from error
            raise
        if request.shown:
            _check_as_shown(chosen, request)
        left_out = await _doubted_by_glob(resolver, request, chosen)
        return ProjectSelection(catalog, tuple(chosen), left_out)

    async def _selected(self, catalog: Catalog, request: DecideRequest) -> ProjectSelection:
        under = b"/"
        if request.under is not None:
            under = await to_thread.run_sync(self._canonical, request.under, request.cwd)
        selected = [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if contains(under, project.path) and _is_swept(catalog, project, request.select)
        ]
        fits = _fitting(catalog, request.verb)
        fitting = tuple(p for p in selected if fits(p) and not self._has_ended(request, p))
        paths = {project.path for project in fitting}
        others = [p for p in selected if p.path not in paths]
        warnings = (
            *(
                _left_out(catalog, p, why)
                for p in others
                if (why := self._why_left_out(catalog, request, p)) is not None
            ),
            *_doubted(catalog, request, others),
        )
        rules = _lapsed_rules(catalog, request)
        if not fitting and not rules:
            nothing = "nothing is waiting for a decision there"
            remedy = _BY_NAME if _doubted(catalog, request, others) else "rootsd ls"
            raise UnknownProject("; ".join(warnings) or nothing, remedy)
        return ProjectSelection(catalog, fitting, warnings, rules)

    def _has_ended(self, request: DecideRequest, project: Project) -> bool:
        """Whether what is to be as it was would have ended meanwhile."""
        is_restored = request.verb is DecisionVerb.APPROVE and request.select is Selection.LAPSED
        return is_restored and request.lasts is None and self.ledger.expiries.has_ended(project)

    def _why_left_out(
        self, catalog: Catalog, request: DecideRequest, project: Project
    ) -> str | None:
        if self._has_ended(request, project):
            return "its approval has ended meanwhile"
        return _obstacle(catalog, project)

    async def unseen(self, request: DecideRequest) -> Sequence[ProjectObserved]:
        """The named folders that no scan has found and that are not in the catalog yet.

        An approval has them proposed first. A denial does not: a rule could approve what is only
        proposed. Only once all other references are known to mean something: an order that fails
        leaves nothing behind.
        """
        if request.select is not Selection.NAMED or request.verb is DecisionVerb.FORGET:
            return ()
        unknown = await self._unknown(request)
        if request.verb is DecisionVerb.DENY:
            return [await self.foresee(path) for path in unknown]
        for path in unknown:
            if request.effect is ApplyMode.DRY_RUN:
                shown = safe_label(path, limit=None)
                raise UnknownProject(
                    f"{shown} is not known yet, and a dry run proposes nothing",
                    "rootsd approve PATH",
                )
            await self.propose(path)
        return ()

    async def _unknown(self, request: DecideRequest) -> Sequence[bytes]:
        resolver = self._resolver(self.ledger.catalog, request.cwd)
        unknown = [
            reference
            for reference in request.refs
            if not await to_thread.run_sync(resolver.find, reference)
        ]
        words = [reference for reference in unknown if not _looks_like_a_path(reference)]
        await to_thread.run_sync(resolver.all, words)  # raises where there are any
        return [await to_thread.run_sync(resolver.real_path, reference) for reference in unknown]

    def _resolver(self, catalog: Catalog, cwd: str) -> ReferenceResolver:
        return ReferenceResolver(catalog, lambda typed: self._canonical(typed, cwd))

    def _canonical(self, typed: str, cwd: str) -> bytes:
        return canonical_path(self.real_path, typed, cwd)


def _check_as_shown(chosen: list[Project], request: DecideRequest) -> None:
    if not len(chosen) == len(request.refs) == len(request.shown):
        raise BadRequest("what was shown goes with one reference each", "rootsd pending")
    for project, mark in zip(chosen, request.shown, strict=True):
        if identity_fingerprint(project.observed.identity) != mark:
            shown = safe_label(project.path, limit=None)
            raise IdentityChanged(
                f"{shown} is not the folder you were shown: it was replaced", "rootsd pending"
            )


def _fitting(catalog: Catalog, verb: DecisionVerb) -> Callable[[Project], bool]:
    """Return whether an order that does not name a project may mean it.

    An approval by sweep overturns no denial. It leaves out the projects that cannot be approved,
    and those that a person has to name.
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


async def _doubted_by_glob(
    resolver: ReferenceResolver, request: DecideRequest, chosen: Sequence[Project] = ()
) -> tuple[str, ...]:
    """Return a warning for each project that the globs match and that has to be named."""
    globs = [reference for reference in request.refs if is_glob(reference)]
    if not globs or request.verb is not DecisionVerb.APPROVE:
        return ()
    found = [await to_thread.run_sync(resolver.find, each) for each in globs]
    paths = {project.path for project in chosen}
    others = {p.path: p for some in found for p in some if p.path not in paths}
    return _doubted(resolver.catalog, request, list(others.values()))


def _doubted(
    catalog: Catalog, request: DecideRequest, others: Sequence[Project]
) -> tuple[str, ...]:
    """Return warnings for those of `others` that wait, and that an approval has to name.

    The last one says how many they are, and how to approve one.
    """
    if request.verb is not DecisionVerb.APPROVE:
        return ()
    around = catalog.decision_context
    doubts = [
        (project, doubt)
        for project in others
        if catalog.is_pending(project) and _obstacle(catalog, project) is None
        if (doubt := bulk_approval_blocker(project, around)) is not None
    ]
    if not doubts:
        return ()
    count = "1 project has" if len(doubts) == 1 else f"{len(doubts):,} projects have"
    return (
        *(_left_out(catalog, project, doubt.value) for project, doubt in doubts[:_MAX_NAMED]),
        f"{count} to be approved by name: {_BY_NAME}",
    )


def _is_swept(catalog: Catalog, project: Project, select: Selection) -> bool:
    """Whether a sweep comes upon `project`: also upon what it then leaves out with the reason."""
    is_left_out = select is Selection.PENDING and catalog.is_unpublishable(project)
    return is_left_out or is_selected(catalog, project, select)


def _lapsed_rules(catalog: Catalog, request: DecideRequest) -> tuple[Rule, ...]:
    """The rules that an approval of all that lapsed means, too."""
    is_all = request.verb is DecisionVerb.APPROVE and request.under is None
    if not is_all or request.select is not Selection.LAPSED:
        return ()
    return tuple(rule for rule in catalog.rules if rule.verdict is Verdict.PENDING)


def _obstacle(catalog: Catalog, project: Project) -> str | None:
    """Why an approval of a project that waits would be refused, as a sentence."""
    if project.path in catalog.decision_context.holding_denied:
        return "it holds a denied project"
    return catalog.why_unapprovable(project)


def _left_out(catalog: Catalog, project: Project, why: str) -> str:
    return f"{safe_label(catalog.name_of(project))} is left out: {why}"


def _looks_like_a_path(reference: str) -> bool:
    return (reference in (".", "..") or "/" in reference) and not looks_like_uri(reference)
