from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.errors import CannotUndo, IdentityChanged, NotPresent
from rootsd.core.inputs import (
    Approve,
    Deny,
    Forget,
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectOrder,
    ProjectUnreachable,
    ProjectUnsafe,
    Rename,
    Restore,
    Retag,
)
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    ActorKind,
    Decision,
    Expiry,
    GitEntry,
    Grant,
    Identity,
    IncompleteReason,
    Lapse,
    LapseReason,
    MountBinding,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
)
from rootsd.core.transition import apply_input
from support.core_samples import ANN, LATER, NOW, UNIDENTIFIABLE, identity, seen, uri_seen

PATH = b"/w/api"
URI = b"https://example.com/v1"
GRANT = Grant(Actor(ActorKind.RULE, "1"), identity(1), NOW)
DENIED = Ruling(Decision(Verdict.DENIED, ANN, NOW), name="api", tags=("work",))
APPROVED = Ruling(
    Decision(Verdict.APPROVED, ANN, NOW, identity(1)), (GRANT,), name="api", tags=("work",)
)
PENDING = Project(PATH, "r7k2", ObservedState(ProjectKind.GIT, identity(1), NOW))
ROOT = replace(PENDING, ruling=APPROVED)
REFUSED = replace(PENDING, ruling=DENIED)
MISSING = replace(
    ROOT, observed=replace(ROOT.observed, presence=Presence.MISSING, absent_since=NOW)
)


def later(project: Project | None, event: Observation | ProjectOrder) -> Project | None:
    return apply_input(project, event, "new0", LATER)


def kept(project: Project | None, event: Observation | ProjectOrder) -> Project:
    after = later(project, event)
    assert after is not None
    return after


def test_only_a_sighting_makes_a_project_known_and_it_is_pending_with_a_new_id() -> None:
    assert later(None, seen(PATH)) == Project(
        PATH, "new0", ObservedState(ProjectKind.GIT, identity(1), LATER)
    )
    unsafe = ProjectUnsafe(PATH, LapseReason.EXPOSED)
    for event in (ProjectGone(PATH), ProjectUnreachable(PATH), unsafe):
        assert later(None, event) is None


def test_an_unproposed_project_is_dropped_unless_decided_or_named() -> None:
    stray = replace(seen(PATH), proposed=False)
    assert later(None, stray) is None
    assert later(PENDING, stray) is None
    named = replace(PENDING, observed=replace(PENDING.observed, named=True))
    tagged = replace(PENDING, ruling=Ruling(tags=("work",)))
    lapsed = replace(PENDING, ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOW)))
    for project in (ROOT, REFUSED, named, tagged, lapsed):
        assert kept(project, replace(stray, named=project is named)) == project


@pytest.mark.parametrize(
    "event",
    [
        ProjectObserved(PATH, ProjectKind.URI, None),
        ProjectObserved(URI, ProjectKind.GIT, identity(1)),
    ],
)
def test_an_impossible_observation_raises_value_error(event: ProjectObserved) -> None:
    with pytest.raises(ValueError, match="and a URI has none"):
        later(None, event)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (seen(PATH, 2), LapseReason.REPLACED),
        (ProjectObserved(PATH, ProjectKind.GIT, None), LapseReason.REPLACED),
        (ProjectObserved(PATH, ProjectKind.GIT, UNIDENTIFIABLE), LapseReason.REPLACED),
        (seen(PATH, 1, b"/w/main"), LapseReason.RETARGETED),
        (ProjectUnsafe(PATH, LapseReason.EXPOSED), LapseReason.EXPOSED),
    ],
)
@pytest.mark.parametrize("ruling", [APPROVED, replace(APPROVED, decision=None)])
def test_an_approval_lapses_and_name_and_tags_are_kept(
    event: Observation, reason: LapseReason, ruling: Ruling
) -> None:
    lapsed = kept(replace(ROOT, ruling=ruling), event)
    assert lapsed.ruling == Ruling(lapse=Lapse(reason, LATER), name="api", tags=("work",))


MOUNT = MountBinding("boot", 1, 46, PATH)
THERE = replace(identity(1), inode=0, handle=None, born_ns=None, mount=MOUNT)
AGAIN = replace(THERE, mount=replace(MOUNT, number=2))
ON_A_MOUNT = replace(
    ROOT,
    observed=replace(ROOT.observed, identity=THERE),
    ruling=Ruling(Decision(Verdict.APPROVED, ANN, NOW, THERE), name="api"),
)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (THERE, None),
        (AGAIN, LapseReason.MOUNTED_AGAIN),
        (replace(AGAIN, filesystem=b"another host"), LapseReason.MOUNTED_AGAIN),
        (identity(1), LapseReason.REPLACED),
        (replace(THERE, inside=(b"m",)), LapseReason.MOUNTED_INSIDE),
    ],
)
def test_what_a_mount_had_lapses_with_the_mount(now: Identity, reason: LapseReason | None) -> None:
    lapse = kept(ON_A_MOUNT, ProjectObserved(PATH, ProjectKind.GIT, now)).ruling.lapse
    assert (lapse and lapse.reason) == reason


