"""The store: what was decided, durably, and what was last seen of every known project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rootsd.core.changes import Change, ProjectChange
from rootsd.core.history import Event, events_for
from rootsd.core.model import Presence, Project, ProjectKind, Rule, Sighting
from rootsd.core.records import RuledProject
from rootsd.host import backup
from rootsd.host.database import (
    StoreDamaged,
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
from rootsd.host.migrate import fill_reserve
from rootsd.host.opening import DATABASE_NAME, Opened, open_database
from rootsd.host.private import ensure_private_folder


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

    def __init__(self, folder: Path, opened: Opened) -> None:
        self._folder = folder
        self._file = folder / DATABASE_NAME
        self._db = opened.db
        self._anchor = opened.anchor
        self._note = opened.note

    @classmethod
    def open(cls, folder: Path, now: Callable[[], datetime] = _utc_now) -> Store:
        """Open the store in `folder`: make, migrate, verify and, where it must be, rebuild it.

        Raises NewerStore (nothing was touched), NotPrivate, StoreUnusable, DiskFull, and Busy
        where another program has the database open.
        """
        require_sqlite()
        ensure_private_folder(folder)
        return cls(folder, open_database(folder, now()))

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


def _unseen(ruled: RuledProject, decided: datetime) -> Sighting:
    presence = Presence.PRESENT if ruled.kind is ProjectKind.URI else Presence.MISSING
    return Sighting(ruled.kind, identity=None, first_seen=decided, presence=presence)
