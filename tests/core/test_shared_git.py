"""An approval can include the Git directory of a pending checkout for programs behind the wall."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.errors import IdentityChanged, OrderRefused
from rootsd.core.inputs import (
    AddRule,
    ApprovalExpired,
    Approve,
    Deny,
    Forget,
    Input,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
    Reinstate,
    Rename,
    Restore,
    SessionEnded,
)
from rootsd.core.model import (
    UNDECIDED,
    Decision,
    Expiry,
    GitEntry,
    Identity,
    LapseReason,
    ProjectKind,
    SessionKey,
    Verdict,
)
from rootsd.core.paths import RefusedPlaces
from rootsd.core.plan import plan
from rootsd.core.shared_git import GitAccess, shared_git
from rootsd.core.wall_view import WallRoots
from support.core_samples import ANN, HOME, LATER, NOTHING_KNOWN, NOW, after, identity, tree

MAIN, TREE = b"/w/main", b"/w/tree"
SUB = MAIN + b"/sub"
BARE, BARE_TREE = b"/w/bare", b"/w/bare-tree"
SESSION, OTHER = SessionKey("s1", "an agent"), SessionKey("s2", "another agent")
ENDS = Expiry(LATER, "boot", 5)


def main_seen(number: int = 1, path: bytes = MAIN) -> ProjectObserved:
    return ProjectObserved(path, ProjectKind.GIT, replace(identity(number), git=GitEntry.FOLDER))


def tree_seen(number: int, main: bytes = MAIN, path: bytes = TREE) -> ProjectObserved:
    return ProjectObserved(path, ProjectKind.GIT_WORKTREE, tree(number), main_checkout=main)


KNOWN = after(
    NOTHING_KNOWN,
    main_seen(),
    tree_seen(2),
    ProjectObserved(SUB, ProjectKind.GIT_SUBMODULE, tree(3)),
    ProjectObserved(BARE, ProjectKind.GIT_BARE, replace(identity(4), git=GitEntry.NONE)),
    tree_seen(5, BARE, BARE_TREE),
)
CHECKOUT_OF = {TREE: MAIN, SUB: MAIN, BARE_TREE: BARE}


def identity_at(path: bytes) -> Identity:
    found = KNOWN.projects[path].observed.identity
    assert found is not None
    return found


def including(path: bytes, **more: object) -> Approve:
    """Return an approval of `path` that includes the Git directory that it uses."""
    approval = Approve(path, identity_at(path), ANN, shared_git=identity_at(CHECKOUT_OF[path]))
    return replace(approval, **more)  # type: ignore[arg-type]


def plain(path: bytes, **more: object) -> Approve:
    return replace(Approve(path, identity_at(path), ANN), **more)  # type: ignore[arg-type]


def access(catalog: Catalog, path: bytes = TREE) -> GitAccess:
    git = shared_git(catalog, catalog.projects[path])
    assert git is not None
    return git.access


INCLUDED = after(KNOWN, including(TREE))


@pytest.mark.parametrize("path", CHECKOUT_OF)
def test_a_root_uses_the_git_directory_of_a_pending_checkout_only_if_included(path: bytes) -> None:
    assert shared_git(KNOWN, KNOWN.projects[CHECKOUT_OF[path]]) is None, "it has its own"
    assert access(after(KNOWN, plain(path)), path) is GitAccess.CHECKOUT_PENDING
    included = after(KNOWN, including(path))
    assert access(included, path) is GitAccess.INCLUDED
    root = WallRoots.of(included).roots[path]
    assert root.shared_git == shared_git(included, included.projects[path])
    assert root.shared_git is not None
    assert root.shared_git.checkout == CHECKOUT_OF[path]
    assert root.shared_git.identity == identity_at(CHECKOUT_OF[path])
    assert CHECKOUT_OF[path] not in WallRoots.of(included).roots


def with_session(catalog: Catalog, path: bytes, session: SessionKey) -> Catalog:
    return after(catalog, plain(path, session=session))


# What happens to the checkout after the approval that includes its Git directory.
CHECKOUT_CHANGES: dict[str, tuple[Callable[[Catalog], Catalog], GitAccess]] = {
    "denied": (lambda c: after(c, Deny(MAIN, ANN)), GitAccess.CHECKOUT_DENIED),
    "another folder is denied": (
        lambda c: after(c, main_seen(9, b"/w/x"), Deny(b"/w/x", ANN)),
        GitAccess.INCLUDED,
    ),
    "a folder above is denied": (
        lambda c: after(c, main_seen(9, b"/w"), Deny(b"/w", ANN)),
        GitAccess.CHECKOUT_DENIED,
    ),
    "denied by a rule": (
        lambda c: after(c, AddRule(b"/*/main", Verdict.DENIED, ANN)),
        GitAccess.CHECKOUT_DENIED,
    ),
    "denied and taken back": (
        lambda c: after(c, Deny(MAIN, ANN), Forget(MAIN, ANN)),
        GitAccess.INCLUDED,
    ),
    "forgotten": (lambda c: after(c, Forget(MAIN, ANN)), GitAccess.INCLUDED),
    "approved": (lambda c: after(c, plain(MAIN)), GitAccess.CHECKOUT_APPROVED),
    "approved and expired": (
        lambda c: after(c, plain(MAIN, expires=ENDS), ApprovalExpired(MAIN, ENDS)),
        GitAccess.INCLUDED,
    ),
    "approved for a session": (lambda c: with_session(c, MAIN, SESSION), GitAccess.OTHER_SESSION),
    "approved, and the session ended": (
        lambda c: after(with_session(c, MAIN, SESSION), SessionEnded(MAIN, SESSION)),
        GitAccess.INCLUDED,
    ),
    "replaced": (lambda c: after(c, main_seen(8)), GitAccess.CHECKOUT_PENDING),
    "replaced and back": (lambda c: after(c, main_seen(8), main_seen()), GitAccess.INCLUDED),
    "approved, replaced, and so lapsed": (
        lambda c: after(c, plain(MAIN), main_seen(8)),
        GitAccess.CHECKOUT_PENDING,
    ),
    "without its .git folder": (
        lambda c: after(c, ProjectObserved(MAIN, ProjectKind.PROJECT, tree(1))),
        GitAccess.CHECKOUT_PENDING,
    ),
    "gone": (lambda c: after(c, ProjectGone(MAIN)), GitAccess.UNKNOWN),
    "gone, with a name": (
        lambda c: after(c, Rename(MAIN, "m", ANN), ProjectGone(MAIN)),
        GitAccess.UNAVAILABLE,
    ),
    "out of reach": (lambda c: after(c, ProjectUnreachable(MAIN)), GitAccess.UNAVAILABLE),
    "exposed": (
        lambda c: after(c, ProjectUnsafe(MAIN, LapseReason.EXPOSED)),
        GitAccess.UNAVAILABLE,
    ),
    "in a place that is refused": (
        lambda c: c.with_places(RefusedPlaces(HOME, refused=(MAIN,))),
        GitAccess.UNAVAILABLE,
    ),
}


@pytest.mark.parametrize("name", CHECKOUT_CHANGES)
def test_the_inclusion_ends_with_a_denial_or_another_directory(name: str) -> None:
    change, expected = CHECKOUT_CHANGES[name]
    assert access(change(INCLUDED)) is expected
    assert access(change(after(KNOWN, plain(TREE)))) is not GitAccess.INCLUDED


def test_a_checkout_in_the_home_folder_itself_is_never_included() -> None:
    catalog = after(NOTHING_KNOWN, main_seen(1, HOME), tree_seen(2, HOME))
    with pytest.raises(IdentityChanged):
        after(catalog, including(TREE, shared_git=identity_at(MAIN)))
    assert access(after(catalog, plain(TREE))) is GitAccess.UNAVAILABLE


# What happens to the approval of the root itself.
ROOT_CHANGES: dict[str, Callable[[Catalog], Catalog]] = {
    "forgotten": lambda c: after(c, Forget(TREE, ANN)),
    "approved again": lambda c: after(c, plain(TREE)),
    "lapsed": lambda c: after(c, tree_seen(7), tree_seen(2)),
    "lapsed and approved again": lambda c: after(c, tree_seen(7), tree_seen(2), plain(TREE)),
    "lapsed and reinstated": lambda c: after(
        c, tree_seen(7), tree_seen(2), Reinstate(TREE, plain(TREE), ANN)
    ),
    "expired": lambda c: after(
        c, including(TREE, expires=ENDS), ApprovalExpired(TREE, ENDS), plain(TREE)
    ),
    "approved by a rule": lambda c: after(
        c, Forget(TREE, ANN), AddRule(TREE, Verdict.APPROVED, ANN)
    ),
}


@pytest.mark.parametrize("name", ROOT_CHANGES)
def test_a_later_approval_does_not_inherit_the_inclusion(name: str) -> None:
    assert access(ROOT_CHANGES[name](INCLUDED)) is GitAccess.CHECKOUT_PENDING


def test_an_undo_restores_the_inclusion_and_a_folder_that_moved_needs_a_new_one() -> None:
    ruling = INCLUDED.projects[TREE].ruling
    forgotten = after(INCLUDED, Forget(TREE, ANN))
    assert access(after(forgotten, Restore(TREE, UNDECIDED, ruling, ANN))) is GitAccess.INCLUDED
    moved = b"/w/moved"
    catalog = after(INCLUDED, ProjectGone(TREE), tree_seen(2, path=moved))
    catalog = after(catalog, Approve(moved, identity_at(TREE), ANN))
    assert catalog.projects[moved].ruling.name == "tree"
    assert access(catalog, moved) is GitAccess.CHECKOUT_PENDING


def test_an_inclusion_for_one_session_counts_only_there() -> None:
    catalog = after(KNOWN, including(TREE, session=SESSION))
    assert access(catalog) is GitAccess.INCLUDED
    assert WallRoots.of(catalog).roots[TREE].root.session == SESSION.id
    mine, other = (with_session(catalog, MAIN, each) for each in (SESSION, OTHER))
    assert access(mine) is GitAccess.CHECKOUT_APPROVED
    assert access(other) is GitAccess.OTHER_SESSION


@pytest.mark.parametrize(
    "changes",
    [
        (main_seen(8),),
        (Deny(MAIN, ANN),),
        (ProjectGone(MAIN),),
        (ProjectUnsafe(MAIN, LapseReason.EXPOSED),),
        (tree_seen(2, b"/w/elsewhere"),),
        (replace(tree_seen(2), kind=ProjectKind.GIT, main_checkout=None),),
    ],
)
def test_an_approval_without_the_git_directory_that_was_shown_is_refused(
    changes: tuple[Input, ...],
) -> None:
    catalog = after(KNOWN, *changes)
    with pytest.raises(IdentityChanged, match="not the pending checkout you were shown"):
        after(catalog, including(TREE))
    assert after(catalog, plain(TREE)).roots.keys() == {TREE}


def test_a_checkout_that_is_approved_in_the_same_order_needs_no_inclusion() -> None:
    catalog = plan(KNOWN, [including(TREE), plain(MAIN)], NOW).catalog
    assert access(catalog) is GitAccess.CHECKOUT_APPROVED


# Random steps

STEPS: st.SearchStrategy[Input] = st.one_of(
    st.sampled_from([TREE, SUB]).map(including),
    st.sampled_from([TREE, SUB, MAIN]).map(plain),
    st.sampled_from([TREE, SUB, MAIN]).map(lambda path: Deny(path, ANN)),
    st.sampled_from([TREE, SUB, MAIN]).map(lambda path: Forget(path, ANN)),
    st.sampled_from([1, 8]).map(main_seen),
    st.sampled_from([2, 7]).map(tree_seen),
    st.sampled_from([MAIN, TREE]).map(ProjectGone),
    st.just(ProjectUnsafe(MAIN, LapseReason.EXPOSED)),
    st.sampled_from([Verdict.DENIED, Verdict.APPROVED]).map(
        lambda verdict: AddRule(b"/w/main", verdict, ANN)
    ),
)


def includes(decision: Decision | None, seen: Identity | None) -> bool:
    """Return whether the decision includes exactly this directory, said in another way."""
    included = decision.shared_git if decision is not None else None
    return included is not None and seen is not None and included.handle == seen.handle


@given(st.lists(STEPS, max_size=12))
def test_a_view_never_has_a_git_directory_without_an_approval_of_it(steps: list[Input]) -> None:
    catalog = KNOWN
    followed = WallRoots.of(catalog)
    for step in steps:
        try:
            catalog = after(catalog, step)
        except OrderRefused:
            continue
        followed = followed.after(catalog)
        assert followed == WallRoots.of(catalog)
        for path, root in followed.roots.items():
            git = root.shared_git
            if git is None or not git.access.is_granted:
                continue
            assert git.checkout not in catalog.denied
            if git.access is GitAccess.CHECKOUT_APPROVED:
                assert git.checkout in followed.roots
                continue
            assert catalog.judgments[git.checkout].verdict is Verdict.PENDING
            seen = catalog.projects[git.checkout].observed
            assert seen.hazard is None
            assert includes(catalog.projects[path].ruling.decision, seen.identity)
