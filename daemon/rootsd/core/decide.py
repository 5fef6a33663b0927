"""The one decision function, and the one predicate for what is published.

`judge` says what the verdict on a project is and on what ground, with the rest of the catalogue
as its surroundings. `is_published` answers "may clients see this?" for everyone who asks.

Precedence, the same at every depth: a person's denial, of the folder or of one above it; a deny
rule; a person's approval whose identity holds; an approve rule; the main checkout of a linked
worktree; else pending. What holds a denied project is withheld, since a root includes what lies
below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

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
from rootsd.core.paths import ancestors, is_utf8, text_of, to_uri
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
    """The verdict on a project, its ground, and what spoke: a folder or a rule's number."""

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


_PENDING = Judgement(Verdict.PENDING, Ground.UNDECIDED)
_LAPSED = Judgement(Verdict.PENDING, Ground.LAPSED)


def judge(project: Project, around: Surroundings) -> Judgement:
    """The verdict on `project` as things stand."""
    denial = why_denied(project, around)
    if denial is not None:
        return denial
    approval = _why_approved(project, around)
    if approval is None:
        return _LAPSED if project.ruling.lapse else _PENDING
    if project.path in around.holding_denied:
        return Judgement(Verdict.PENDING, Ground.HOLDS_DENIED)
    return approval


def why_denied(project: Project, around: Surroundings) -> Judgement | None:
    """The denial that stands on `project`, if one does."""
    if is_denied_by_person(project):
        return Judgement(Verdict.DENIED, Ground.DENIED, project.path)
    if around.denied and project.sighting.kind is not ProjectKind.URI:
        for folder in ancestors(project.path):
            if folder in around.denied:
                return Judgement(Verdict.DENIED, Ground.DENIED_ABOVE, folder)
    rule = speaking(around.rules, project.path, Verdict.DENIED)
    return Judgement(Verdict.DENIED, Ground.DENY_RULE, rule.number) if rule else None


def is_denied_by_person(project: Project) -> bool:
    """Whether a person denied this very project."""
    decision = project.ruling.decision
    return decision is not None and decision.verdict is Verdict.DENIED


def _why_approved(project: Project, around: Surroundings) -> Judgement | None:
    decision = project.ruling.decision
    if (
        decision is not None
        and decision.verdict is Verdict.APPROVED
        and _holds(decision.identity, project.sighting)
    ):
        return Judgement(Verdict.APPROVED, Ground.APPROVED)
    for grant in project.ruling.grants:
        if not _holds(grant.identity, project.sighting):
            continue
        match grant.actor.kind:
            case ActorKind.RULE:
                rule = approving_rule(project, around)
                if rule is not None:
                    return Judgement(Verdict.APPROVED, Ground.APPROVE_RULE, rule.number)
            case ActorKind.MAIN_CHECKOUT:
                main = project.sighting.main_checkout
                if main is not None and around.approved(main):
                    return Judgement(Verdict.APPROVED, Ground.MAIN_CHECKOUT, main)
            case ActorKind.PERSON | ActorKind.CALLER:
                continue
            case _:
                assert_never(grant.actor.kind)
    return None


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
    ruling, kind = project.ruling, project.sighting.kind
    return Root(
        path=project.path,
        uri=text_of(project.path) if kind is ProjectKind.URI else to_uri(project.path),
        name=ruling.name or text_of(project.path),
        kind=kind,
        access=ruling.access,
        tags=ruling.tags,
    )
