from __future__ import annotations

from msgspec.structs import replace

from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.core.model import (
    Decision,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
)
from support.core_samples import ANN, LATER, NOW, identity

SEEN = Project(b"/w/a", "r7k2", ObservedState(ProjectKind.GIT, identity(1), NOW))
DENIED = replace(SEEN, ruling=Ruling(Decision(Verdict.DENIED, ANN, NOW)))


def _is_decision(before: Project | None, after: Project | None) -> bool:
    return ProjectChange(b"/w/a", before, after, ChangeVerb.OBSERVED).is_decision


def test_an_observation_is_not_a_decision() -> None:
    missing = replace(SEEN.observed, presence=Presence.MISSING, absent_since=LATER)
    assert not _is_decision(None, SEEN)
    assert not _is_decision(SEEN, None)
    assert not _is_decision(SEEN, replace(SEEN, observed=missing))
    assert not _is_decision(DENIED, replace(DENIED, observed=missing))


def test_a_change_of_the_ruling_is_a_decision() -> None:
    assert _is_decision(None, DENIED)
    assert _is_decision(SEEN, DENIED)
    assert _is_decision(DENIED, SEEN)
    assert _is_decision(DENIED, None)
    assert _is_decision(DENIED, replace(DENIED, ruling=replace(DENIED.ruling, name="api")))
