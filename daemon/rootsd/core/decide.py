"""The one decision function, and the one predicate for what is published.

`judge` says what the verdict on a project is and on what ground, with the rest of the catalogue
as its surroundings; `voices` what else speaks for or against it. `is_published` answers "may
clients see this?" for everyone who asks.

Precedence, the same at every depth: a person's denial, of the folder or of one above it; a deny
rule; a person's approval whose identity holds; an approve rule; the main checkout of a linked
worktree; else pending. What holds a denied project is withheld, since a root includes what lies
below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from rootsd.core.model import (
    ActorKind,
    Identity,
    Presence,
    Project,
    ProjectKind,
    Root,
    Rule,
    Sighting,
    Verdict,
)
from rootsd.core.paths import ancestors, is_utf8, text_of
from rootsd.core.rules import speaking


class Ground(StrEnum):
    """Why a verdict is what it is."""

    DENIED = "denied"
    DENIED_ABOVE = "a folder above is denied"
    DENY_RULE = "deny rule"
    HOLDS_DENIED = "holds a denied project"
    APPROVED = "approved"
    APPROVE_RULE = "approve rule"
    MAIN_CHECKOUT = "worktree of an approved checkout"
    LAPSED = "approval lapsed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a project, its ground, and what spoke: another folder or a rule's number.
    `by` is None where what was decided about the project itself did, or nothing."""

    verdict: Verdict
    ground: Ground
    by: bytes | int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What `judge` needs to know besides the project itself.

    `denied` are the folders that a person denied; `holding_denied` the folders above any project
    that is denied by a person or a rule; `approved` tells whether a main checkout is approved.
    """

    rules: tuple[Rule, ...]
    denied: frozenset[bytes]
    holding_denied: frozenset[bytes]
    approved: Callable[[bytes], bool]


# Thousands of projects have one of these: 64 bytes each.
_APPROVED = Judgement(Verdict.APPROVED, Ground.APPROVED)
_DENIED = Judgement(Verdict.DENIED, Ground.DENIED)
_PENDING = Judgement(Verdict.PENDING, Ground.UNDECIDED)
_LAPSED = Judgement(Verdict.PENDING, Ground.LAPSED)


def judge(project: Project, around: Surroundings) -> Judgement:
    """The verdict on `project` as things stand."""
    return next(voices(project, around))


def why_denied(project: Project, around: Surroundings) -> Judgement | None:
    """The denial that stands on `project`, if one does."""
    return next(_denials(project, around), None)


def voices(project: Project, around: Surroundings) -> Iterator[Judgement]:
    """Everything that speaks for or against `project`, by precedence: the first is the verdict."""
    yield from _denials(project, around)
    is_withheld = project.path in around.holding_denied
    for approval in _approvals(project, around):
        if is_withheld:
            is_withheld = False
            yield Judgement(Verdict.PENDING, Ground.HOLDS_DENIED)
        yield approval
    yield _LAPSED if project.ruling.lapse else _PENDING


def _denials(project: Project, around: Surroundings) -> Iterator[Judgement]:
    if is_denied_by_person(project):
        yield _DENIED
    if around.denied and project.sighting.kind is not ProjectKind.URI:
        for folder in ancestors(project.path):
            if folder in around.denied:
                yield Judgement(Verdict.DENIED, Ground.DENIED_ABOVE, folder)
                break  # the nearest, which is the one to take back
    rule = speaking(around.rules, project.path, Verdict.DENIED)
    if rule is not None:
        yield Judgement(Verdict.DENIED, Ground.DENY_RULE, rule.number)


def is_denied_by_person(project: Project) -> bool:
    """Whether a person denied this very project."""
    decision = project.ruling.decision
    return decision is not None and decision.verdict is Verdict.DENIED


def _approvals(project: Project, around: Surroundings) -> Iterator[Judgement]:
    ruling, seen = project.ruling, project.sighting
    decision = ruling.decision
    if (
        decision is not None
        and decision.verdict is Verdict.APPROVED
        and _holds(decision.identity, seen)
    ):
        yield _APPROVED
    givers = {grant.actor.kind for grant in ruling.grants if _holds(grant.identity, seen)}
    if ActorKind.RULE in givers and (rule := approving_rule(project, around)) is not None:
        yield Judgement(Verdict.APPROVED, Ground.APPROVE_RULE, rule.number)
    if ActorKind.MAIN_CHECKOUT in givers:
        main = seen.main_checkout
        if main is not None and around.approved(main):
            yield Judgement(Verdict.APPROVED, Ground.MAIN_CHECKOUT, main)


def approving_rule(project: Project, around: Surroundings) -> Rule | None:
    """The approve rule that covers `project`, if one does."""
    return speaking(around.rules, project.path, Verdict.APPROVED)


def _holds(approved: Identity | None, sighting: Sighting) -> bool:
    if sighting.kind is ProjectKind.URI:
        return True
    seen = sighting.identity
    return approved is not None and seen is not None and approved.holds_for(seen)


def is_published(project: Project, judgement: Judgement) -> bool:
    """Whether clients may be told of `project`: approved, there, safe, and readable."""
    return (
        judgement.verdict is Verdict.APPROVED
        and project.sighting.presence is Presence.PRESENT
        and project.sighting.hazard is None
        and is_utf8(project.path)
    )


def root_of(project: Project) -> Root:
    """A published project as clients see it; its name was frozen by the approval."""
    ruling = project.ruling
    return Root(
        path=project.path,
        name=ruling.name or text_of(project.path),
        kind=project.sighting.kind,
        access=ruling.access,
        tags=ruling.tags,
    )
