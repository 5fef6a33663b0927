"""Verify the database, rebuild it from damaged files and backups, and keep damaged files.

Only the chain of events must not be lost. Everything else in the database can be computed from it
or scanned again. This module does three things:

* `check` verifies every part of a database: its pages, its tables, the hash chain, and that the
  table `record` agrees with the chain.
* `rebuild` makes a new database with the longest chain that can be salvaged. `SalvageSources`
reads
  it event by event from every file that may hold one: first the damaged file, then the backups.
  The new file replaces the old one only when it is complete and on the disk.
* `set_aside` keeps the damaged file beside the new one. `prune_damaged_files` later removes the
  oldest ones, but never one with a decision that the database in use lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

from rootsd.core.history import (
    CHAIN_START,
    BrokenChain,
    ChainHead,
    HistoryEvent,
    HistoryState,
    fold,
    verify_chain,
)
from rootsd.core.model import ObservedState
from rootsd.core.record import BadRecord
from rootsd.files.private_files import (
    display_path,
    ensure_private_file,
    list_names,
    path_exists,
    sync_path,
    unusable_error,
)
from rootsd.state.store.anchors import (
    AnchorRecord,
    DatabaseBinding,
    FileIdentity,
    identify,
    new_key,
    read_binding,
    write_binding,
)
from rootsd.state.store.database import (
    JOURNAL_SUFFIX,
    Database,
    StoreDamaged,
    StoreUnusable,
    connect,
    connect_frozen,
    journal_of,
    read_number,
    transaction,
    translate_errors,
)
from rootsd.state.store.rows import (
    read_events,
    read_fold,
    read_head,
    read_head_at,
    read_observed,
    write_events,
    write_observed,
)
from rootsd.state.store.schema import APPLICATION_ID, layout, layout_of, migrate

DAMAGED_MARK = ".damaged-"
MAX_DAMAGED_FILES = 3


def file_timestamp(at: datetime) -> str:
    """Return `at`, in UTC, as part of a file name. Names sort in the order of time."""
    return at.strftime("%Y%m%dT%H%M%S.%fZ")


def damaged_files(file: Path) -> list[Path]:
    """Return the damaged files that earlier rebuilds of `file` set aside, newest first.

    Raises NotPrivate.
    """
    aside = (name for name in list_names(file.parent) if name.startswith(file.name + DAMAGED_MARK))
    names = sorted((name for name in aside if not name.endswith(JOURNAL_SUFFIX)), reverse=True)
    return [file.with_name(name) for name in names]


def set_aside(file: Path, at: datetime) -> Path:
    """Rename the damaged `file` and its journal, and return the new path. Raises OSError."""
    while path_exists(damaged := file.with_name(f"{file.name}{DAMAGED_MARK}{file_timestamp(at)}")):
        at += timedelta(microseconds=1)
    # Rename the journal first. If it stayed, SQLite would apply it to the new database.
    if path_exists(journal_of(file)):
        journal_of(file).rename(journal_of(damaged))
    file.rename(damaged)
    return damaged


def prune_damaged_files(file: Path, db: Database) -> None:
    """Remove the damaged files of `file` beyond the newest MAX_DAMAGED_FILES.

    A file stays if it holds a decision that `db`, the database in use, lacks. Raises NotPrivate.
    """
    for old in damaged_files(file)[MAX_DAMAGED_FILES:]:
        if _holds_more(old, db):
            continue
        try:
            journal_of(old).unlink(missing_ok=True)
            old.unlink()
        except OSError as error:
            raise unusable_error(old, error) from error


def _holds_more(old: Path, db: Database) -> bool:
    """Return whether `old` holds an event that `db` lacks, or True if that is unknown."""
    unreadable = (StoreDamaged, StoreUnusable)
    try:
        with translate_errors(old), closing(connect_frozen(old)) as frozen:
            last = read_head(db).seq
            with suppress(*unreadable), translate_errors(old):
                last = max(last, read_head(frozen).seq)
            for seq in range(1, last + 1):
                # Read the events one by one, so that an unreadable page hides only its own events.
                with suppress(*unreadable), translate_errors(old):
                    head = read_head_at(frozen, seq)
                    if head is not None and head != read_head_at(db, seq):
                        return True
    except StoreDamaged:
        return False
    except StoreUnusable:
        return True
    return False


class SalvageSources:
    """The databases that a rebuild reads from, the best one first."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Open the `files` that exist. Raises NotPrivate if that cannot be checked."""
        self._databases: dict[Path, Database] = {}
        self._unread: dict[Path, StoreUnusable] = {}
        for file in files:
            if path_exists(file):
                with self._reading(file):
                    self._databases[file] = connect_frozen(file)

    def events(self) -> Iterator[HistoryEvent]:
        """Yield the longest chain that the sources hold together."""
        head = CHAIN_START
        while (event := self._following(head)) is not None:
            yield event
            head = event.head

    def observed_states(self) -> list[tuple[bytes, str, ObservedState]]:
        """Return the observed states of the first source that has any.

        Older sources describe an older disk.
        """
        rows: list[tuple[bytes, str, ObservedState]] = []
        for file, db in self._databases.items():
            with self._reading(file):
                rows.extend(read_observed(db))
            if rows:
                break
        return rows

    def bindings(self) -> Iterator[tuple[Path, DatabaseBinding]]:
        """Yield each source whose binding can be read, with the binding."""
        for file, db in self._databases.items():
            binding = None
            with self._reading(file):
                binding = read_binding(db)
            if binding is not None:
                yield file, binding

    def require_all_read(self) -> None:
        """Raise StoreUnusable if the system refused to read one of the files.

        The file may be readable later, and it may hold events that no other file has.
        """
        for file, error in self._unread.items():
            message = f"{display_path(file)}, which is needed to repair the decisions: {error}"
            raise StoreUnusable(
                message, f"rootsd up; or, to do without it: mv {file} {file}.unreadable"
            ) from error

    def close(self) -> None:
        """Close all databases."""
        for db in self._databases.values():
            db.close()

    def _following(self, head: ChainHead) -> HistoryEvent | None:
        """Return the event after `head` from the first source that still holds it."""
        for file, db in self._databases.items():
            # Read the events one by one, so that an unreadable page hides only its own events.
            with self._reading(file):
                for event in verify_chain(read_events(db, head.seq, 1), head):
                    event.decided_by()
                    event.outcome()
                    return event
        return None

    @contextmanager
    def _reading(self, file: Path) -> Iterator[None]:
        """Ignore damage. Remember the files that the system refuses to read."""
        try:
            with translate_errors(file):
                yield
        except StoreDamaged:
            pass
        except StoreUnusable as error:
            self._unread[file] = error


