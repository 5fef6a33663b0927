"""The users and groups that an access control list allows to write, besides those of the mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectUnsafe
from rootsd.core.model import LapseReason
from rootsd.disk.identity import identify
from rootsd.disk.writers import NO_ACL_WRITERS, AclWriters, acl_writers
from rootsd.vcs.verify import RootVerifier
from support.acls import GROUP, READ, USER, WRITE, give
from support.repositories import fake_repository, raw
from support.system_parts import folder_safety

STRANGER = 54_321
UID = os.getuid()
OURS = folder_safety(UID, is_private=lambda gid, _uid: gid != STRANGER)

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def above(tmp_path: Path) -> Path:
    above = tmp_path / "above"
    fake_repository(above / "one")
    above.chmod(0o775)
    return above


def test_acl_writers_are_those_with_write_permission(above: Path) -> None:
    assert acl_writers(raw(above)) == acl_writers(raw(above / "not there")) == NO_ACL_WRITERS
    give(above, (USER, WRITE, 5), (USER, READ, 6), (GROUP, WRITE, 7), (GROUP, READ, 8))
    assert acl_writers(raw(above)) == AclWriters(frozenset({5}), frozenset({7}))


@pytest.mark.parametrize("tag", [USER, GROUP])
def test_an_acl_writer_above_a_project_is_a_hazard(above: Path, tag: int) -> None:
    assert OURS.hazard(raw(above / "one")) is None
    give(above, (tag, WRITE, STRANGER))
    assert above.stat().st_mode & 0o777 == 0o775, "the mode does not show it"
    hazard = OURS.hazard(raw(above / "one"))
    assert hazard is not None
    assert hazard.reason is LapseReason.EXPOSED
    assert "access control list" in hazard.sentence


@pytest.mark.parametrize(
    "entry",
    [(USER, READ, STRANGER), (USER, WRITE, UID), (USER, WRITE, 0), (GROUP, WRITE, 7)],
    ids=["who may only read", "the user", "root", "a group of the user's own"],
)
def test_an_acl_for_the_user_and_root_is_safe(above: Path, entry: tuple[int, int, int]) -> None:
    give(above, entry)
    assert OURS.hazard(raw(above / "one")) is None


def test_the_mask_limits_what_an_acl_grants(above: Path) -> None:
    give(above, (USER, WRITE, STRANGER))
    above.chmod(0o755)  # this sets the mask
    assert OURS.hazard(raw(above / "one")) is None


def test_an_acl_writer_added_later_ends_the_approval_at_the_next_answer(above: Path) -> None:
    one = raw(above / "one")
    verifier, roots = RootVerifier(OURS), {one: identify(one)}
    assert verifier.verify(roots) == []
    give(above, (USER, WRITE, STRANGER))
    assert verifier.verify(roots) == [ProjectUnsafe(one, LapseReason.EXPOSED)]
