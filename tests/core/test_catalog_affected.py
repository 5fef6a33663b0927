"""The projects whose judgment may change after a change of others."""

from __future__ import annotations

from msgspec.structs import replace

from rootsd.core.affected_paths import affected_paths
from rootsd.core.catalog import Catalog, identities_behind
from rootsd.core.inputs import Deny
from rootsd.core.plan import plan
from support.core_samples import NOTHING_KNOWN, after, seen
from support.ledger_harness import PLACES, at
from support.sample_decisions import NOON, PERSON, approved, project


def test_a_change_affects_only_folders_above_and_worktrees() -> None:
    catalog = after(
        NOTHING_KNOWN,
        seen(b"/w", 1),
        seen(b"/w/main", 2),
        seen(b"/w/beside", 3),
        seen(b"/w/main/in", 4),
        seen(b"/tree", 5, main=b"/w/main"),
    )
    assert affected_paths([b"/w/main"], frozenset(), catalog) == {b"/w/main", b"/w", b"/tree"}
    below = affected_paths([b"/w/main"], {b"/w/main"}, catalog)
    assert below == {b"/w/main", b"/w", b"/tree", b"/w/main/in"}


def test_identities_behind_a_path_are_those_of_folders_above_and_main_checkouts() -> None:
    main, outer = approved(1), at(b"/home/ann/src/out", approved(2))
    tree = at(b"/home/ann/src/out/tree", approved(3))
    tree = replace(tree, observed=replace(tree.observed, main_checkout=main.path))
    known = [main, outer, tree, approved(4), at(tree.path + b"/in", project(5))]
    catalog = Catalog.of(known, (), PLACES, 1)
    assert identities_behind(tree.path + b"/in/file", catalog) == {
        path: catalog.identities[path] for path in (main.path, outer.path, tree.path)
    }
    assert identities_behind(b"/home/ann/src", catalog) == {}


def test_denials_affect_the_projects_below() -> None:
    outer = [at(b"/home/ann/src/o%d" % n, approved(n)) for n in range(3)]
    inner = [at(p.path + b"/in", approved(100 + n)) for n, p in enumerate(outer)]
    beside = at(b"/home/ann/src/o1-beside", approved(999))
    before = Catalog.of([*outer, *inner, beside], (), PLACES, 1)
    then = plan(before, [Deny(p.path, PERSON) for p in outer], NOON).catalog
    assert set(then.roots) == {beside.path}