REBUILT_SUFFIX = ".rebuilt"


class RebuildResult(Struct, frozen=True):
    """The result of a rebuild.

    `head` is the end of the new chain. `damaged` is the new path of the damaged file, or None if
    there was no file.
    """

    head: ChainHead
    damaged: Path | None


def check(db: Database) -> HistoryState:
    """Verify every part of `db`, and return the state that follows from its history.

    Verify pages, references, tables, the chain, and that the table `record` agrees with the chain.
    Raises StoreDamaged, and errors of SQLite, which the caller translates.
    """
    if read_number(db, "application_id") != APPLICATION_ID:
        raise StoreDamaged("it is not a database of rootsd")
    pages = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    if pages != ["ok"]:
        raise StoreDamaged("; ".join(pages))
    if db.execute("PRAGMA foreign_key_check").fetchone():
        raise StoreDamaged("a record names a missing event")
    if layout(db) != layout_of(read_number(db, "user_version")):
        raise StoreDamaged("its tables are not those of its version")
    try:
        state = fold(verify_chain(read_events(db)))
        expected: dict[tuple[str, bytes], tuple[int, str | None]] = {}
        for subject, event in state.latest.items():
            event.outcome()
            expected[subject.kind.value, subject.key] = (event.seq, event.body)
        if read_fold(db) != expected:
            raise StoreDamaged("the records do not match the history")
        read_binding(db)
    except (BadRecord, BrokenChain) as error:
        raise StoreDamaged(str(error)) from error
    return state


