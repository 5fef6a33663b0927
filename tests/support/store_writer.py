"""A program that writes decisions to real stores while strace records it.

Run as `python -m support.store_writer MODE FOLDER…`. For each folder it opens the store in it,
makes decisions and backups, and closes the store. It marks the number of each decision that the
store acknowledged. The number alone determines the decision (see `numbered`). The name of the
folder determines the size of each batch and the times of the backups.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from unittest.mock import patch

from rootsd.core.history import HistoryEvent
from rootsd.state.store import database
from rootsd.state.store.anchors import AnchorPair, FileIdentity
from rootsd.state.store.database import Database
from rootsd.state.store.rows import write_events
from rootsd.state.store.store import Store
from support.copied_stores import simulated_identity, use_copied_stores
from support.sample_decisions import NOON, after, numbered, project, see
from support.stores import back_up, outside, small_reserve
from support.syscall_recording import IDENTITY_MARK, MARKS_NAME

STATE_NAME = "state"
_ROUNDS = 8
_MOST_AT_ONCE = 15


class WriteMode(StrEnum):
    """How carefully the store writes: as it does normally or, in the controls, too carelessly."""

    OWN = "own"
    WAL_NORMAL = "wal-normal"
    DELETE_NORMAL = "delete-normal"
    EARLY_ANCHORS = "early-anchors"

    @property
    def pragmas(self) -> tuple[str, ...]:
        """Return the pragmas for a writing connection."""
        match self:
            case WriteMode.OWN | WriteMode.EARLY_ANCHORS:
                return database.PRAGMAS
            case WriteMode.WAL_NORMAL:
                return ("locking_mode=EXCLUSIVE", "synchronous=NORMAL", "journal_mode=WAL")
            case WriteMode.DELETE_NORMAL:
                return ("synchronous=NORMAL", "journal_mode=DELETE")


@contextmanager
def use_write_mode(mode: WriteMode) -> Iterator[None]:
    """Let stores write in `mode` during the block."""
    anchors = _early_anchors() if mode is WriteMode.EARLY_ANCHORS else nullcontext()
    with patch.object(database, "PRAGMAS", mode.pragmas), anchors:
        yield


@contextmanager
def _early_anchors() -> Iterator[None]:
    """Write the anchors before the commit, so that a power cut leaves them ahead of the chain."""
    in_use: list[AnchorPair] = []
    open_anchors = AnchorPair.open

    def opened(folder: Path, outside: Path) -> AnchorPair:
        in_use.append(open_anchors(folder, outside))
        return in_use[-1]

    def written(db: Database, events: Sequence[HistoryEvent]) -> None:
        write_events(db, events)
        if events:
            in_use[-1].write(events[-1].head)

    with (
        patch.object(AnchorPair, "open", opened),
        patch("rootsd.state.store.store.write_events", written),
    ):
        yield


def decide_at_length(top: Path, marks: int) -> None:
    """Open the store below `top`, make decisions and backups, and mark each acknowledged
    decision.
    """
    chance = random.Random(top.name)  # noqa: S311 - to be reproducible is its purpose

    def marked(file: Path) -> FileIdentity | None:
        identity = simulated_identity(file)
        assert identity is not None
        os.write(marks, b"%b %d %b" % (IDENTITY_MARK, identity.inode, os.fsencode(file)))
        return identity

    state = top / STATE_NAME
    with (
        use_copied_stores(marked),
        closing(Store.open(state, outside(state), lambda: NOON)) as store,
    ):
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
    """Process the folders, with a mark between them."""
    mode, *tops = sys.argv[1:]
    with small_reserve(), use_write_mode(WriteMode(mode)):
        for top in map(Path, tops):
            marks = os.open(top / MARKS_NAME, os.O_WRONLY | os.O_CREAT)
            decide_at_length(top, marks)
            os.close(marks)


if __name__ == "__main__":
    main()
