"""How the decision database is opened: nothing in it is believed before it is verified.

What is damaged is rebuilt from what is left. A history that is whole, and is not the one that was
last acknowledged, keeps its denials only: what it lacks may have taken an approval back.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rootsd.core.history import START, Fold, Head, SubjectKind, distrust
from rootsd.core.labels import safe_label
from rootsd.host.private import NotPrivate, ensure_private_file, is_there, shown, unusable
from rootsd.host.storage import backup, recovery
from rootsd.host.storage.anchor import Anchor
from rootsd.host.storage.database import (
    Database,
    StoreDamaged,
    StoreUnusable,
    connect,
    explained,
    transaction,
)
from rootsd.host.storage.leftovers import leftovers, prune
from rootsd.host.storage.migrate import fill_reserve, migrate, refuse_newer
from rootsd.host.storage.rows import write_events

DATABASE_NAME = "decisions.db"


@dataclass(frozen=True, slots=True)
class Opened:
    """A verified database with its anchor, and what had to be put right, or nothing."""

    db: Database
    anchor: Anchor
    note: str


def open_database(folder: Path, at: datetime) -> Opened:
    """Open the database in `folder`: make, migrate, verify and, where it must be, rebuild it.

    Raises NewerStore (nothing was touched), NotPrivate, StoreUnusable, DiskFull, and Busy where
    another program has it open.
    """
    file = folder / DATABASE_NAME
    refuse_newer(file)
    with ExitStack() as stack:
        anchor = Anchor.open(folder)
        stack.callback(anchor.close)
        db, state, note = _open_or_rebuild(folder, anchor.head, at)
        stack.callback(db.close)
        if not _agree(db, state, anchor.head):
            state, lost = _distrust(file, db, state, at)
            note = f"{note} {lost}".strip()
        if anchor.head != state.head:
            # What a killed daemon committed may not be on the disk yet; once anchored it must be.
            recovery.sync_database(file)
            anchor.write(state.head)
        fill_reserve(db, file)
        stack.pop_all()
    return Opened(db, anchor, note)


def _open_or_rebuild(
    folder: Path, anchored: Head | None, at: datetime
) -> tuple[Database, Fold, str]:
    file = folder / DATABASE_NAME
    for _ in range(2):  # SQLite calls some read errors damage: a second look tells
        try:
            return *_open_verified(folder, anchored, at), ""
        except StoreDamaged as error:
            damage = safe_label(str(error), limit=200)  # may quote the damaged bytes
    older = [] if is_there(file) else leftovers(file)
    salvage = recovery.rebuild(file, [*backup.backups(folder), *older], at, anchored)
    kept = f"; the damaged file is kept as {shown(salvage.damaged)}" if salvage.damaged else ""
    note = f"{DATABASE_NAME} was damaged ({damage}) and has been rebuilt{kept}."
    try:
        db, state = _open_verified(folder, anchored, at)
    except StoreDamaged as error:
        remedy = f"move {folder} to another disk, then: rootsd up"
        raise StoreUnusable(f"{shown(file)} is damaged again: {error}", remedy) from error
    with suppress(NotPrivate):  # to tidy up is no reason not to start
        prune(file, db)
    return db, state, note


def _is_lost(file: Path, anchored: Head | None) -> bool:
    """Whether there is no database where there has been one."""
    try:
        if file.lstat().st_size > 0:
            return False
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(file, error) from error
    decided = anchored is not None and anchored != START
    return decided or bool(backup.backups(file.parent) or leftovers(file))


def _open_verified(folder: Path, anchored: Head | None, at: datetime) -> tuple[Database, Fold]:
    file = folder / DATABASE_NAME
    if _is_lost(file, anchored):
        raise StoreDamaged("it is gone")
    # Before SQLite has it open: to close a second descriptor of it would drop SQLite's lock.
    ensure_private_file(file)
    with explained(file), ExitStack() as stack:
        db = connect(file)
        stack.callback(db.close)
        migrate(db, lambda: backup.take(db, folder, at))
        state = recovery.check(db)
        stack.pop_all()
    return db, state


def _agree(db: Database, state: Fold, anchored: Head | None) -> bool:
    """Whether the history is the one that was acknowledged, as far as the anchor knows."""
    if anchored is None:
        return state.head == START
    return recovery.contains(db, anchored)


def _distrust(file: Path, db: Database, state: Fold, at: datetime) -> tuple[Fold, str]:
    """Take every approval back; what the history comes to then, and a note that says so."""
    events = distrust(state, at)
    with explained(file):
        with transaction(db):
            write_events(db, events)
        state = recovery.check(db)
    return state, (
        "The history of decisions is not the one that was last acknowledged, as after an older"
        f" copy was put back. {_lapsed(Counter(event.subject.kind for event in events))}"
    )


def _lapsed(count: Counter[SubjectKind]) -> str:
    """What was taken back, and the command that restores it."""
    approvals, rules = count[SubjectKind.PROJECT], count[SubjectKind.RULE]
    guard = (
        " The guard is the usual one again (rootsd guard)." if count[SubjectKind.SETTING] else ""
    )
    if not approvals and not rules:
        return (
            f"It holds no approval; what it lacks is to be decided again: rootsd pending.{guard}"
        )
    return (
        f"{_many(approvals, 'approval')} and {_many(rules, 'approve rule')} lapsed:"
        f" rootsd approve --lapsed --all restores them, with --dry-run it shows them.{guard}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
