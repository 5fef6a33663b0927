"""The mounts for a set of roots, and the changes between two sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
    DesiredMount,
    FolderIdentity,
    Mask,
    MountPurpose,
    base_masks,
    desired_mounts,
    difference,
    roots_inside,
)
from rootsd.core.paths import contains

NAMES = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4)
PATHS = NAMES.map(lambda names: b"/" + b"/".join(names))
ROOTS = st.lists(
    st.builds(
        ConfinedRoot, PATHS, st.sampled_from(Access), denied=st.frozensets(PATHS, max_size=2)
    ),
    max_size=6,
)


def root(path: bytes, *denied: bytes, shared_git: bytes | None = None) -> ConfinedRoot:
    return ConfinedRoot(path, Access.READ_WRITE, None, frozenset(denied), shared_git)


BIN, CACHE, LINKED, STATE = b"/h/bin", b"/h/.cache/uv", b"/h/.local/bin", b"/h/.claude"
SOURCES = {each: each for each in (b"/h/.gitconfig", BIN, CACHE, STATE + b"/settings")}
SOURCES[LINKED] = b"/data/bin"
OTHERS = frozenset((b"/h", STATE))


def masked(*denied: bytes, roots: tuple[bytes, ...] = ()) -> tuple[Mask, ...]:
    return base_masks(SOURCES, OTHERS, denied, roots)


def test_a_denied_folder_in_an_entry_of_the_base_is_masked_and_one_elsewhere_is_not() -> None:
    assert masked(BIN + b"/p", b"/h/project", b"/h/bin2") == (Mask(BIN + b"/p"),)
    assert masked(BIN + b"/p", BIN + b"/p/inner") == (Mask(BIN + b"/p"),)
    assert masked() == ()


def test_all_entries_at_and_below_a_denied_folder_are_masked() -> None:
    assert masked(BIN, b"/h/.cache") == (Mask(CACHE), Mask(BIN))
    assert {mask.path for mask in masked(b"/h")} == SOURCES.keys() - {LINKED}
    assert {mask.path for mask in masked(b"/")} == SOURCES.keys()


def test_the_real_path_of_an_entry_counts() -> None:
    assert masked(LINKED) == ()
    for denied, mask in ((b"/data", b""), (b"/data/bin", b""), (b"/data/bin/p", b"/p")):
        assert masked(denied) == (Mask(LINKED + mask),)


def test_what_programs_made_is_not_masked_but_what_a_person_has_in_it_is() -> None:
    assert masked(STATE + b"/projects") == ()
    assert masked(STATE) == (Mask(STATE + b"/settings"),)
    everything = base_masks({b"/h": b"/h", b"/": b"/"}, {STATE}, [STATE + b"/p", b"/h/x"], ())
    assert everything == (Mask(b"/h/x"),), "the folder of the agent covers the one outside"


def test_a_mask_in_the_base_keeps_the_mount_points_of_the_roots_in_it() -> None:
    roots = (BIN + b"/p/b", BIN + b"/p/a", BIN + b"/p", BIN + b"/q", b"/h/project")
    assert masked(BIN + b"/p", roots=roots) == (Mask(BIN + b"/p", (BIN + b"/p/a", BIN + b"/p/b")),)


@given(ROOTS, ROOTS)
def test_a_change_leads_from_any_view_to_any_other_and_unchanged_roots_stay_mounted(
    before: list[ConfinedRoot], after: list[ConfinedRoot]
) -> None:
    current, desired = desired_mounts(before, {}), desired_mounts(after, {})
    assert difference(desired, desired) == ((), ())
    change = difference(current, desired)
    view = dict(current)
    for path in change.remove:
        assert not any(contains(path, each) and each != path for each in view), "inner ones first"
        del view[path]
    for mount in change.add:
        assert mount.path not in view
        assert not any(contains(mount.path, each) for each in view), "outer ones first"
        view[mount.path] = mount
    assert view == desired


@given(ROOTS)
def test_each_denied_folder_inside_a_root_is_masked(roots: list[ConfinedRoot]) -> None:
    mounts = desired_mounts(roots, {})
    for mount in mounts.values():
        denied = next(each for each in reversed(roots) if each.path == mount.path).denied
        for path in denied:
            if contains(mount.path, path):
                assert any(contains(mask.path, path) for mask in mount.masks)


def test_a_root_that_is_denied_as_a_whole_is_not_shown() -> None:
    assert desired_mounts([root(b"/a", b"/a")], {}) == {}


def test_a_mask_keeps_the_mount_point_of_a_root_inside_it() -> None:
    mounts = desired_mounts([root(b"/a", b"/a/b"), root(b"/a/b/c")], {})
    assert mounts[b"/a"].masks == (Mask(b"/a/b", (b"/a/b/c",)),)


def test_a_shared_git_directory_is_shown_where_the_daemon_allows_it() -> None:
    git = {b"/wt": b"/main/.git"}
    allowed = desired_mounts([root(b"/wt", shared_git=b"/main")], git)
    assert allowed[b"/main/.git"] == DesiredMount(
        b"/main/.git", Access.READ_WRITE, MountPurpose.SHARED_GIT, owner=b"/wt", checkout=b"/main"
    )
    main = FolderIdentity(1, 0, b"a", 5)
    known = root(b"/wt", shared_git=b"/main")._replace(shared_git_identity=main)
    assert desired_mounts([known], git)[b"/main/.git"].identity == main
    assert b"/main/.git" not in desired_mounts([root(b"/wt")], git)
    assert b"/main/.git" not in desired_mounts([root(b"/wt", shared_git=b"/other")], git)
    denied = [root(b"/wt", shared_git=b"/main"), root(b"/", b"/main")]
    assert b"/main/.git" not in desired_mounts(denied, git)


def test_a_shared_git_directory_is_writable_if_one_of_its_roots_is() -> None:
    git = {b"/a": b"/main/.git", b"/b": b"/main/.git"}
    one, other = root(b"/a", shared_git=b"/main"), root(b"/b", shared_git=b"/main")
    read = one._replace(access=Access.READ)
    for roots in ([read, other], [other, read]):
        assert desired_mounts(roots, git)[b"/main/.git"].access is Access.READ_WRITE
    assert desired_mounts([read], git)[b"/main/.git"].access is Access.READ


def test_a_shared_git_directory_inside_a_root_needs_no_mount() -> None:
    roots = [root(b"/wt", shared_git=b"/main"), root(b"/main")]
    assert set(desired_mounts(roots, {b"/wt": b"/main/.git"})) == {b"/wt", b"/main"}


def test_a_root_needs_no_mount_where_another_one_shows_the_same() -> None:
    """Git removes a worktree's folder, which is impossible if the folder is a mount point."""

    def within(path: bytes, *others: ConfinedRoot, shared_git: bytes | None = b"/a") -> bytes:
        inner = root(path, shared_git=shared_git)
        return desired_mounts([root(b"/a"), *others, inner], {})[path].within

    assert within(b"/a/.worktrees/x") == b"/a"
    outer = root(b"/a/x", shared_git=b"/a")
    assert within(b"/a/x/y", outer) == b"/a", "the outer one has no mount, either"
    assert within(b"/b") == b""
    assert within(b"/a/x", shared_git=None) == b"", "its own settings are protected by its mount"
    assert within(b"/a/x", shared_git=b"/b") == b""
    assert within(b"/a/x/y", root(b"/a/x"), shared_git=b"/a") == b"", (
        "/a/x has settings of its own"
    )