def chain_contains(db: Database, head: ChainHead) -> bool:
    """Return whether the chain of `db` passes through `head`."""
    if head == CHAIN_START:
        return True
    return read_head_at(db, head.seq) == head


def rebuild(
    file: Path,
    sources: Sequence[Path],
    at: datetime,
    anchored: ChainHead | None = None,
    record: AnchorRecord | None = None,
) -> RebuildResult:
    """Replace `file` with a new database that has the longest chain that can be salvaged.

    The events come from `file` and `sources`, in this order. `record` is the content of the second
    anchor. The new database is bound to its own file before it replaces the old one, so no crash
    leaves it with the identity of the old file.

    After a crash there is either the old `file`, or no `file` and the damaged one set aside, or
    the new `file`.

    Raises StoreUnusable, DiskFull or NotPrivate. Also raises one of them if the system refused to
    read a file, and the chain does not contain `anchored` without that file.
    """
    rebuilt = file.with_name(file.name + REBUILT_SUFFIX)
    try:
        head = _write_rebuilt(rebuilt, [file, *sources], anchored, record)
        journal_of(rebuilt).unlink(missing_ok=True)
        damaged = set_aside(file, at) if path_exists(file) else None
        # The old journal must be gone before the new database takes the name. Otherwise SQLite
        # would apply the journal to it.
        sync_path(file.parent)
        rebuilt.replace(file)
        sync_path(file.parent)
    except OSError as error:
        raise unusable_error(file, error) from error
    return RebuildResult(head, damaged)


def sync_database(file: Path) -> None:
    """Flush the database `file`, its journal, and both names to the disk.

    Raises NotPrivate.
    """
    try:
        for path in (file, journal_of(file), file.parent):
            if path_exists(path):
                sync_path(path)
    except OSError as error:
        raise unusable_error(file, error) from error


def _write_rebuilt(
    rebuilt: Path, files: Sequence[Path], anchored: ChainHead | None, record: AnchorRecord | None
) -> ChainHead:
    """Write the new database, and return its head. Raises what `rebuild` raises, and OSError."""
    for is_last in (False, True):
        for old in (rebuilt, journal_of(rebuilt)):
            old.unlink(missing_ok=True)
        ensure_private_file(rebuilt)  # create it first, so that other users can never read it
        with ExitStack() as stack:
            stack.enter_context(translate_errors(rebuilt))
            sources = stack.enter_context(closing(SalvageSources(files)))
            key, identity = _key_for(files[0], sources, record), identify(rebuilt)
            db = stack.enter_context(closing(connect(rebuilt)))
            head = _fill(db, sources, key, identity)
            if anchored is not None and chain_contains(db, anchored):
                break
            # SQLite reports some read errors as damage, so try once more before an event is lost.
            if is_last:
                sources.require_all_read()
    sync_path(rebuilt)
    return head


def _fill(
    db: Database, sources: SalvageSources, key: bytes, file: FileIdentity | None
) -> ChainHead:
    migrate(db, back_up=lambda: None)
    with transaction(db):
        write_events(db, sources.events())
        for row in sources.observed_states():
            write_observed(db, *row)
        write_binding(db, DatabaseBinding(key, file))
    return check(db).head


def _key_for(file: Path, sources: SalvageSources, record: AnchorRecord | None) -> bytes:
    """Return the key for the database made from `sources`.

    It is the key of the old database, so that the second anchor still belongs to it. If the old
    database was a copy, return a new key, which no anchor has.
    """
    # A rename keeps the identity of a file. So a damaged database can still show whether it was a
    # copy, even after it was set aside. A backup is always a copy.
    found = sorted(sources.bindings(), key=lambda one: not one[0].name.startswith(file.name))
    for source, binding in found:
        is_backup = not source.name.startswith(file.name)
        if is_backup or binding.file is None or binding.file.is_same(identify(source)):
            return binding.key
        return new_key()
    return new_key() if record is None else record.key
