"""Plan a change: turn events and orders into a new catalog and a list of changes.

`plan` only decides: it does not read the disk or write to the store. First, each input changes one
project or rule. Then approve rules and approved main checkouts may approve more projects. Each
such approval becomes a *grant*; see `rootsd.core.grants`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from rootsd.core import names
from rootsd.core.access import stricter_access
from rootsd.core.affected_paths import affected_paths
from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ChangeVerb, ProjectChange
from rootsd.core.decide import (
    VerdictReason,
    is_denied_by_person,
    policy_refusal,
)
from rootsd.core.errors import DeniedHere, IdentityChanged, NameTaken, RefusedPlace
from rootsd.core.grants import approval_start_ns, derive_grants
from rootsd.core.inputs import (
    Accept,
    Approve,
    ConfirmedWorktree,
    Deny,
    Forget,
    Input,
    InputEvent,
    PolicyRuleEnded,
    ProjectObserved,
    ProjectOrder,
    Reinstate,
    Rename,
    Restore,
    Retag,
    RuleOrder,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    ActorKind,
    Expiry,
    Grant,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
)
from rootsd.core.paths import is_utf8
from rootsd.core.rules import apply_rule_change, rule_change
from rootsd.core.shared_git import shared_git
from rootsd.core.transition import apply_input

# The first pass may approve main checkouts, and the second pass their worktrees. A worktree is not
# the main checkout of another one, so two passes are enough.
_GRANT_PASSES = 2


class Plan(Struct, frozen=True):
    """The catalog after the inputs, and the changes in order.

    `judged` are the paths that it judges again; all others keep their judgments and roots.
    `ungranted` is that catalog without the new grants, or None if there are no new grants.
    """

    catalog: Catalog
    changes: tuple[Change, ...]
    judged: Collection[bytes] = ()
    ungranted: Catalog | None = None

    @property
    def immediate(self) -> Plan:
        """Return the part of the plan that takes effect at once: everything but new grants.

        New grants wait for a check of the disk.
        """
        if self.ungranted is None:
            return self
        changes = (change for change in self.changes if change.verb is not ChangeVerb.GRANTED)
        return Plan(self.ungranted, tuple(changes), self.judged)


def plan(catalog: Catalog, inputs: Iterable[Input], now: datetime) -> Plan:
    """Return the plan for `inputs`. Raises OrderRefused; then none of `inputs` has an effect."""
    inputs = tuple(inputs)
    builder = _PlanBuilder(catalog, now)
    for event in inputs:
        builder.take(event)
    planned = builder.build()
    if unsupported := _unsupported_reinstatements(planned.catalog, inputs):
        again = (
            unsupported.get(event.path, event) if isinstance(event, Reinstate) else event
            for event in inputs
        )
        return plan(catalog, again, now)
    return planned


class _PlanBuilder:
    """A new catalog in progress: private copies, changed paths, and the changes so far."""

    def __init__(self, catalog: Catalog, now: datetime) -> None:
        self._old = catalog
        self._now = now
        self._projects = dict(catalog.projects)
        self._rules = list(catalog.rules)
        self._next_rule = catalog.next_rule
        self._approvals_given = catalog.approvals
        self._changes: list[Change] = []
        self._touched: dict[bytes, None] = {}
        self._overruled: set[bytes] = set()
        self._touches_all = False
        self._approvals: dict[bytes, None] = {}
        self._confirmed: set[bytes] = set()
        self._sharing: set[bytes] = set()
        self._new_worktrees: dict[bytes, set[bytes]] = defaultdict(set)
        self._new_ids: dict[str, bytes] = {}
        self._new_names: dict[names.NameKey, bytes] = {}

    def take(self, event: Input) -> None:
        if isinstance(event, PolicyRuleEnded):
            self._step(event, ChangeVerb.WITHDRAWN, event.rule)
        elif isinstance(event, InputEvent):
            self._step(event, ChangeVerb.OBSERVED, None)
        elif isinstance(event, RuleOrder):
            self._change_rule(event)
        else:
            self._order(event)

    def _order(self, event: ProjectOrder) -> None:
        match event:
            case Approve():
                self._approve(event)
            case Reinstate():
                self._check_approvable(event.path)
                self._confirmed.add(event.path)
                self._step(event, ChangeVerb.APPROVED, event.actor)
                self._approvals[event.path] = None
            case Accept():
                self._step(event, ChangeVerb.ACCEPTED, event.actor)
            case Deny():
                self._step(event, ChangeVerb.DENIED, event.actor)
                self._overrule(event.path)
            case Forget():
                self._step(event, ChangeVerb.FORGOTTEN, event.actor)
                self._overrule(event.path)
            case Rename():
                self._check_free(event.name, event.path)
                self._step(event, ChangeVerb.RENAMED, event.actor)
            case Retag():
                self._step(event, ChangeVerb.TAGGED, event.actor)
            case Restore():
                self._restore(event)
            case _:
                assert_never(event)

    def build(self) -> Plan:
        self._changes = _coalesce_observations(self._changes)
        if not self._changes:
            return Plan(self._old, ())
        judged, affected = self._judged()
        ungranted = judged
        for _ in range(_GRANT_PASSES):
            granted = tuple(derive_grants(judged, affected, self._now, self._confirmed))
            if not granted:
                break
            for project in granted:
                actor = project.ruling.grants[-1].actor
                self._put(project.path, project, ChangeVerb.GRANTED, actor)
            judged, affected = self._judged()
        for path in self._approvals:
            _check_took_effect(judged, path)
            if path in self._sharing:
                _check_shared_git(judged, path)
        changes = tuple(self._changes)
        return Plan(judged, changes, affected, None if judged is ungranted else ungranted)

    def _overrule(self, path: bytes) -> None:
        """Note that a denial of `path` began or ended, which affects every project below it.

        An approval of `path` earlier in this batch no longer counts.
        """
        self._overruled.add(path)
        self._approvals.pop(path, None)

    def _step(
        self, event: InputEvent | ProjectOrder, verb: ChangeVerb, actor: Actor | None
    ) -> None:
        before = self._projects.get(event.path)
        is_new = before is None and isinstance(event, ProjectObserved)
        new_id = self._id_for(event.path) if is_new else ""
        after = apply_input(before, event, new_id, self._now)
        if after is before:
            return
        if verb is ChangeVerb.OBSERVED and before is not None:
            if after is None and before.ruling != UNDECIDED:  # a worktree that only inherited
                verb = ChangeVerb.WITHDRAWN
                actor = before.ruling.grants[-1].actor if before.ruling.grants else None
            elif after is not None and before.ruling != after.ruling:
                is_lapse = before.ruling.lapse != after.ruling.lapse
                verb = ChangeVerb.LAPSED if is_lapse else ChangeVerb.NOTED
        self._put(event.path, after, verb, actor)

    def _id_for(self, path: bytes) -> str:
        new_id = names.project_id(path, self._new_ids, self._old.ids)
        self._new_ids[new_id] = path
        return new_id

    def _put(
        self, path: bytes, after: Project | None, verb: ChangeVerb, actor: Actor | None
    ) -> None:
        before = self._projects.get(path)
        kept = None if after is None or after.ruling.name else after.observed.name
        if after is not None and kept and self._holder(kept) not in (None, path):
            # Another project was named first, or a person gave it the name that this one kept
            # while a frozen name counted.
            after = replace(after, observed=replace(after.observed, name=None))
        if before == after:
            return
        if after is None:
            del self._projects[path]
        else:
            self._projects[path] = after
            if after.name is not None:
                self._new_names[names.comparison_key(after.name)] = path
            if after.observed.main_checkout is not None:
                self._new_worktrees[after.observed.main_checkout].add(path)
        self._touched[path] = None
        self._changes.append(ProjectChange(path, before, after, verb, actor))

    def _approve(self, order: Approve) -> None:
        self._check_approvable(order.path)
        before = self._projects.get(order.path)
        for each in order.worktrees:
            self._confirm(order.path, each)
        order = replace(order, since_ns=self._since(order.path))
        self._step(
            self._numbered(self._named(self._with_earlier_settings(order))),
            ChangeVerb.APPROVED,
            order.actor,
        )
        if before is not None and is_denied_by_person(before):
            self._overrule(order.path)  # the projects below are no longer denied
        self._approvals[order.path] = None
        if order.shared_git is not None:
            self._sharing.add(order.path)

    def _numbered(self, order: Approve) -> Approve:
        if order.number is not None:
            return order
        self._approvals_given += 1
        return replace(order, number=self._approvals_given)

    def _confirm(self, main: bytes, shown: ConfirmedWorktree) -> None:
        """Let an older worktree inherit. Raises IdentityChanged if the person saw another one."""
        project = self._projects.get(shown.path)
        seen = project.observed if project is not None else None
        if (
            seen is None
            or seen.identity is None
            or seen.main_checkout != main
            or not shown.identity.holds_for(seen.identity)
            or not shown.identity.keeps_git_file(seen.identity)
        ):
            where = safe_label(shown.path, limit=None)
            raise IdentityChanged(f"{where} is not the worktree you were shown", "rootsd pending")
        self._confirmed.add(shown.path)

    def _since(self, path: bytes) -> int | None:
        """Return the `since_ns` for an approval of `path` now. It continues a current approval."""
        before = self._old.projects.get(path)
        if before is not None and before is self._projects.get(path):
            since = self._old.approved_since(before)
            if since is not None:
                return since
        worktrees = {*self._old.worktrees.get(path, ()), *self._new_worktrees[path]}
        return approval_start_ns(map(self._projects.get, worktrees), self._now)

    def _with_earlier_settings(self, order: Approve) -> Approve:
        """Return the order with the settings from the project's old path, if its folder was moved.

        Forget the project at the old path, where nothing is left.
        """
        project = self._projects.get(order.path)
        before = None if project is None else self._old.moved_from(project)
        if before is None or is_denied_by_person(before):
            return order
        if self._projects.get(before.path) is not before:
            return order
        self._step(Forget(before.path, order.actor), ChangeVerb.FORGOTTEN, order.actor)
        ruling = before.ruling
        return replace(
            order,
            name=order.name or ruling.name,
            tags=(*order.tags, *ruling.tags),
            access=stricter_access(order.access, ruling.access),
            expires=order.expires or _end_of(ruling),
            origin=order.origin or ruling.origin,
        )

    def _restore(self, order: Restore) -> None:
        if order.ruling.name is not None:
            self._check_free(order.ruling.name, order.path)
        decision = order.ruling.decision
        is_approval = decision is not None and decision.verdict is Verdict.APPROVED
        if is_approval:
            self._check_approvable(order.path)
        self._step(order, ChangeVerb.UNDONE, order.actor)
        self._withdraw_worktrees(order)
        self._overrule(order.path)
        if is_approval:
            self._approvals[order.path] = None

    def _withdraw_worktrees(self, order: Restore) -> None:
        """Take back the grants that worktrees got together with the undone decision."""
        undone = order.undone.decision
        if undone is None:
            return
        for path in self._old.worktrees.get(order.path, ()):
            tree = self._projects.get(path)
            for grant in tree.ruling.grants if tree is not None else ():
                if tree is not None and _is_inherited(grant) and grant.at == undone.at:
                    kept = tuple(each for each in tree.ruling.grants if each is not grant)
                    without = replace(tree, ruling=replace(tree.ruling, grants=kept))
                    self._put(path, without, ChangeVerb.WITHDRAWN, grant.actor)

    def _check_approvable(self, path: bytes) -> None:
        project = self._projects.get(path)
        if project is not None and project.observed.kind is ProjectKind.URI:
            return
        if not is_utf8(path):
            shown = safe_label(path, limit=None)
            remedy = "rename the folder, then rootsd scan"
            raise RefusedPlace(f"{shown} can never be a root: its path is not UTF-8", remedy)
        if reason := self._old.places.why_no_root(path):
            shown = safe_label(path, limit=None)
            raise RefusedPlace(f"{shown} can never be a root: {reason}", "rootsd pending")

    def _named(self, order: Approve) -> Approve:
        """Return the order with a name: its own, or else the one that lists show."""
        project = self._projects.get(order.path)
        if project is None:
            return order
        name = order.name or project.name or self._proposal(order.path)
        self._check_free(name, order.path)
        return replace(order, name=name)

    def _check_free(self, name: str, path: bytes) -> None:
        """Raise NameTaken if another project has a name that looks like `name`."""
        holder = self._holder(name)
        if holder not in (None, path):
            where = safe_label(holder or b"", limit=None)
            raise NameTaken(
                f"the name {safe_label(name)} belongs to {where}", f"rootsd show {where}"
            )

    def _holder(self, name: str) -> bytes | None:
        """Return the project whose frozen or kept name looks like `name`, or None."""
        key = names.comparison_key(name)
        for path in (self._new_names.get(key), self._old.kept_keys.get(key)):
            project = self._projects.get(path) if path is not None else None
            kept = project.name if project is not None else None
            if kept is not None and names.comparison_key(kept) == key:
                return path
        return None

    def _proposal(self, path: bytes) -> str:
        """Return the name that the person saw, unless another project has it by now."""
        known = self._old.proposed_names.get(path)
        if known is not None and self._holder(known) is None:
            return known
        named = {
            names.comparison_key(p.name): p.path
            for p in self._projects.values()
            if p.name is not None
        }
        unnamed = (p.path for p in self._projects.values() if p.name is None)
        proposed = names.propose_names(
            unnamed,
            named,
            others=named.values(),
            reserved=self._old.reserved,
            id_of=lambda other: self._projects[other].id,
        )
        return proposed[path]

    def _change_rule(self, order: RuleOrder) -> None:
        change = rule_change(self._rules, order, self._next_rule, self._now)
        self._rules = apply_rule_change(self._rules, change)
        self._next_rule = max(self._next_rule, change.number + 1)
        self._touches_all = True
        self._changes.append(change)

    def _judged(self) -> tuple[Catalog, Collection[bytes]]:
        """Return the catalog so far, and the paths of the projects that it judged again."""
        projects, rules = dict(self._projects), tuple(self._rules)
        counters = self._next_rule, self._approvals_given
        catalog = self._old.with_projects(projects, rules, *counters, self._touched)
        if self._touches_all:
            return catalog.judged(catalog.projects, catalog), catalog.projects
        affected = affected_paths(self._touched, self._overruled, catalog)
        return catalog.judged(affected, self._old), affected


def _is_inherited(grant: Grant) -> bool:
    return grant.actor.kind is ActorKind.MAIN_CHECKOUT


def _end_of(ruling: Ruling) -> Expiry | None:
    """Return the end of the current or lapsed approval, or None."""
    given = ruling.decision or ruling.lapse
    return given.expires if given is not None else None


def _unsupported_reinstatements(
    after: Catalog, inputs: Iterable[Input]
) -> Mapping[bytes, Approve]:
    """Return the approval for each reinstated project that no rule or main checkout approves."""
    return {
        event.path: event.approval
        for event in inputs
        if isinstance(event, Reinstate)
        and after.judgments[event.path].reason is VerdictReason.UNDECIDED
    }


def _coalesce_observations(changes: Iterable[Change]) -> list[Change]:
    """Merge consecutive observations of each project, and drop those that change nothing.

    One scan may observe a project several times, and a second scan of the same files must not
    change anything.
    """
    merged: list[Change] = []
    observed: dict[bytes, tuple[int, Project | None]] = {}
    for change in changes:
        if isinstance(change, ProjectChange):
            earlier = observed.pop(change.path, None)
            if change.verb is ChangeVerb.OBSERVED:
                observed[change.path] = earlier or (len(merged), change.before)
                if earlier is not None:
                    at, before = earlier
                    merged[at] = replace(change, before=before)
                    continue
        merged.append(change)
    return [change for change in merged if change.before != change.after]


def _check_took_effect(judged: Catalog, path: bytes) -> None:
    """Raise DeniedHere if a denial prevents the effect of the approval of `path`.

    Without this check, rootsd would accept an approval without any effect.
    """
    judgment = judged.judgments[path]
    shown = safe_label(path, limit=None)
    if judgment.reason is VerdictReason.HOLDS_DENIED:
        inner = judged.denied_inside(path)
        inner_shown = safe_label(inner.path, limit=None)
        if (denial := judged.judgments[inner.path]).reason.is_policy_denial:
            why = policy_refusal(denial, judged.policy)
            raise DeniedHere(f"{shown} contains {inner_shown}: {why}", f"rootsd why {inner.id}")
        raise DeniedHere(
            f"{shown} contains {inner_shown}, which is denied", f"rootsd forget {inner.id}"
        )
    if judgment.verdict is not Verdict.DENIED:
        return
    if judgment.reason.is_policy_denial:
        why = policy_refusal(judgment, judged.policy)
        raise DeniedHere(f"{shown} cannot be approved: {why}", f"rootsd why {shown}")
    by = judgment.by
    if isinstance(by, int):
        raise DeniedHere(f"deny rule {by} covers {shown}", f"rootsd rule rm {by}")
    above = by if isinstance(by, bytes) else path
    folder = safe_label(above, limit=None)
    raise DeniedHere(f"{shown} lies in {folder}, which is denied", f"rootsd forget {folder}")


def _check_shared_git(judged: Catalog, path: bytes) -> None:
    """Raise IdentityChanged if the approval of `path` does not include the Git directory shown."""
    git = shared_git(judged, judged.projects[path])
    if git is None or not git.access.is_granted:
        where = safe_label(path if git is None else git.checkout, limit=None)
        raise IdentityChanged(
            f"{where} is not the pending checkout you were shown", f"rootsd show {where}"
        )
