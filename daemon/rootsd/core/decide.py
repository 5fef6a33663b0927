"""The one decision function, and the one predicate for what is published.

`judge` says what the verdict on a project is and on what ground, with the rest of the catalogue
as its surroundings; `voices` what else speaks for or against it. `is_published` answers "may
clients see this?" for everyone who asks.

Precedence, the same at every depth: a person's denial, of the folder or of one above it; a deny
rule; a person's approval whose identity holds; an approve rule; the main checkout of a linked
worktree (`rootsd.core.worktrees`); else pending. What holds a denied project is withheld, since a
root includes what lies below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rootsd.core.model import (
    ActorKind,
    Identity,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Root,
    Rule,
    Sighting,
    Verdict,
)
from rootsd.core.paths import ancestors, contains, is_utf8, text_of
from rootsd.core.records import to_ns
from rootsd.core.rules import speaking
from rootsd.core.worktrees import Doubt, doubt_about_birth, doubt_about_place, entry_born_ns


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
    that is denied by a person or a rule; `approved_since` tells since when a main checkout is
    approved (see `since_of`), and None if it is not. `inside` gives the projects below a folder,
    `parents` are the configured ones.
    """

    rules: tuple[Rule, ...]
    denied: frozenset[bytes]
    holding_denied: frozenset[bytes]
    approved_since: Callable[[bytes], int | None]
    inside: Callable[[bytes], Sequence[Project]] = lambda _: ()
    parents: tuple[bytes, ...] = ()


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
    if ActorKind.MAIN_CHECKOUT in givers and _inherits(project, around):
        yield Judgement(Verdict.APPROVED, Ground.MAIN_CHECKOUT, seen.main_checkout)


def _inherits(project: Project, around: Surroundings) -> bool:
    """Return whether a grant as a worktree still counts."""
    seen = project.sighting
    main = seen.main_checkout
    since = around.approved_since(main) if main is not None else None
    return (
        since is not None
        and seen.identity is not None
        and any(
            grant.actor.kind is ActorKind.MAIN_CHECKOUT
            and grant.since_ns == since
            and grant.identity.keeps_git_file(seen.identity)
            for grant in project.ruling.grants
        )
        and _lasting_doubt(project, around) is None
    )


def doubt_about(project: Project, around: Surroundings) -> Doubt | None:
    """Return why `project`, a worktree, gets no grant from its approved main checkout.

    None also if it is no worktree, or if its main checkout is not approved: then there is no
    approval to inherit. A person can overrule `Doubt.OLDER` and no other doubt.
    """
    main = project.sighting.main_checkout
    since = around.approved_since(main) if main is not None else None
    if since is None:
        return None
    if (doubt := _lasting_doubt(project, around)) is not None:
        return doubt
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return Doubt.REPLACED
    born = entry_born_ns(project.sighting.identity)
    return Doubt.OLDER if born is None or born <= since else None


def doubt_about_sweep(project: Project, around: Surroundings) -> Doubt | None:
    """Return why an approval that does not name `project` leaves it out, or None.

    A forged `.git` file can make a folder look like a worktree. A person who names the folder can
    approve it all the same. `Doubt.OLDER` does not count here.
    """
    if any(contains(project.path, parent) for parent in around.parents):
        return Doubt.PARENT
    if project.sighting.main_checkout is None:
        return None
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return Doubt.REPLACED
    return _lasting_doubt(project, around)


def _lasting_doubt(project: Project, around: Surroundings) -> Doubt | None:
    """Return the doubt about a worktree that no confirmation removes."""
    seen = project.sighting
    main = seen.main_checkout or b""
    doubt = doubt_about_birth(seen.identity)
    doubt = doubt or doubt_about_place(project.path, main, around.parents)
    if doubt is None and not all(
        _is_harmless(p, main, around) for p in around.inside(project.path)
    ):
        doubt = Doubt.HOLDS_PROJECT
    return doubt


def _is_harmless(inner: Project, main: bytes, around: Surroundings) -> bool:
    """Return whether a worktree of `main` that holds `inner` shows nothing but its own files."""
    if inner.sighting.presence is Presence.MISSING:
        return True
    if inner.sighting.main_checkout != main:
        return False
    return doubt_about(inner, around) is None or judge(inner, around).verdict is Verdict.APPROVED


def since_of(project: Project, judgement: Judgement, around: Surroundings) -> int | None:
    """Return since when `project` is approved without a break, in nanoseconds since the epoch.

    None if it is not approved for all sessions, or only as a worktree. The number also names the
    approval: a later one has another.
    """
    ruling = project.ruling
    match judgement.ground:
        case Ground.APPROVED if (decision := ruling.decision) and decision.session is None:
            return to_ns(decision.at) if decision.since_ns is None else decision.since_ns
        case Ground.APPROVE_RULE if (rule := approving_rule(project, around)) is not None:
            grants = (g for g in ruling.grants if g.actor.kind is ActorKind.RULE)
            grant = next(grants)
            given = to_ns(grant.at) if grant.since_ns is None else grant.since_ns
            return max(given, to_ns(rule.at))
        case _:
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


def root_of(project: Project, name: str | None = None) -> Root:
    """Return a published project as clients see it: under `name`, else its frozen name."""
    ruling, decision = project.ruling, project.ruling.decision
    session = None if decision is None else decision.session
    return Root(
        path=project.path,
        name=name or ruling.name or text_of(project.path),
        kind=project.sighting.kind,
        access=ruling.access,
        tags=ruling.tags,
        main_checkout=project.sighting.main_checkout,
        approval=0 if decision is None else decision.number,
        session=None if session is None else session.id,
    )
