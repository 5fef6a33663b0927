"""Load and append decisions and observed states, durably.

`Store` is the interface to everything in this package. `open` verifies the database and repairs it
if necessary (`opening`). `load` returns the stored state, once, at the start. `append` writes
changes. When it returns, they are on the disk, and both anchors record the last decision. The
other methods read the history and make backups.

There are two kinds of data. Decisions form a hash chain of events and must never be lost. An
observed state says what a scan found. If one is lost, another scan finds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct, field

from rootsd.core.catalog import MAX_GONE
from rootsd.core.changes import AuditRecord, Change, ProjectChange
from rootsd.core.encoding import AllowedPrograms, FocusRecord, ProjectRecord
from rootsd.core.guard_setting import Guard
from rootsd.core.history import CHAIN_START, ChainHead, HistoryEvent, events_for
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, ObservedState, Presence, Project, ProjectKind, Rule
from rootsd.files.private_files import display_path, ensure_private_folder
from rootsd.state.store import backup
from rootsd.state.store.database import (
    StoreDamaged,
    StoreUnusable,
    require_sqlite,
    transaction,
    translate_errors,
)
from rootsd.state.store.nocow import write_in_place
from rootsd.state.store.opening import DATABASE_NAME, OpenedDatabase, open_database
from rootsd.state.store.rows import (
    drop_observed,
    read_events,
    read_head,
    read_names,
    read_next_rule,
    read_observed,
    read_records,
    write_events,
    write_observed,
)
from rootsd.state.store.schema import fill_reserve


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StoredState(Struct, frozen=True):
    """The content of a store.

    `note` says what this start repaired or took back. `cause` says why approvals lapsed, at this
    start or an earlier one. `warning` says which protection is missing. Each may be empty.

    `guard` is None if it was never set, and `focus` is None if there is none. `allowed` are the
    programs that a person has added to those that the guard knows. `is_new` means that
    nothing was ever decided. `events` counts the events of the history. `names` holds each name
    that an approval froze, or that a list showed for what is gone, with its last path.
    """

    projects: tuple[Project, ...]
    rules: tuple[Rule, ...]
    next_rule: int
    note: str = ""
    guard: Guard | None = None
    focus: str | None = None
    allowed: frozenset[str] = frozenset()
    is_new: bool = False
    events: int = 0
    cause: str = ""
    warning: str = ""
    names: Mapping[str, bytes] = field(default_factory=dict)


class Store:
    """The open store of one state folder.

    One caller at a time may use it, on any thread. Lock the folder (`rootsd.files.lock`) before
    opening it.
    """

    def __init__(self, folder: Path, opened: OpenedDatabase) -> None:
        self._folder = folder
        self._file = folder / DATABASE_NAME
        self._db = opened.db
        self._opened = opened
        self._anchors = opened.anchors
        self._has_room = True

    @classmethod
    def open(cls, folder: Path, outside: Path, now: Callable[[], datetime] = _utc_now) -> Store:
        """Open the store in `folder`: create, migrate, verify and, if necessary, rebuild it.

        The second anchor lies in the folder `outside`. Raises NewerStore (nothing was touched),
        NotPrivate, StoreUnusable, DiskFull, and Busy if another program has the database open.
        """
        require_sqlite()
        ensure_private_folder(folder)
        write_in_place(folder)
        return cls(folder, open_database(folder, outside, now()))

    def load(self) -> StoredState:
        """Return everything that is stored.

        If the observed state of a decided project is lost, the project counts as missing. It is
        published again when a scan finds it.
        """
        rules: list[Rule] = []
        projects: dict[bytes, Project] = {}
        guard: Guard | None = None
        focus: str | None = None
        allowed = frozenset[str]()
        with translate_errors(self._file):
            for path, project_id, observed in read_observed(self._db):
                projects[path] = Project(path, project_id, observed)
            for event in read_records(self._db):
                match event.outcome():
                    case Rule() as rule:
                        rules.append(rule)
                    case Guard() as guard:
                        pass
                    case AllowedPrograms(programs=allowed):
                        pass
                    case FocusRecord(tag=focus):
                        pass
                    case ProjectRecord() as ruled:
                        path = event.subject.key
                        known = projects.get(path)
                        observed = known.observed if known else _unseen(ruled, event.at)
                        projects[path] = Project(path, ruled.id, observed, ruled.ruling)
                    case None:
                        raise StoreDamaged(f"event {event.seq} has a record and no outcome")
            next_rule = read_next_rule(self._db)
            head = read_head(self._db)
            names = self._take_kept_names(projects) | read_names(self._db)
        return StoredState(
            projects=tuple(projects.values()),
            rules=tuple(sorted(rules, key=lambda rule: rule.number)),
            next_rule=next_rule,
            note=self._opened.note,
            guard=guard,
            focus=focus,
            allowed=allowed,
            is_new=head == CHAIN_START,
            events=head.seq,
            cause=self._opened.cause,
            warning=self._opened.warning,
            names=names,
        )

    def _take_kept_names(self, projects: dict[bytes, Project]) -> dict[str, bytes]:
        """Return the kept names that no list shows now, each with its path.

        Take the projects that are gone out of `projects`, and forget the oldest of them.
        """
        gone = [p for p in projects.values() if p.observed.presence is Presence.MISSING]
        gone = [p for p in gone if p.ruling == UNDECIDED]
        gone.sort(key=lambda p: p.observed.absent_since or p.observed.first_seen)
        for project in gone:
            del projects[project.path]
        if old := gone[:-MAX_GONE]:
            with transaction(self._db):
                for project in old:
                    drop_observed(self._db, project.path)
        renamed = [p for p in projects.values() if p.observed.name not in (None, p.name)]
        return {p.observed.name or "": p.path for p in (*gone[-MAX_GONE:], *renamed)}

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> int | None:
        """Store `changes` in one transaction. They are on the disk when this returns.

        Return the number of the last decision among them, or None if there is none. Raises
        DiskFull, StoreUnusable or NotPrivate. After an error, as after a crash, either all changes
        are stored or none. They may be appended again.
        """
        with self._in_use(), transaction(self._db):
            before = head = read_head(self._db)
            # Append the events one by one. A list of thousands would take 1 MB that Python does
            # not return to the system.
            for change in changes:
                events = events_for((change,), at, head)
                write_events(self._db, events)
                head = events[-1].head if events else head
                if isinstance(change, ProjectChange):
                    self._save_observed(change, at)
        if head == before:
            return None
        self._anchors.write(head)
        self._keep_room()
        return head.seq

    def events(self, after: int = 0, limit: int | None = None) -> tuple[HistoryEvent, ...]:
        """Return the decisions after number `after`, oldest first, at most `limit`."""
        with self._in_use():
            return tuple(read_events(self._db, after, limit))

    def last_events(self, count: int) -> tuple[HistoryEvent, ...]:
        """Return the newest `count` decisions, oldest first."""
        with self._in_use():
            return tuple(read_events(self._db, max(0, read_head(self._db).seq - count)))

    def backup_due_in(self, at: datetime) -> timedelta:
        """Return how long after `at` the next backup is due. Raises NotPrivate."""
        return backup.due_in(self._folder, at)

    def begin_backup(self) -> ChainHead | None:
        """Copy the database for `finish_backup`, and refill the reserve for a full disk.

        Return None, and make no copy, if nothing was decided yet. Raises DiskFull, StoreUnusable
        or NotPrivate. Older backups then stay.
        """
        with self._in_use():
            is_empty = read_head(self._db) == CHAIN_START
            head = None if is_empty else backup.begin_copy(self._db, self._folder)
        self._has_room = True
        self._keep_room()
        return head

    def finish_backup(self, head: ChainHead, at: datetime) -> Path:
        """Verify and keep the copy, and return its path. Raises what `begin_backup` raises.

        It does not use the database, so other calls may use the store at the same time.
        """
        with self._in_use():
            return backup.finish_copy(self._folder, head, at)

    def close(self) -> None:
        """Close the files. The store cannot be used afterwards."""
        self._db.close()
        self._anchors.close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Translate errors as `translate_errors` does, but report damage as StoreUnusable.

        Only a start repairs damage. Until then, a damaged store refuses its use.
        """
        try:
            with translate_errors(self._file):
                yield
        except StoreDamaged as error:
            detail = safe_label(str(error), limit=200)  # may quote the damaged bytes
            message = f"{display_path(self._file)} or a copy of it is damaged: {detail}"
            raise StoreUnusable(message, "rootsd down && rootsd up") from error

    def _keep_room(self) -> None:
        """Refill the reserve.

        If the disk has no room, do not try again before the next backup. An attempt is slow, and
        the rest of the reserve is for decisions.
        """
        # Ignore errors. The changes are stored, and the next write reports the problem.
        with suppress(StoreUnusable, StoreDamaged):
            self._has_room = self._has_room and fill_reserve(self._db, self._file)

    def _save_observed(self, change: ProjectChange, at: datetime) -> None:
        before, after = change.before, change.after
        if after is None and before is not None and before.observed.name is not None:
            write_observed(self._db, change.path, before.id, _gone(before.observed, at))
        elif after is None:
            drop_observed(self._db, change.path)
        elif before is None or (before.id, before.observed) != (after.id, after.observed):
            write_observed(self._db, change.path, after.id, after.observed)


def _gone(seen: ObservedState, at: datetime) -> ObservedState:
    """Return what stays of a project that is gone: its name, which no other path gets."""
    return ObservedState(
        seen.kind, None, seen.first_seen, Presence.MISSING, absent_since=at, name=seen.name
    )


def _unseen(ruled: ProjectRecord, decided: datetime) -> ObservedState:
    presence = Presence.PRESENT if ruled.kind is ProjectKind.URI else Presence.MISSING
    # It is not known whether the folder had a marker, so the person's decision counts.
    named = ruled.kind is ProjectKind.PROJECT
    return ObservedState(
        ruled.kind, identity=None, first_seen=decided, presence=presence, named=named
    )
