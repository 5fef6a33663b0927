"""Verify the database, rebuild it from damaged files and backups, and keep damaged files.

The damaged databases that rebuilds put aside: a few are kept, and each sole copy.

What several databases, damaged and old ones, still hold of one history.

Is the decision database whole, and what can be saved where it is not.

The chain of events is the truth. It is rebuilt, event by event, from whatever still holds them:
the damaged file first, then the backups. The damaged file is kept beside the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rootsd.core.encoding import BadRecord
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
from rootsd.state.store.schema import APPLICATION_ID, BINDING_SINCE, layout, layout_of, migrate
from rootsd.system.private_files import (
    display_path,
    ensure_private_file,
    list_names,
    path_exists,
    sync_path,
    unusable_error,
)

DAMAGED_MARK = ".damaged-"
MAX_DAMAGED_FILES = 3


def file_timestamp(at: datetime) -> str:
    """A moment, in UTC, as part of a file name; names sort as the moments do."""
    return at.strftime("%Y%m%dT%H%M%S.%fZ")


def damaged_files(file: Path) -> list[Path]:
    """The damaged files that earlier rebuilds of `file` put aside, the newest first. Raises
    NotPrivate."""
    aside = (name for name in list_names(file.parent) if name.startswith(file.name + DAMAGED_MARK))
    names = sorted((name for name in aside if not name.endswith(JOURNAL_SUFFIX)), reverse=True)
    return [file.with_name(name) for name in names]


def set_aside(file: Path, at: datetime) -> Path:
    """Rename the damaged `file`, and its journal; the new path. Raises OSError."""
    while path_exists(damaged := file.with_name(f"{file.name}{DAMAGED_MARK}{file_timestamp(at)}")):
        at += timedelta(microseconds=1)
    # The journal first: left behind, it would be played back into the new database.
    if path_exists(journal_of(file)):
        journal_of(file).rename(journal_of(damaged))
    file.rename(damaged)
    return damaged


def prune_damaged_files(file: Path, db: Database) -> None:
    """Remove the oldest leftovers of `file` but KEPT, except those that hold a decision which
    `db`, the database in use, does not. Raises NotPrivate."""
    for old in damaged_files(file)[MAX_DAMAGED_FILES:]:
        if _holds_more(old, db):
            continue
        try:
            journal_of(old).unlink(missing_ok=True)
            old.unlink()
        except OSError as error:
            raise unusable_error(old, error) from error


def _holds_more(old: Path, db: Database) -> bool:
    """Whether `old` holds an event that `db` does not; True where that cannot be told."""
    unreadable = (StoreDamaged, StoreUnusable)
    try:
        with translate_errors(old), closing(connect_frozen(old)) as frozen:
            last = read_head(db).seq
            with suppress(*unreadable), translate_errors(old):
                last = max(last, read_head(frozen).seq)
            for seq in range(1, last + 1):
                # Looked up one by one: a page that cannot be read hides its own events only.
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
    """The databases that a rebuild takes from, the best one first. They are only read."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Open those of `files` that are there. Raises NotPrivate where that cannot be told."""
        self._databases: dict[Path, Database] = {}
        self._unread: dict[Path, StoreUnusable] = {}
        for file in files:
            if path_exists(file):
                with self._reading(file):
                    self._databases[file] = connect_frozen(file)

    def events(self) -> Iterator[HistoryEvent]:
        """The longest chain that can be put together."""
        head = CHAIN_START
        while (event := self._following(head)) is not None:
            yield event
            head = event.head

    def sightings(self) -> list[tuple[bytes, str, ObservedState]]:
        """What the first source that has any tells; an older one would tell of an older disk."""
        rows: list[tuple[bytes, str, ObservedState]] = []
        for file, db in self._databases.items():
            with self._reading(file):
                rows.extend(read_observed(db))
            if rows:
                break
        return rows

    def bindings(self) -> Iterator[tuple[Path, DatabaseBinding]]:
        """Yield each source whose binding can be read, and the binding."""
        for file, db in self._databases.items():
            binding = None
            with self._reading(file):
                binding = read_binding(db)
            if binding is not None:
                yield file, binding

    def are_older_than_bindings(self) -> bool:
        """Tell whether a version without bindings wrote every source that can be read, and there
        is such a source."""
        versions: list[int] = []
        for file, db in self._databases.items():
            with self._reading(file):
                versions.append(read_number(db, "user_version"))
        return bool(versions) and max(versions) < BINDING_SINCE

    def require_all_read(self) -> None:
        """Raise StoreUnusable where the system refused to let one of the files be read: another
        time it may be, and what only that file holds must not be given up before."""
        for file, error in self._unread.items():
            message = f"{display_path(file)}, which is needed to repair the decisions: {error}"
            raise StoreUnusable(
                message, f"rootsd up; or, to do without it: mv {file} {file}.unreadable"
            ) from error

    def close(self) -> None:
        """Close them all."""
        for db in self._databases.values():
            db.close()

    def _following(self, head: ChainHead) -> HistoryEvent | None:
        """The event after `head`, from the first source that still holds it."""
        for file, db in self._databases.items():
            # Each event is looked up by its number: a page that cannot be read hides its own only.
            with self._reading(file):
                for event in verify_chain(read_events(db, head.seq, 1), head):
                    event.decided_by()
                    event.outcome()
                    return event
        return None

    @contextmanager
    def _reading(self, file: Path) -> Iterator[None]:
        """What is damaged is passed over; what the system refuses is, too, and is remembered."""
        try:
            with translate_errors(file):
                yield
        except StoreDamaged:
            pass
        except StoreUnusable as error:
            self._unread[file] = error


