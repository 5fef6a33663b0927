"""Numbered projects, rulings, and changes for tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rootsd.core.changes import Change, ChangeVerb, ProjectChange, RuleChange
from rootsd.core.encoding import to_ns
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    ActorKind,
    Decision,
    GitEntry,
    Grant,
    Identity,
    ObservedState,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PERSON = Actor(ActorKind.PERSON, "pts/3")


def after(seconds: int) -> datetime:
    """Return the time `seconds` after noon."""
    return NOON + timedelta(seconds=seconds)


def identity(number: int) -> Identity:
    """Return the identity of project `number`."""
    return Identity(b"disk", 1000 + number, b"handle-%d" % number, 10**18 + number, 1000)


def project(number: int, ruling: Ruling = UNDECIDED) -> Project:
    """Return project `number`, present, with `ruling`."""
    observed = ObservedState(ProjectKind.GIT, identity(number), NOON)
    return Project(b"/home/ann/src/p%d" % number, f"r{number}", observed, ruling)


def worktree(number: int, main: int) -> Project:
    """Return project `number` as a worktree of `main`, which was approved at noon. Git created it
    a minute later.
    """
    born = to_ns(NOON + timedelta(minutes=1))
    entry = Identity(b"disk", 2000 + number, b"entry-%d" % number, born, 1000)
    whole = replace(
        identity(number),
        born_ns=born,
        git=GitEntry.FILE,
        git_target=entry,
        git_born_ns=born,
    )
    observed = ObservedState(
        ProjectKind.GIT_WORKTREE, whole, NOON, main_checkout=project(main).path
    )
    by_main = Grant(Actor(ActorKind.MAIN_CHECKOUT), whole, NOON, to_ns(NOON))
    ruling = Ruling(grants=(by_main,), name=f"p{number}")
    return replace(project(number, ruling), observed=observed)


def approved(number: int) -> Project:
    """Return project `number`, approved by a person."""
    decision = Decision(Verdict.APPROVED, PERSON, NOON, identity(number))
    return project(number, Ruling(decision, name=f"p{number}", tags=("work",)))


def denied(number: int) -> Project:
    """Return project `number`, denied by a person."""
    return project(number, Ruling(Decision(Verdict.DENIED, PERSON, NOON)))


def granted(number: int) -> Project:
    """Return project `number`, approved by rule 1."""
    grant = Grant(Actor(ActorKind.RULE, "1"), identity(number), NOON)
    return project(number, Ruling(grants=(grant,), name=f"p{number}"))


def rule(number: int, verdict: Verdict) -> Rule:
    """Return rule `number`, which covers everything below /srv."""
    return Rule(number, b"/srv/**", verdict, PERSON, NOON)


def decide(now: Project, before: Project | None = None) -> Change:
    """Return the change by which a person's order turned `before` into `now`."""
    decision = now.ruling.decision
    verb = (
        ChangeVerb.DENIED
        if decision and decision.verdict is Verdict.DENIED
        else ChangeVerb.APPROVED
    )
    return ProjectChange(now.path, before, now, verb, PERSON)


def see(now: Project, before: Project | None = None) -> Change:
    """Return the change by which a scan turned `before` into `now`."""
    return ProjectChange(now.path, before, now, ChangeVerb.OBSERVED)


def forget(before: Project, now: Project | None = None) -> Change:
    """Return the change by which a person forgot `before`. `now` is the remainder."""
    return ProjectChange(before.path, before, now, ChangeVerb.FORGOTTEN, PERSON)


def add(new: Rule) -> Change:
    """Return the change by which a person added a rule."""
    return RuleChange(new.number, None, new, ChangeVerb.RULE_ADDED, PERSON)


def remove(old: Rule) -> Change:
    """Return the change by which a person removed a rule."""
    return RuleChange(old.number, old, None, ChangeVerb.RULE_REMOVED, PERSON)


def decided(number: int) -> Project:
    """Return the project of decision `number`, one of 50, approved or denied by it."""
    return approved(number % 50) if number % 3 else denied(number % 50)


def numbered(number: int) -> Change:
    """Return decision `number` of a test's writer. It is the same in every process."""
    return decide(decided(number))
