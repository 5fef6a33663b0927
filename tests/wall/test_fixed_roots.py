"""The roots that a program gets from the static engine, and those that it loses or waits for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, DesiredMount, FolderIdentity, desired_mounts
from rootsd.wall.view.fixed_roots import fixed_roots, missing

READ, WRITE = Access.READ, Access.READ_WRITE
PATHS = (b"/a", b"/a/b", b"/a/b/c", b"/d")


def mounts(*roots: ConfinedRoot) -> dict[bytes, DesiredMount]:
    return desired_mounts(roots, {})


def test_a_root_that_holds_a_denied_folder_is_left_out_and_a_root_in_it_stays() -> None:
    outer = ConfinedRoot(b"/a", WRITE, denied=frozenset({b"/a/secret"}))
    found = fixed_roots(mounts(outer, ConfinedRoot(b"/a/b", WRITE)))
    assert [*found.shown] == [b"/a/b"]
    assert [*found.refused] == [b"/a"]


def test_a_writable_root_around_a_read_only_one_is_read_only() -> None:
    shown = fixed_roots(mounts(ConfinedRoot(b"/a", WRITE), ConfinedRoot(b"/a/b", READ))).shown
    assert {mount.access for mount in shown.values()} == {READ}


def test_a_folder_that_replaced_another_one_is_lost_and_waits() -> None:
    first = mounts(ConfinedRoot(b"/a", WRITE, FolderIdentity(1, 0, b"1", None)))
    second = mounts(ConfinedRoot(b"/a", WRITE, FolderIdentity(2, 0, b"2", None)))
    assert missing(first, second) == missing(second, first) == (b"/a",)


def test_less_access_is_a_loss_and_more_access_waits() -> None:
    writable, readable = mounts(ConfinedRoot(b"/a", WRITE)), mounts(ConfinedRoot(b"/a", READ))
    assert missing(writable, readable) == (b"/a",)
    assert missing(readable, writable) == ()


def test_a_root_inside_a_root_that_both_have_is_neither_lost_nor_waiting() -> None:
    outer = ConfinedRoot(b"/a", WRITE)
    alone, both = mounts(outer), mounts(outer, ConfinedRoot(b"/a/b", WRITE))
    assert missing(alone, both) == missing(both, alone) == ()


@st.composite
def desired(draw: st.DrawFn) -> dict[bytes, DesiredMount]:
    return mounts(
        *(
            ConfinedRoot(
                path,
                draw(st.sampled_from(Access)),
                FolderIdentity(draw(st.integers(1, 2)), 0, b"h", None),
                draw(st.frozensets(st.sampled_from([b"/a/x", b"/a/b/x", b"/d/x"]), max_size=1)),
            )
            for path in draw(st.sets(st.sampled_from(PATHS)))
        )
    )


@given(desired(), desired())
def test_if_nothing_is_lost_every_held_root_is_allowed(
    before: dict[bytes, DesiredMount], after: dict[bytes, DesiredMount]
) -> None:
    held, wanted = fixed_roots(before).shown, fixed_roots(after).shown
    assert missing(held, held) == (), "the same roots are neither lost nor waiting"
    if missing(held, wanted):
        return
    for path, mount in held.items():
        above = [each for each in wanted if path == each or path.startswith(each + b"/")]
        assert any(
            wanted[each].access is mount.access or mount.access is READ for each in above
        ), (held, wanted)