REBUILT_SUFFIX = ".rebuilt"


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a rebuild saved: where the chain ends now, and where the damaged file lies, or None
    where there was none any more."""

    head: ChainHead
    damaged: Path | None


def check(db: Database) -> HistoryState:
    """What the history of `db` comes to, after every part of it was verified.

    Pages, references, layout, the chain, and that `record` is its fold. Raises StoreDamaged; what
    SQLite raises is left to `explained`.
    """
    if read_number(db, "application_id") != APPLICATION_ID:
        raise StoreDamaged("it is not a database of rootsd")
    pages = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    if pages != ["ok"]:
        raise StoreDamaged("; ".join(pages))
    if db.execute("PRAGMA foreign_key_check").fetchone():
        raise StoreDamaged("a record names an event that is not there")
    if layout(db) != layout_of(read_number(db, "user_version")):
        raise StoreDamaged("its tables are not those of its version")
    try:
        state = fold(verify_chain(read_events(db)))
        standing: dict[tuple[str, bytes], tuple[int, str | None]] = {}
        for subject, event in state.latest.items():
            event.outcome()
            standing[subject.kind.value, subject.key] = (event.seq, event.body)
        if read_fold(db) != standing:
            raise StoreDamaged("the records are not what the history comes to")
        if read_number(db, "user_version") >= BINDING_SINCE:
            read_binding(db)
    except (BadRecord, BrokenChain) as error:
        raise StoreDamaged(str(error)) from error
    return state


def chain_contains(db: Database, head: ChainHead) -> bool:
    """Whether the chain of `db` passes through `head`."""
    if head == CHAIN_START:
        return True
    return read_head_at(db, head.seq) == head


def rebuild(
    file: Path,
    sources: Sequence[Path],
    at: datetime,
    anchored: ChainHead | None = None,
    mark: AnchorRecord | None = None,
) -> RebuildResult:
    """Put a whole database in the place of `file`, with the longest chain that `file` and
    `sources`, in this order, still hold.

    The new database is bound to its own file before it takes the place of the old one, so no
    crash leaves it with the identity of the old file. `mark` is what the second anchor records.
    A crash at any point leaves either `file` as it was, or no `file` and the damaged one among
    the leftovers, or the new one.

    Raises StoreUnusable, DiskFull or NotPrivate: also if one of the files could not be read for a
    reason outside it, and the chain does not contain `anchored` without it.
    """
    rebuilt = file.with_name(file.name + REBUILT_SUFFIX)
    try:
        head = _write_rebuilt(rebuilt, [file, *sources], anchored, mark)
        journal_of(rebuilt).unlink(missing_ok=True)
        damaged = set_aside(file, at) if path_exists(file) else None
        # The old journal must be gone from here before the new database comes: it would be
        # played back into it.
        sync_path(file.parent)
        rebuilt.replace(file)
        sync_path(file.parent)
    except OSError as error:
        raise unusable_error(file, error) from error
    return RebuildResult(head, damaged)


def sync_database(file: Path) -> None:
    """Return when the database `file` and its journal, the names too, have reached the disk.

    Raises NotPrivate.
    """
    try:
        for path in (file, journal_of(file), file.parent):
            if path_exists(path):
                sync_path(path)
    except OSError as error:
        raise unusable_error(file, error) from error


def _write_rebuilt(
    rebuilt: Path, files: Sequence[Path], anchored: ChainHead | None, mark: AnchorRecord | None
) -> ChainHead:
    """Write the new database; where its head is now. Raises OSError, too."""
    for is_last in (False, True):
        for old in (rebuilt, journal_of(rebuilt)):
            old.unlink(missing_ok=True)
        ensure_private_file(rebuilt)  # so that it never has another mode
        with ExitStack() as stack:
            stack.enter_context(translate_errors(rebuilt))
            sources = stack.enter_context(closing(SalvageSources(files)))
            key, identity = _key_for(files[0], sources, mark), identify(rebuilt)
            db = stack.enter_context(closing(connect(rebuilt)))
            head = _fill(db, sources, key, identity)
            if anchored is not None and chain_contains(db, anchored):
                break
            # SQLite calls some read errors damage: nothing is given up before a second look.
            if is_last:
                sources.require_all_read()
    sync_path(rebuilt)
    return head


def _fill(
    db: Database, sources: SalvageSources, key: bytes | None, file: FileIdentity | None
) -> ChainHead:
    migrate(db, back_up=lambda: None)
    with transaction(db):
        write_events(db, sources.events())
        for row in sources.sightings():
            write_observed(db, *row)
        if key is not None:
            write_binding(db, DatabaseBinding(key, file))
    return check(db).head


def _key_for(file: Path, sources: SalvageSources, mark: AnchorRecord | None) -> bytes | None:
    """Return the key of the database that is made from `sources`, or None to leave it unbound.

    It is the key of the database before, so that the second anchor still belongs to it. It is a
    new one, which no anchor has, if that database was a copy.
    """
    # A rename keeps the identity of a file. So the damaged database can still show whether it was
    # a copy, also once it lies among the leftovers. A backup is a copy by its nature.
    found = sorted(sources.bindings(), key=lambda one: not one[0].name.startswith(file.name))
    for source, binding in found:
        is_backup = not source.name.startswith(file.name)
        if is_backup or binding.file is None or binding.file.is_same(identify(source)):
            return binding.key
        return new_key()
    if mark is not None:
        return mark.key
    return None if sources.are_older_than_bindings() else new_key()
