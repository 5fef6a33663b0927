"""Whom an access control list names, besides those whom the mode tells of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectUnsafe
from rootsd.core.model import LapseReason
from rootsd.disk.identity import identify
from rootsd.disk.safety import NO_ACL_WRITERS, AclWriters, FolderSafety, acl_writers
from rootsd.vcs.verify import RootVerifier
from support.acls import GROUP, READ, USER, WRITE, give
from support.repos import fake_repository, raw

STRANGER = 54_321
UID = os.getuid()
OURS = FolderSafety(UID, is_ours=lambda gid, _uid: gid != STRANGER)

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def above(tmp_path: Path) -> Path:
    above = tmp_path / "above"
    fake_repository(above / "one")
    above.chmod(0o775)
    return above


def test_a_folder_without_a_list_names_nobody(above: Path) -> None:
    assert acl_writers(raw(above)) == NO_ACL_WRITERS
    assert acl_writers(raw(above / "not there")) == NO_ACL_WRITERS


def test_those_are_named_who_may_write(above: Path) -> None:
    give(above, (USER, WRITE, 5), (USER, READ, 6), (GROUP, WRITE, 7), (GROUP, READ, 8))
    assert acl_writers(raw(above)) == AclWriters(frozenset({5}), frozenset({7}))


@pytest.mark.parametrize("tag", [USER, GROUP])
def test_whom_a_list_lets_write_above_a_project_can_put_another_in_its_place(
    above: Path, tag: int
) -> None:
    assert OURS.hazard(raw(above / "one")) is None
    give(above, (tag, WRITE, STRANGER))
    assert above.stat().st_mode & 0o777 == 0o775, "no mode tells of it"
    hazard = OURS.hazard(raw(above / "one"))
    assert hazard is not None
    assert hazard.reason is LapseReason.EXPOSED
    assert "access control list" in hazard.sentence


@pytest.mark.parametrize(
    "entry",
    [(USER, READ, STRANGER), (USER, WRITE, UID), (USER, WRITE, 0), (GROUP, WRITE, 7)],
    ids=["who may only read", "the user", "root", "a group of the user's own"],
)
def test_others_than_strangers_may_be_named(above: Path, entry: tuple[int, int, int]) -> None:
    give(above, entry)
    assert OURS.hazard(raw(above / "one")) is None


def test_what_the_mask_takes_away_nobody_has(above: Path) -> None:
    give(above, (USER, WRITE, STRANGER))
    above.chmod(0o755)  # which sets the mask
    assert OURS.hazard(raw(above / "one")) is None


def test_who_is_listed_later_takes_the_approval_away_with_the_next_answer(above: Path) -> None:
    one = raw(above / "one")
    verifier, roots = RootVerifier(OURS), {one: identify(one)}
    assert verifier.verify(roots) == []
    give(above, (USER, WRITE, STRANGER))
    assert verifier.verify(roots) == [ProjectUnsafe(one, LapseReason.EXPOSED)]