def test_a_folder_that_only_its_path_identifies_does_not_come_back() -> None:
    gone = kept(ON_A_MOUNT, ProjectGone(PATH))
    assert gone.ruling.lapse == Lapse(LapseReason.REPLACED, LATER)
    # The control: the mount is away, and nobody can put another folder in its place.
    assert kept(ON_A_MOUNT, ProjectUnreachable(PATH)).ruling.lapse is None
    numbered = replace(THERE, handle=b"2")
    known = replace(ON_A_MOUNT, observed=replace(ON_A_MOUNT.observed, identity=numbered))
    assert kept(known, ProjectGone(PATH)).ruling.lapse is None


def test_another_owner_withholds_a_project_until_the_owner_is_back() -> None:
    other = replace(identity(1), owner=2000)
    chowned = kept(ROOT, ProjectObserved(PATH, ProjectKind.GIT, other))
    withheld = kept(chowned, ProjectUnsafe(PATH, LapseReason.OTHER_OWNER))
    assert withheld.ruling == ROOT.ruling
    assert withheld.observed.hazard is LapseReason.OTHER_OWNER
    assert kept(withheld, seen(PATH)) == ROOT


def test_another_directory_has_its_own_first_seen_and_the_first_one_stays_lapsed() -> None:
    other = kept(ROOT, seen(PATH, 2))
    assert other.observed.first_seen == LATER
    assert kept(ROOT, seen(PATH, 1, b"/w/main")).observed.first_seen == NOW
    assert kept(other, seen(PATH, 1)).ruling.lapse is not None


def test_a_missing_project_is_kept_only_if_decided() -> None:
    assert later(PENDING, ProjectGone(PATH)) is None
    missing = kept(ROOT, ProjectGone(PATH))
    assert missing.ruling == APPROVED
    assert missing.observed.presence is Presence.MISSING
    assert missing.observed.absent_since == LATER
    assert kept(missing, seen(PATH)) == ROOT


def test_an_unreachable_project_is_kept_with_its_first_absence() -> None:
    suspended = kept(PENDING, ProjectUnreachable(PATH))
    assert suspended.observed.presence is Presence.SUSPENDED
    assert kept(MISSING, ProjectUnreachable(PATH)).observed.absent_since == NOW
    assert later(suspended, ProjectGone(PATH)) is None


def test_an_approval_binds_to_the_shown_identity_and_ends_the_lapse() -> None:
    lapsed = kept(ROOT, seen(PATH, 2))
    order = Approve(PATH, identity(2), ANN, "tool", ("new",), Access.READ)
    ruling = kept(lapsed, order).ruling
    assert ruling.decision == Decision(Verdict.APPROVED, ANN, LATER, identity(2), Access.READ)
    assert (ruling.lapse, ruling.name, ruling.tags) == (None, "tool", ("new", "work"))
    assert kept(ROOT, Approve(PATH, identity(1), ANN)).ruling.name == "api"


@pytest.mark.parametrize("reason", LapseReason)
def test_an_unsafe_folder_is_not_approved_with_the_reason_and_a_command_that_helps(
    reason: LapseReason,
) -> None:
    with pytest.raises(NotPresent, match=r"/w/api cannot be published: .+") as refused:
        later(kept(PENDING, ProjectUnsafe(PATH, reason)), Approve(PATH, identity(1), ANN))
    on_disk = reason in (LapseReason.OTHER_OWNER, LapseReason.EXPOSED)
    if on_disk or reason is LapseReason.POLICY:
        assert refused.value.remedy == ("ls -ld /w/api" if on_disk else "rootsd scan")


def test_a_missing_or_incomplete_project_is_not_approved() -> None:
    order = Approve(PATH, identity(1), ANN)
    with pytest.raises(NotPresent, match="/w/api is missing"):
        later(MISSING, order)
    half = replace(PENDING.observed, incomplete=IncompleteReason.INTERRUPTED)
    with pytest.raises(NotPresent, match="is incomplete \\(interrupted\\)"):
        later(replace(PENDING, observed=half), order)


@pytest.mark.parametrize("shown", [identity(2), UNIDENTIFIABLE, None])
def test_an_approval_of_another_directory_is_refused(shown: Identity | None) -> None:
    with pytest.raises(IdentityChanged) as refused:
        later(PENDING, Approve(PATH, shown, ANN))
    assert refused.value.remedy == "rootsd pending"


def test_a_denial_ends_all_approvals_and_keeps_the_name() -> None:
    assert kept(ROOT, Deny(PATH, ANN)).ruling == replace(
        DENIED, decision=Decision(Verdict.DENIED, ANN, LATER), by_person=True
    )
    assert kept(MISSING, Deny(PATH, ANN)).observed == MISSING.observed


