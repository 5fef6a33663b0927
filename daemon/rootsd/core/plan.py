"""From inputs to a new catalogue and the list of changes: decides, and does nothing.

Rules and approved main checkouts speak here too: a pending project that one of them covers gets
a grant, bound to the identity seen, so that each approval is a row of the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from rootsd.core import names
from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ProjectChange, RuleChange, Verb
from rootsd.core.decide import Ground, approving_rule, why_denied
from rootsd.core.errors import DeniedHere, NameTaken, RefusedPlace, UnknownRule
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Input,
    RemoveRule,
    Sighted,
    Unreachable,
    Unsafe,
    Vanished,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    Actor,
    ActorKind,
    Grant,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Verdict,
)
from rootsd.core.paths import ancestors, is_utf8
from rootsd.core.rules import checked_pattern
from rootsd.core.step import step


@dataclass(frozen=True, slots=True)
class Plan:
    """What inputs lead to. `changes` are in order; empty where nothing changes."""

    catalog: Catalog
    changes: tuple[Change, ...]


def plan(catalog: Catalog, inputs: Iterable[Input], now: datetime) -> Plan:
    """The catalogue after `inputs`. Raises OrderRefused; then nothing of `inputs` counts."""
    draft = _Draft(catalog, now)
    for event in inputs:
        draft.take(event)
    return draft.finished()


class _Draft:
    """A catalogue in the making: a private copy, what was touched, and the changes so far."""

    def __init__(self, catalog: Catalog, now: datetime) -> None:
        self._old = catalog
        self._now = now
        self._projects = dict(catalog.projects)
        self._rules = list(catalog.rules)
        self._next_rule = catalog.next_rule
        self._changes: list[Change] = []
        self._touched: dict[bytes, None] = {}
        self._touches_all = False
        self._approvals: list[Approve] = []
        self._new_ids: dict[str, bytes] = {}

    def take(self, event: Input) -> None:
        match event:
            case Sighted() | Vanished() | Unreachable() | Unsafe():
                self._step(event, Verb.OBSERVED, None)
            case Approve():
                self._check_approvable(event)
                self._step(self._named(event), Verb.APPROVED, event.actor)
                self._approvals.append(event)
            case Deny():
                self._step(event, Verb.DENIED, event.actor)
                self._touches_all = True
            case Forget():
                self._step(event, Verb.FORGOTTEN, event.actor)
                self._touches_all = True
            case AddRule():
                self._add_rule(event)
            case RemoveRule():
                self._remove_rule(event)
            case _:
                assert_never(event)

    def finished(self) -> Plan:
        if not self._changes:
            return Plan(self._old, ())
        judged = self._judged()
        granted = self._grants(judged)
        if granted:
            for path, project in granted:
                self._put(path, project, Verb.GRANTED, project.ruling.grants[-1].actor)
            judged = self._judged()
        for approval in self._approvals:
            _check_took_effect(judged, approval)
        return Plan(judged, tuple(self._changes))

    def _step(
        self, event: Sighted | Vanished | Unreachable | Unsafe | Approve | Deny | Forget,
        verb: Verb, actor: Actor | None,
    ) -> None:  # fmt: skip
        before = self._projects.get(event.path)
        new_id = "" if before else self._id_for(event.path)
        after = step(before, event, new_id, self._now)
        if after is before:
            return
        lapsed = (
            verb is Verb.OBSERVED
            and before is not None
            and after is not None
            and before.ruling != after.ruling
        )
        self._put(event.path, after, Verb.LAPSED if lapsed else verb, actor)

    def _id_for(self, path: bytes) -> str:
        new_id = names.project_id(path, {*self._new_ids, *self._old.ids})
        self._new_ids[new_id] = path
        return new_id

    def _put(self, path: bytes, after: Project | None, verb: Verb, actor: Actor | None) -> None:
        before = self._projects.get(path)
        if before == after:
            return
        if after is None:
            del self._projects[path]
        else:
            self._projects[path] = after
        self._touched[path] = None
        self._changes.append(ProjectChange(path, before, after, verb, actor))

    def _check_approvable(self, order: Approve) -> None:
        project = self._projects.get(order.path)
        if project is not None and project.sighting.kind is ProjectKind.URI:
            return
        if reason := self._old.places.why_no_root(order.path):
            shown = safe_label(order.path, limit=None)
            raise RefusedPlace(f"{shown} can never be a root: {reason}")
        if not is_utf8(order.path):
            shown = safe_label(order.path, limit=None)
            raise RefusedPlace(f"{shown} is not UTF-8, so clients cannot be told of it")

    def _named(self, order: Approve) -> Approve:
        """The order with the name it freezes: its own, the one frozen before, or the proposal."""
        project = self._projects.get(order.path)
        if project is None:
            return order
        name = order.name or project.ruling.name or self._proposal(order.path)
        holder = next(
            (p for p in self._projects.values() if p.ruling.name == name and p.path != order.path),
            None,
        )
        if holder is not None:
            where = safe_label(holder.path, limit=None)
            raise NameTaken(
                f"the name {safe_label(name)} belongs to {where}", "rootsd approve REF --as NAME"
            )
        return replace(order, name=name)

    def _proposal(self, path: bytes) -> str:
        """The name that the person saw, unless a name frozen meanwhile took it."""
        taken = {p.ruling.name for p in self._projects.values() if p.ruling.name is not None}
        known = self._old.proposed_names.get(path)
        if known is not None and known not in taken:
            return known
        unnamed = (p.path for p in self._projects.values() if p.ruling.name is None)
        return names.propose(unnamed, taken)[path]

    def _add_rule(self, order: AddRule) -> None:
        rule = Rule(
            self._next_rule, checked_pattern(order.pattern), order.verdict, order.actor, self._now
        )
        self._next_rule += 1
        self._rules.append(rule)
        self._touches_all = True
        self._changes.append(RuleChange(rule.number, None, rule, Verb.RULE_ADDED, order.actor))

    def _remove_rule(self, order: RemoveRule) -> None:
        rule = next((rule for rule in self._rules if rule.number == order.number), None)
        if rule is None:
            raise UnknownRule(f"there is no rule {order.number}", "rootsd rule ls")
        self._rules.remove(rule)
        self._touches_all = True
        self._changes.append(RuleChange(rule.number, rule, None, Verb.RULE_REMOVED, order.actor))

    def _judged(self) -> Catalog:
        catalog = Catalog(self._projects, tuple(self._rules), self._old.places, self._next_rule)
        if self._touches_all:
            return catalog.judged(tuple(self._projects), {}, {})
        return catalog.judged(
            _reach(self._touched, catalog), dict(self._old.judgements), dict(self._old.roots)
        )

    def _grants(self, judged: Catalog) -> list[tuple[bytes, Project]]:
        """The pending projects that a rule or an approved main checkout speaks for."""
        around = judged.surroundings
        paths = set(self._projects) if self._touches_all else _reach(self._touched, judged)
        granted: list[tuple[bytes, Project]] = []
        for path in sorted(paths):
            project = self._projects.get(path)
            if project is None or not _can_be_granted(project, judged):
                continue
            main = project.sighting.main_checkout
            if rule := approving_rule(project, around):
                actor = Actor(ActorKind.RULE, str(rule.number))
            elif main is not None and around.approved(main):
                actor = Actor(ActorKind.MAIN_CHECKOUT, safe_label(main, limit=None))
            else:
                continue
            granted.append((path, self._with_grant(project, actor)))
        return granted

    def _with_grant(self, project: Project, actor: Actor) -> Project:
        identity = project.sighting.identity
        assert identity is not None, "_can_be_granted looked"
        ruling = project.ruling
        kept = tuple(grant for grant in ruling.grants if grant.actor.kind is not actor.kind)
        return replace(
            project,
            ruling=replace(
                ruling,
                grants=(*kept, Grant(actor, identity, self._now)),
                lapse=None,
                name=ruling.name or self._proposal(project.path),
            ),
        )


def _reach(touched: Iterable[bytes], catalog: Catalog) -> set[bytes]:
    """The projects whose judgement an approval or a sighting of `touched` can change.

    That is: themselves, what holds them (withheld when they are denied), and the worktrees of all.
    """
    near = {
        folder
        for path in touched
        for folder in (path, *(ancestors(path) if path.startswith(b"/") else ()))
        if folder == path or folder in catalog.projects
    }
    linked = catalog.linked
    return near.union(*(linked.get(path, ()) for path in near))


def _can_be_granted(project: Project, judged: Catalog) -> bool:
    seen = project.sighting
    return (
        judged.judgements[project.path].ground in (Ground.UNDECIDED, Ground.LAPSED)
        and seen.presence is Presence.PRESENT
        and seen.incomplete is None
        and seen.hazard is None
        and seen.identity is not None
        and judged.places.why_no_root(project.path) is None
    )


def _check_took_effect(judged: Catalog, order: Approve) -> None:
    """An approval under a denial would be accepted and then do nothing: it is refused instead."""
    project = judged.projects[order.path]
    if judged.judgements[order.path].verdict is Verdict.APPROVED:
        return
    shown = safe_label(order.path, limit=None)
    denial = why_denied(project, judged.surroundings)
    if denial is None:
        inner = next(p for p in judged.below(order.path) if judged.is_denied(p))
        inner_shown = safe_label(inner.path, limit=None)
        raise DeniedHere(
            f"{shown} holds {inner_shown}, which is denied", f"rootsd forget {inner.id}"
        )
    if isinstance(denial.by, int):
        raise DeniedHere(f"deny rule {denial.by} covers {shown}", f"rootsd rule rm {denial.by}")
    folder = safe_label(denial.by or b"", limit=None)
    raise DeniedHere(f"{shown} lies in {folder}, which is denied", f"rootsd forget {folder}")