def test_a_root_with_another_access_or_with_masks_has_a_mount_in_another_root() -> None:
    worktree = root(b"/a/x", shared_git=b"/a")
    read = root(b"/a")._replace(access=Access.READ)
    assert desired_mounts([read, worktree], {})[b"/a/x"].within == b""
    assert desired_mounts([root(b"/a", b"/a/x/y"), worktree], {})[b"/a/x"].within == b"/a"
    denied = worktree._replace(denied=frozenset({b"/a/x/y"}))
    assert desired_mounts([root(b"/a"), denied], {})[b"/a/x"].within == b""
    deep = root(b"/a/x/y", shared_git=b"/a")
    assert desired_mounts([root(b"/a", b"/a/x"), deep], {})[b"/a/x/y"].within == b""
    # Nothing is protected in read-only roots.
    inner = root(b"/a/b")._replace(access=Access.READ)
    assert desired_mounts([read, inner], {})[b"/a/b"].within == b"/a"


def test_folders_with_the_same_inode_differ_by_handle_or_birth_time() -> None:
    one = FolderIdentity(1, 0, b"a", 5)
    assert one.covers(FolderIdentity(1, 0, b"a", 6))
    assert not one.covers(FolderIdentity(1, 0, b"b", 5))
    assert one.covers(FolderIdentity(1, 0, None, 5))
    assert not FolderIdentity(1, 0, None, None).covers(FolderIdentity(1, 0, None, None))
    assert not one.covers(FolderIdentity(1, 9, b"a", 5))


def test_a_folder_that_is_bound_to_its_mount_is_recognized_by_the_device() -> None:
    bound = FolderIdentity(0, 0, None, None, 46)
    assert bound.covers(FolderIdentity(3, 0, b"counter", None, 46))
    assert not bound.covers(FolderIdentity(3, 0, b"counter", None, 47))
    assert not bound.covers(FolderIdentity(3, 9, b"counter", None, 46))
    by_birth = FolderIdentity(0, 0, None, 5, 46)
    assert by_birth.covers(FolderIdentity(3, 0, b"counter", 5, 46))
    assert not by_birth.covers(FolderIdentity(3, 0, b"counter", 6, 46))


def test_of_the_root_around_a_folder_programs_see_only_the_folder() -> None:
    outer, inner, web = (ConfinedRoot(p, Access.READ_WRITE) for p in (b"/p", b"/p/m", b"/web"))
    inner = inner._replace(
        identity=FolderIdentity(7, 1000, None, None), denied=frozenset((b"/p/m/a/x", b"/p/m/b")),
        shared_git=b"/g", git_access="why",
    )  # fmt: skip
    seen = roots_inside((outer, inner, web), [b"/web/secret"], b"/p/m/a")
    part = inner._replace(
        path=b"/p/m/a", denied=frozenset((b"/p/m/a/x",)), shared_git=None, git_access="",
        whole=b"/p/m",
    )  # fmt: skip
    assert seen == (web.with_masks([b"/web/secret"]), part)
    mount = desired_mounts(seen, {})[b"/p/m/a"]
    assert (mount.checkout, mount.identity) == (b"/p/m", FolderIdentity(7, 1000, None, None))
    assert roots_inside((outer, web), (), b"") == (outer, web)
    assert roots_inside((web,), (), b"/p/m/a") == (web,)


def test_a_folder_in_a_denied_one_is_not_shown() -> None:
    root = ConfinedRoot(b"/p", Access.READ_WRITE, denied=frozenset((b"/p/a",)))
    assert desired_mounts(roots_inside((root,), (), b"/p/a/b"), {}) == {}
    assert desired_mounts(roots_inside((root,), (), b"/p/ab"), {})