def test_forgetting_drops_what_is_missing_or_only_a_person_proposed() -> None:
    assert later(MISSING, Forget(PATH, ANN)) is None
    for project in (PENDING, ROOT, REFUSED):
        assert kept(project, Forget(PATH, ANN)) == PENDING
        named = replace(project, observed=replace(project.observed, named=True))
        assert later(named, Forget(PATH, ANN)) is None


@pytest.mark.parametrize("proposes", [True, False])
def test_undoing_the_decision_that_proposed_a_folder_drops_it(proposes: bool) -> None:
    named = replace(PENDING, observed=replace(PENDING.observed, named=True))
    for order in (
        Approve(PATH, identity(1), ANN, proposes=proposes), Deny(PATH, ANN, proposes=proposes),
    ):  # fmt: skip
        decided = kept(named, order)
        left = later(decided, Restore(PATH, decided.ruling, UNDECIDED, ANN))
        assert left == (None if proposes else named)
        # What a scan finds, or a person decided earlier, stays.
        found = replace(decided, observed=replace(decided.observed, named=False))
        assert later(found, Restore(PATH, found.ruling, UNDECIDED, ANN)) == PENDING
        assert later(decided, Restore(PATH, decided.ruling, DENIED, ANN)) is not None


@pytest.mark.parametrize("project", [ROOT, MISSING])
def test_an_approval_lapses_if_something_else_replaces_the_folder(project: Project) -> None:
    after = kept(project, ProjectGone(PATH, LapseReason.REPLACED))
    assert after.ruling.lapse == Lapse(LapseReason.REPLACED, LATER)
    assert after.ruling.decision is None
    assert after.observed.presence is Presence.MISSING
    assert later(PENDING, ProjectGone(PATH, LapseReason.REPLACED)) is None
    assert kept(REFUSED, ProjectGone(PATH, LapseReason.REPLACED)).ruling == DENIED


def test_an_approval_lapses_when_git_data_leads_elsewhere() -> None:
    folder = replace(identity(1), git=GitEntry.FOLDER)
    approved = Ruling(Decision(Verdict.APPROVED, ANN, NOW, folder))
    root = replace(PENDING, observed=replace(PENDING.observed, identity=folder), ruling=approved)
    file = replace(identity(1), git=GitEntry.FILE)
    after = kept(root, ProjectObserved(PATH, ProjectKind.GIT, file))
    assert after.ruling.lapse == Lapse(LapseReason.RETARGETED, LATER)
    with pytest.raises(IdentityChanged):
        later(after, Approve(PATH, folder, ANN))


def test_retag_adds_and_removes_tags_only() -> None:
    after = kept(ROOT, Retag(PATH, ("go", "go"), ("work", "never"), ANN))
    assert after == replace(ROOT, ruling=replace(ROOT.ruling, tags=("go",)))
    assert kept(PENDING, Rename(PATH, "x", ANN)).ruling == replace(
        UNDECIDED, name="x", by_person=True
    )


def test_restore_brings_back_the_ruling_without_grants() -> None:
    denied = kept(ROOT, Deny(PATH, ANN))
    back = kept(denied, Restore(PATH, denied.ruling, ROOT.ruling, ANN))
    assert back == replace(ROOT, ruling=replace(APPROVED, grants=()))
    assert kept(ROOT, Restore(PATH, APPROVED, UNDECIDED, ANN)) == PENDING
    assert kept(PENDING, Restore(PATH, UNDECIDED, DENIED, ANN)) == REFUSED


def test_a_missing_project_restored_to_undecided_is_dropped() -> None:
    assert later(MISSING, Restore(PATH, APPROVED, UNDECIDED, ANN)) is None
    known = kept(None, uri_seen(URI))
    named = kept(known, Rename(URI, "v1", ANN))
    assert kept(named, Restore(URI, named.ruling, UNDECIDED, ANN)) == known


def test_neither_an_older_nor_an_expired_ruling_nor_that_of_another_folder_is_restored() -> None:
    replaced = replace(REFUSED, observed=replace(REFUSED.observed, identity=identity(2)))
    gone = replace(REFUSED, observed=replace(REFUSED.observed, presence=Presence.MISSING))
    decision = Decision(Verdict.APPROVED, ANN, NOW, identity(1), expires=Expiry(NOW, "", 0))
    expired = Ruling(decision, name="api")
    for project, now, then, why, words in (
        (REFUSED, APPROVED, UNDECIDED, CannotUndo, "another decision"),
        (REFUSED, DENIED, expired, CannotUndo, "expired"),
        (replaced, DENIED, APPROVED, IdentityChanged, None),
        (gone, DENIED, APPROVED, NotPresent, None),
    ):
        with pytest.raises(why, match=words):
            later(project, Restore(PATH, now, then, ANN))
