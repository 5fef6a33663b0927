from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.model import GitEntry, Identity, MountBinding, ObservedState, Project, ProjectKind
from support.core_samples import NOW

WHOLE = Identity(b"disk", 7, b"handle", 1234, 1000)


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(WHOLE, True, id="equal"),
        pytest.param(replace(WHOLE, filesystem=b"stick"), False, id="another file system"),
        pytest.param(replace(WHOLE, inode=8), False, id="another inode"),
        pytest.param(replace(WHOLE, owner=1001), True, id="another owner"),
        pytest.param(replace(WHOLE, handle=b"next"), False, id="inode used again"),
        pytest.param(replace(WHOLE, born_ns=9), True, id="handle outweighs birth"),
        pytest.param(replace(WHOLE, handle=None), True, id="birth where one has no handle"),
        pytest.param(replace(WHOLE, handle=None, born_ns=9), False, id="born at another time"),
        pytest.param(replace(WHOLE, handle=None, born_ns=None), False, id="only the inode"),
    ],
)
def test_identities_are_equal_only_with_proof(other: Identity, is_same: bool) -> None:
    assert WHOLE.same_as(other) is is_same
    assert other.same_as(WHOLE) is is_same


def test_an_identity_with_only_an_inode_equals_nothing_not_even_itself() -> None:
    bare = replace(WHOLE, handle=None, born_ns=None)
    assert not bare.same_as(bare)


FOLDER = replace(WHOLE, git=GitEntry.FOLDER)
BARE = replace(WHOLE, git=GitEntry.NONE)
HERE = replace(WHOLE, git=GitEntry.FILE, git_target=replace(WHOLE, inode=8))
THERE = replace(WHOLE, git=GitEntry.FILE, git_target=replace(WHOLE, inode=9))
NOWHERE = replace(WHOLE, git=GitEntry.FILE)


@pytest.mark.parametrize(
    ("approved", "now", "holds"),
    [
        pytest.param(WHOLE, FOLDER, True, id="nobody had looked"),
        pytest.param(FOLDER, WHOLE, True, id="nobody looks"),
        pytest.param(FOLDER, FOLDER, True, id="a folder still"),
        pytest.param(FOLDER, BARE, False, id="the folder is gone"),
        pytest.param(FOLDER, HERE, False, id="the folder is a file"),
        pytest.param(BARE, FOLDER, True, id="git init"),
        pytest.param(BARE, HERE, False, id="a file where nothing was"),
        pytest.param(HERE, HERE, True, id="leads to the same"),
        pytest.param(HERE, THERE, False, id="leads elsewhere"),
        pytest.param(HERE, NOWHERE, True, id="what it leads to is out of reach"),
        pytest.param(NOWHERE, THERE, False, id="led nowhere"),
        pytest.param(HERE, FOLDER, False, id="the file is a folder"),
        pytest.param(HERE, BARE, False, id="the file is gone"),
    ],
)
def test_an_approval_counts_only_while_git_data_is_in_place(
    approved: Identity, now: Identity, holds: bool
) -> None:
    assert approved.holds_for(now) is holds
    assert approved.same_as(now)
    assert not approved.holds_for(replace(now, inode=77))


def test_values_cannot_be_changed() -> None:
    project = Project(b"/w/a", "r7k2", ObservedState(ProjectKind.GIT, WHOLE, NOW))
    with pytest.raises(AttributeError, match="immutable"):
        project.path = b"/w/b"  # type: ignore[misc]
    assert hash(project) == hash(replace(project))


MOUNT = MountBinding("boot", 1, 46, b"/p")
BOUND = replace(WHOLE, inode=0, handle=None, born_ns=None, mount=MOUNT)


@pytest.mark.parametrize(
    "other",
    [
        replace(BOUND, mount=None),
        replace(BOUND, mount=replace(MOUNT, number=2)),
        replace(BOUND, mount=replace(MOUNT, boot="later")),
        replace(BOUND, mount=replace(MOUNT, device=47)),
        replace(BOUND, mount=replace(MOUNT, path=b"/q")),
        replace(BOUND, filesystem=b"another"),
        replace(BOUND, born_ns=1),
    ],
)
def test_an_identity_that_is_bound_to_its_mount_ends_with_it(other: Identity) -> None:
    assert BOUND.same_as(BOUND)
    assert not BOUND.same_as(other)
    assert not other.same_as(BOUND)


def test_handles_count_within_one_mount() -> None:
    numbered = replace(BOUND, handle=b"2")
    assert numbered.same_as(numbered)
    assert not numbered.same_as(replace(numbered, handle=b"3"))
    assert BOUND.is_its_path
    assert not numbered.is_its_path


@pytest.mark.parametrize(
    ("now", "holds"), [((), True), ((b"a",), True), ((b"b",), False), ((b"a", b"b"), False)]
)
def test_a_mount_inside_ends_an_approval_unless_it_was_there(
    now: tuple[bytes, ...], *, holds: bool
) -> None:
    assert replace(WHOLE, inside=(b"a",)).holds_for(replace(WHOLE, inside=now)) is holds
