"""The store: what was decided, durably, and what was last seen of every known project."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rootsd.core.changes import Change, ProjectChange
from rootsd.core.history import (
    START,
    Event,
    Fold,
    Head,
    SubjectKind,
    distrust,
    events_for,
)
from rootsd.core.model import Presence, Project, ProjectKind, Rule, Sighting
from rootsd.core.records import RuledProject
from rootsd.host import backup, recovery
from rootsd.host.anchor import Anchor
from rootsd.host.database import (
    Database,
    StoreDamaged,
    StoreUnusable,
    connect,
    drop_sighting,
    explained,
    read_events,
    read_head,
    read_next_rule,
    read_records,
    read_sightings,
    require_sqlite,
    transaction,
    write_events,
    write_sighting,
)
from rootsd.host.migrate import fill_reserve, migrate, refuse_newer
from rootsd.host.private import ensure_private_folder, open_private_file, shown

DATABASE_NAME = "decisions.db"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a store holds. `note` says what the start had to put right, or is empty."""

    projects: tuple[Project, ...]
    rules: tuple[Rule, ...]
    next_rule: int
    note: str = ""


class Store:
    """The open store of one state folder, for one caller at a time, on any thread.

    The folder must be locked (`rootsd.host.lock`) before it is opened.
    """

    def __init__(self, folder: Path, db: Database, anchor: Anchor, note: str) -> None:
        self._folder = folder
        self._file = folder / DATABASE_NAME
        self._db = db
        self._anchor = anchor
        self._note = note

    @classmethod
    def open(cls, folder: Path, now: Callable[[], datetime] = _utc_now) -> Store:
        """Open the store in `folder`: make, migrate, verify and, where it must be, rebuild it.

        Raises NewerStore (nothing was touched), NotPrivate, StoreUnusable, DiskFull, and Busy
        where another program has the database open.
        """
        require_sqlite()
        ensure_private_folder(folder)
        file = folder / DATABASE_NAME
        refuse_newer(file)
        with ExitStack() as stack:
            anchor = Anchor.open(folder)
            stack.callback(anchor.close)
            db, state, note = _open_or_rebuild(folder, anchor.head, now())
            stack.callback(db.close)
            if not _agree(db, state, anchor.head):
                state, lost = _distrust(file, db, state, now())
                note = f"{note} {lost}".strip()
            if anchor.head != state.head:
                anchor.write(state.head)
            fill_reserve(db, file)
            stack.pop_all()
        return cls(folder, db, anchor, note)

    def load(self) -> Loaded:
        """All that is stored. A project that was decided about, but whose sighting is lost, comes
        with one that shows it missing: a scan has to find it again before it is published."""
        rules: list[Rule] = []
        projects: dict[bytes, Project] = {}
        with explained(self._file):
            for path, project_id, sighting in read_sightings(self._db):
                projects[path] = Project(path, project_id, sighting)
            for event in read_records(self._db):
                match event.outcome():
                    case Rule() as rule:
                        rules.append(rule)
                    case RuledProject() as ruled:
                        path = event.subject.key
                        known = projects.get(path)
                        sighting = known.sighting if known else _unseen(ruled, event.at)
                        projects[path] = Project(path, ruled.id, sighting, ruled.ruling)
                    case None:
                        raise StoreDamaged(f"event {event.seq} has a record and no outcome")
            next_rule = read_next_rule(self._db)
        return Loaded(tuple(projects.values()), tuple(rules), next_rule, self._note)

    def append(self, changes: Sequence[Change], at: datetime) -> int | None:
        """Store `changes` in one transaction. When this returns they are on the disk.

        Gives the number of the last decision among them, or None where nothing was decided.
        Raises DiskFull, StoreUnusable or NotPrivate; then, as after a crash, they may be stored
        or not, all together, and the same changes may be appended again.
        """
        with explained(self._file), transaction(self._db):
            events = events_for(changes, at, read_head(self._db))
            write_events(self._db, events)
            for change in changes:
                if isinstance(change, ProjectChange):
                    self._keep_sighting(change)
        if not events:
            return None
        self._anchor.write(events[-1].head)
        return events[-1].seq

    def events(self, after: int = 0, limit: int | None = None) -> tuple[Event, ...]:
        """The decisions after number `after`, oldest first, at most `limit`."""
        with explained(self._file):
            return tuple(read_events(self._db, after, limit))

    def backup_is_due(self, at: datetime) -> bool:
        """Whether the newest backup is a day old."""
        return backup.is_due(self._folder, at)

    def back_up(self, at: datetime) -> Path:
        """Make a verified backup, and room for decisions on a full disk; the backup's path.

        Raises DiskFull, StoreUnusable or NotPrivate; older backups stay then.
        """
        with explained(self._file):
            made = backup.take(self._db, self._folder, at)
        fill_reserve(self._db, self._file)
        return made

    def close(self) -> None:
        """Close the files; the store cannot be used afterwards."""
        self._db.close()
        self._anchor.close()

    def _keep_sighting(self, change: ProjectChange) -> None:
        before, after = change.before, change.after
        if after is None:
            drop_sighting(self._db, change.path)
        elif before is None or (before.id, before.sighting) != (after.id, after.sighting):
            write_sighting(self._db, change.path, after.id, after.sighting)


def _open_or_rebuild(
    folder: Path, anchored: Head | None, at: datetime
) -> tuple[Database, Fold, str]:
    file = folder / DATABASE_NAME
    try:
        return *_open_verified(folder, anchored, at), ""
    except StoreDamaged as error:
        damage = str(error)
    older = [] if file.exists() else recovery.leftovers(file)
    salvage = recovery.rebuild(file, [*backup.backups(folder), *older], at)
    kept = f"; the damaged file is kept as {shown(salvage.damaged)}" if salvage.damaged else ""
    note = f"{DATABASE_NAME} was damaged ({damage}) and has been rebuilt{kept}."
    try:
        return *_open_verified(folder, anchored, at), note
    except StoreDamaged as error:
        remedy = f"move {folder} to another disk, then: rootsd up"
        raise StoreUnusable(f"{shown(file)} is damaged again: {error}", remedy) from error


def _is_lost(file: Path, anchored: Head | None) -> bool:
    """Whether there is no database where there has been one."""
    if file.exists() and file.stat().st_size > 0:
        return False
    decided = anchored is not None and anchored != START
    return decided or bool(backup.backups(file.parent) or recovery.leftovers(file))


def _open_verified(folder: Path, anchored: Head | None, at: datetime) -> tuple[Database, Fold]:
    file = folder / DATABASE_NAME
    if _is_lost(file, anchored):
        raise StoreDamaged("it is gone")
    # Before SQLite has it open: to close a second descriptor of it would drop SQLite's lock.
    os.close(open_private_file(file))
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
    rules = sum(event.subject.kind is SubjectKind.RULE for event in events)
    return state, (
        f"The history of decisions is not the one that was last acknowledged, as after an older"
        f" copy was put back: {len(events) - rules} approvals wait to be given again (rootsd"
        f" approve --lapsed --all), {rules} approve rules were removed (rootsd log, rule add)."
    )


def _unseen(ruled: RuledProject, decided: datetime) -> Sighting:
    presence = Presence.PRESENT if ruled.kind is ProjectKind.URI else Presence.MISSING
    return Sighting(ruled.kind, identity=None, first_seen=decided, presence=presence)
