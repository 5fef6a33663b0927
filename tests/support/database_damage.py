"""Databases that are damaged in one place, and what a store makes of them."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rootsd.core.model import Verdict
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.schema import NewerStore
from rootsd.state.store.store import StoredState
from support.cached_parsing import cached_parsing
from support.copied_stores import same_identity, use_copied_stores
from support.power_cuts import memory_folder
from support.sample_decisions import NOON, approved, decide, denied, project
from support.stores import (
    EVERYTHING,
    back_up,
    by_path,
    is_approved,
    load,
    opened,
    outside,
    small_reserve,
)

PAGE = 4096

Damage = Callable[[bytearray, random.Random], None]


def flip_a_bit(content: bytearray, chance: random.Random) -> None:
    """Flip one bit."""
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def cut_off_or_swap(content: bytearray, chance: random.Random) -> None:
    """Cut off the end, or swap two pages."""
    if chance.random() < 1 / 2:
        del content[chance.randrange(len(content)) :]
        return
    one, other = (PAGE * page for page in chance.sample(range(len(content) // PAGE), 2))
    held = content[one : one + PAGE]
    content[one : one + PAGE] = content[other : other + PAGE]
    content[other : other + PAGE] = held


def damage(seed: int, times: int, how: Damage) -> int:
    """Damage the same database `times` times, and open it without any backup.

    Raises AssertionError where a decision changed unseen. Gives how often SQLite alone saw
    nothing wrong though a decision differed.
    """
    chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
    unseen_by_sqlite = 0
    with (
        memory_folder() as work,
        small_reserve(),
        cached_parsing(),
        use_copied_stores(same_identity),
    ):
        folder = work / "state"
        compact, expected = _make(folder)
        anchors = [folder / "head", outside(folder) / "head"]
        anchored = [anchor.read_bytes() for anchor in anchors]
        for _ in range(times):
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
            content = bytearray(compact)
            how(content, chance)
            (folder / DATABASE_NAME).write_bytes(content)
            for anchor, slots in zip(anchors, anchored, strict=True):
                anchor.write_bytes(slots)
            unseen_by_sqlite += _sqlite_sees_nothing_wrong(folder / DATABASE_NAME)
            try:
                loaded = load(folder)
            except NewerStore:
                continue
            _assert_nothing_changed_unseen(loaded, expected)
    return unseen_by_sqlite


def _make(folder: Path) -> tuple[bytes, StoredState]:
    """Create a database in which every page is in use; return it with its content."""
    with opened(folder) as store:
        for number in range(20):
            store.append([decide(approved(number)), decide(denied(number + 50))], NOON)
        store.append(EVERYTHING, NOON)
        return back_up(store, NOON).read_bytes(), store.load()


def _sqlite_sees_nothing_wrong(database: Path) -> bool:
    """Whether some content differs from what was stored without SQLite complaining: it has no
    checksums, so a flipped bit inside a value is whole to it."""
    try:
        with closing(sqlite3.connect(database)) as db:
            whole = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            differing = "FROM event JOIN record USING (seq) WHERE event.body <> record.body"
            return whole and bool(db.execute(f"SELECT 1 {differing}").fetchone())
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _assert_nothing_changed_unseen(loaded: StoredState, expected: StoredState) -> None:
    known = by_path(expected)
    for one in loaded.projects:
        assert one.ruling == known[one.path].ruling or not is_approved(one)
    assert {new for new in loaded.rules if new.verdict is Verdict.APPROVED} <= set(expected.rules)
    if not loaded.note:
        rulings = {one.path: (one.id, one.ruling) for one in loaded.projects}
        decided = {
            path: (one.id, one.ruling)
            for path, one in known.items()
            if one.ruling != project(0).ruling
        }
        assert rulings.items() >= decided.items()
        assert (loaded.rules, loaded.next_rule) == (expected.rules, expected.next_rule)
