"""A program that decides in real stores, to be recorded: `python -m support.scribe MODE FOLDER…`.

In each folder it opens the store below it, decides, backs up, and closes; after each decision
that the store has acknowledged it marks its number. What it decides follows from the number alone
(`numbered`), how much at once and when it backs up from the name of the folder.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path

import pytest

from rootsd.core.history import HistoryEvent
from rootsd.state.store import database
from rootsd.state.store.anchors import AnchorPair, FileIdentity
from rootsd.state.store.database import Database
from rootsd.state.store.rows import write_events
from rootsd.state.store.store import Store
from support.decisions import NOON, after, numbered, project, see
from support.elsewhere import elsewhere, simulated
from support.recording import IDENTITY_MARK, MARKS_NAME
from support.stores import back_up, outside, small_reserve

STATE_NAME = "state"
_ROUNDS = 8
_MOST_AT_ONCE = 15


class Mode(StrEnum):
    """How carefully the store writes: as it does, or too carelessly, as controls."""

    OWN = "own"
    WAL_NORMAL = "wal-normal"
    DELETE_NORMAL = "delete-normal"
    EARLY_ANCHORS = "early-anchors"

    @property
    def pragmas(self) -> tuple[str, ...]:
        """What SQLite is told on a connection that writes."""
        match self:
            case Mode.OWN | Mode.EARLY_ANCHORS:
                return database.PRAGMAS
            case Mode.WAL_NORMAL:
                return ("locking_mode=EXCLUSIVE", "synchronous=NORMAL", "journal_mode=WAL")
            case Mode.DELETE_NORMAL:
                return ("synchronous=NORMAL", "journal_mode=DELETE")


@contextmanager
def careless(mode: Mode) -> Iterator[None]:
    """Have stores written in `mode` meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "PRAGMAS", mode.pragmas)
        if mode is Mode.EARLY_ANCHORS:
            _anchor_early(patch)
        yield


def _anchor_early(patch: pytest.MonkeyPatch) -> None:
    """Have the anchors written before the commit, so that a cut leaves them ahead of the chain."""
    in_use: list[AnchorPair] = []
    open_anchors = AnchorPair.open

    def opened(folder: Path, outside: Path) -> AnchorPair:
        in_use.append(open_anchors(folder, outside))
        return in_use[-1]

    def written(db: Database, events: Sequence[HistoryEvent]) -> None:
        write_events(db, events)
        if events:
            in_use[-1].write(events[-1].head)

    patch.setattr(AnchorPair, "open", opened)
    patch.setattr("rootsd.state.store.store.write_events", written)


def decide_at_length(top: Path, marks: int) -> None:
    """Open the store below `top`, make decisions and backups, mark each acknowledged one."""
    chance = random.Random(top.name)  # noqa: S311 - to be reproducible is its purpose

    def marked(file: Path) -> FileIdentity | None:
        identity = simulated(file)
        assert identity is not None
        os.write(marks, b"%b %d %b" % (IDENTITY_MARK, identity.inode, os.fsencode(file)))
        return identity

    state = top / STATE_NAME
    with elsewhere(marked), closing(Store.open(state, outside(state), lambda: NOON)) as store:
        seq = len(store.events())
        os.write(marks, b"%d" % seq)
        for turn in range(_ROUNDS):
            count = chance.choice((1, 1, 1, chance.randint(2, _MOST_AT_ONCE)))
            changes = [numbered(seq + one) for one in range(1, count + 1)]
            store.append([*changes, see(project(chance.randrange(200)))], NOON)
            seq += count
            os.write(marks, b"%d" % seq)
            if chance.random() < 1 / 6:
                back_up(store, after(turn))


def main() -> None:
    """Go through the folders, with a mark between them."""
    mode, *tops = sys.argv[1:]
    with small_reserve(), careless(Mode(mode)):
        for top in map(Path, tops):
            marks = os.open(top / MARKS_NAME, os.O_WRONLY | os.O_CREAT)
            decide_at_length(top, marks)
            os.close(marks)


if __name__ == "__main__":
    main()
