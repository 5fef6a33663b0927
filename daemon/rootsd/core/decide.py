"""Decide the verdict on a project, whether it is published, and which worktrees inherit an
approval.

When a linked worktree inherits the approval of its main checkout.

Anybody can write a `.git` file that names an approved repository, and an archive can hold the
link back as well. Two things cannot be forged by a file: the birth time of a folder, and the
moment at which a person approved. A worktree inherits only if all of these hold:

* The repository links back to it. `rootsd.vcs.git.repository` checks that.
* `git worktree add` made it: the folder, its `.git` file, and its entry in the repository were
  born within two seconds.
* It is not a parent, and it holds no parent, no main checkout and no other known project. It may
  hold worktrees that inherit from the same main checkout: they are published anyway.
* Neither its `.git` file nor its entry was replaced since the last grant.
* Its entry was born after the approval, or the person saw the folder and confirmed it.

The one decision function, and the one predicate for what is published.

`judge` says what the verdict on a project is and on what ground, with the rest of the catalog
as its surroundings; `voices` what else speaks for or against it. `is_published` answers "may
clients see this?" for everyone who asks.

Precedence, the same at every depth: a person's denial, of the folder or of one above it; a deny
rule; a person's approval whose identity holds; an approve rule; the main checkout of a linked
worktree (`rootsd.core.decide`); else pending. What holds a denied project is withheld, since a
root includes what lies below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rootsd.core.encoding import to_ns
from rootsd.core.model import (
    ActorKind,
    Identity,
    LapseReason,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    PublishedRoot,
    Rule,
    Verdict,
)
from rootsd.core.paths import ancestors, contains, is_utf8, text_of
from rootsd.core.rules import first_match

CREATION_WINDOW_NS = 2 * 10**9


class InheritanceBlocker(StrEnum):
    """Why a worktree of an approved main checkout does not inherit the approval."""

    NO_BIRTH_TIMES = "its file system does not record when files were created"
    BORN_APART = "its folder, its .git file and its entry in git were not created together"
    REPLACED = "its .git file or its entry in git was replaced"
    PARENT = "it is a parent, or holds one"
    HOLDS_MAIN = "it holds its main checkout"
    HOLDS_PROJECT = "it holds another project"
    OLDER = "it existed before its main checkout was approved"


def entry_born_ns(identity: Identity | None) -> int | None:
    """Return when the repository got its entry for a worktree, or None if nothing tells."""
    target = identity.git_target if identity is not None else None
    return target.born_ns if target is not None else None


def creation_blocker(identity: Identity | None) -> InheritanceBlocker | None:
    """Return why a folder may not have been made by `git worktree add`, or None if it was."""
    if identity is None:
        return InheritanceBlocker.NO_BIRTH_TIMES
    births = [identity.born_ns, identity.git_born_ns, entry_born_ns(identity)]
    known = [born for born in births if born is not None]
    if len(known) < len(births):
        return InheritanceBlocker.NO_BIRTH_TIMES
    return InheritanceBlocker.BORN_APART if max(known) - min(known) > CREATION_WINDOW_NS else None


def location_blocker(
    path: bytes, main: bytes, parents: Iterable[bytes]
) -> InheritanceBlocker | None:
    """Return why a folder at `path` would show more than a worktree of `main`, or None."""
    if any(contains(path, parent) for parent in parents):
        return InheritanceBlocker.PARENT
    return InheritanceBlocker.HOLDS_MAIN if contains(path, main) else None


class VerdictReason(StrEnum):
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
class Judgment:
    """The verdict on a project, its ground, and what spoke: another folder or a rule's number.
    `by` is None where what was decided about the project itself did, or nothing."""

    verdict: Verdict
    reason: VerdictReason
    by: bytes | int | None = None


@dataclass(frozen=True, slots=True)
class DecisionContext:
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
    projects_below: Callable[[bytes], Sequence[Project]] = lambda _: ()
    parents: tuple[bytes, ...] = ()


# Thousands of projects have one of these: 64 bytes each.
_APPROVED = Judgment(Verdict.APPROVED, VerdictReason.APPROVED)
_DENIED = Judgment(Verdict.DENIED, VerdictReason.DENIED)
_PENDING = Judgment(Verdict.PENDING, VerdictReason.UNDECIDED)
_LAPSED = Judgment(Verdict.PENDING, VerdictReason.LAPSED)


def judge(project: Project, context: DecisionContext) -> Judgment:
    """The verdict on `project` as things stand."""
    return next(judgments_by_precedence(project, context))


def denial_of(project: Project, context: DecisionContext) -> Judgment | None:
    """The denial that stands on `project`, if one does."""
    return next(_denials(project, context), None)


def judgments_by_precedence(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    """Everything that speaks for or against `project`, by precedence: the first is the verdict."""
    yield from _denials(project, context)
    is_withheld = project.path in context.holding_denied
    for approval in _approvals(project, context):
        if is_withheld:
            is_withheld = False
            yield Judgment(Verdict.PENDING, VerdictReason.HOLDS_DENIED)
        yield approval
    yield _LAPSED if project.ruling.lapse else _PENDING


def _denials(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    if is_denied_by_person(project):
        yield _DENIED
    if context.denied and project.observed.kind is not ProjectKind.URI:
        for folder in ancestors(project.path):
            if folder in context.denied:
                yield Judgment(Verdict.DENIED, VerdictReason.DENIED_ABOVE, folder)
                break  # the nearest, which is the one to take back
    rule = first_match(context.rules, project.path, Verdict.DENIED)
    if rule is not None:
        yield Judgment(Verdict.DENIED, VerdictReason.DENY_RULE, rule.number)


def is_denied_by_person(project: Project) -> bool:
    """Whether a person denied this very project."""
    decision = project.ruling.decision
    return decision is not None and decision.verdict is Verdict.DENIED


def _approvals(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    ruling, seen = project.ruling, project.observed
    decision = ruling.decision
    if (
        decision is not None
        and decision.verdict is Verdict.APPROVED
        and _holds(decision.identity, seen)
    ):
        yield _APPROVED
    givers = {grant.actor.kind for grant in ruling.grants if _holds(grant.identity, seen)}
    if ActorKind.RULE in givers and (rule := approving_rule(project, context)) is not None:
        yield Judgment(Verdict.APPROVED, VerdictReason.APPROVE_RULE, rule.number)
    if ActorKind.MAIN_CHECKOUT in givers and _inherits(project, context):
        yield Judgment(Verdict.APPROVED, VerdictReason.MAIN_CHECKOUT, seen.main_checkout)


def _inherits(project: Project, context: DecisionContext) -> bool:
    """Return whether a grant as a worktree still counts."""
    seen = project.observed
    main = seen.main_checkout
    since = context.approved_since(main) if main is not None else None
    return (
        since is not None
        and seen.identity is not None
        and any(
            grant.actor.kind is ActorKind.MAIN_CHECKOUT
            and grant.since_ns == since
            and grant.identity.keeps_git_file(seen.identity)
            for grant in project.ruling.grants
        )
        and _permanent_blocker(project, context) is None
    )


def inheritance_blocker(project: Project, context: DecisionContext) -> InheritanceBlocker | None:
    """Return why `project`, a worktree, gets no grant from its approved main checkout.

    None also if it is no worktree, or if its main checkout is not approved: then there is no
    approval to inherit. A person can overrule `Doubt.OLDER` and no other blocker.
    """
    main = project.observed.main_checkout
    since = context.approved_since(main) if main is not None else None
    if since is None:
        return None
    if (blocker := _permanent_blocker(project, context)) is not None:
        return blocker
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return InheritanceBlocker.REPLACED
    born = entry_born_ns(project.observed.identity)
    return InheritanceBlocker.OLDER if born is None or born <= since else None


def bulk_approval_blocker(project: Project, context: DecisionContext) -> InheritanceBlocker | None:
    """Return why an approval that does not name `project` leaves it out, or None.

    A forged `.git` file can make a folder look like a worktree. A person who names the folder can
    approve it all the same. `Doubt.OLDER` does not count here.
    """
    if any(contains(project.path, parent) for parent in context.parents):
        return InheritanceBlocker.PARENT
    if project.observed.main_checkout is None:
        return None
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return InheritanceBlocker.REPLACED
    return _permanent_blocker(project, context)


def _permanent_blocker(project: Project, context: DecisionContext) -> InheritanceBlocker | None:
    """Return the blocker about a worktree that no confirmation removes."""
    seen = project.observed
    main = seen.main_checkout or b""
    blocker = creation_blocker(seen.identity)
    blocker = blocker or location_blocker(project.path, main, context.parents)
    if blocker is None and not all(
        _is_harmless(p, main, context) for p in context.projects_below(project.path)
    ):
        blocker = InheritanceBlocker.HOLDS_PROJECT
    return blocker


def _is_harmless(inner: Project, main: bytes, context: DecisionContext) -> bool:
    """Return whether a worktree of `main` that holds `inner` shows nothing but its own files."""
    if inner.observed.presence is Presence.MISSING:
        return True
    if inner.observed.main_checkout != main:
        return False
    return (
        inheritance_blocker(inner, context) is None
        or judge(inner, context).verdict is Verdict.APPROVED
    )


def approved_since_ns(
    project: Project, judgment: Judgment, context: DecisionContext
) -> int | None:
    """Return since when `project` is approved without a break, in nanoseconds since the epoch.

    None if it is not approved for all sessions, or only as a worktree. The number also names the
    approval: a later one has another.
    """
    ruling = project.ruling
    match judgment.reason:
        case VerdictReason.APPROVED if (decision := ruling.decision) and decision.session is None:
            return to_ns(decision.at) if decision.since_ns is None else decision.since_ns
        case VerdictReason.APPROVE_RULE if (rule := approving_rule(project, context)) is not None:
            grants = (g for g in ruling.grants if g.actor.kind is ActorKind.RULE)
            grant = next(grants)
            given = to_ns(grant.at) if grant.since_ns is None else grant.since_ns
            return max(given, to_ns(rule.at))
        case _:
            return None


def approving_rule(project: Project, context: DecisionContext) -> Rule | None:
    """The approve rule that covers `project`, if one does."""
    return first_match(context.rules, project.path, Verdict.APPROVED)


def _holds(approved: Identity | None, observed: ObservedState) -> bool:
    if observed.kind is ProjectKind.URI:
        return True
    seen = observed.identity
    return approved is not None and seen is not None and approved.holds_for(seen)


def is_published(project: Project, judgment: Judgment) -> bool:
    """Whether clients may be told of `project`: approved, there, safe, and readable."""
    return (
        judgment.verdict is Verdict.APPROVED
        and project.observed.presence is Presence.PRESENT
        and project.observed.hazard is None
        and is_utf8(project.path)
    )


def root_of(project: Project, name: str | None = None) -> PublishedRoot:
    """Return a published project as clients see it: under `name`, else its frozen name."""
    ruling, decision = project.ruling, project.ruling.decision
    session = None if decision is None else decision.session
    return PublishedRoot(
        path=project.path,
        name=name or ruling.name or text_of(project.path),
        kind=project.observed.kind,
        access=ruling.access,
        tags=ruling.tags,
        main_checkout=project.observed.main_checkout,
        approval=0 if decision is None else decision.number,
        session=None if session is None else session.id,
    )
