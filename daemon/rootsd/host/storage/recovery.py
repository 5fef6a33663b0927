"""Is the decision database whole, and what can be saved where it is not.

The chain of events is the truth. It is rebuilt, event by event, from whatever still holds them:
the damaged file first, then the backups. The damaged file is kept beside the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rootsd.core.fields import BadRecord
from rootsd.core.history import (
    START,
    BrokenChain,
    Fold,
    Head,
    fold,
    verified,
)
from rootsd.host.private import ensure_private_file, is_there, sync_path, unusable
from rootsd.host.storage.anchor import Mark
from rootsd.host.storage.binding import (
    Binding,
    FileIdentity,
    identify,
    new_key,
    read_binding,
    write_binding,
)
from rootsd.host.storage.database import (
    Database,
    StoreDamaged,
    connect,
    explained,
    journal_of,
    read_number,
    transaction,
)
from rootsd.host.storage.leftovers import put_aside
from rootsd.host.storage.migrate import (
    APPLICATION_ID,
    BINDING_SINCE,
    layout,
    layout_of,
    migrate,
)
from rootsd.host.storage.rows import (
    read_events,
    read_fold,
    read_head_at,
    write_events,
    write_sighting,
)
from rootsd.host.storage.salvage import Sources

REBUILT_SUFFIX = ".rebuilt"


@dataclass(frozen=True, slots=True)
class Salvage:
    """What a rebuild saved: where the chain ends now, and where the damaged file lies, or None
    where there was none any more."""

    head: Head
    damaged: Path | None


def check(db: Database) -> Fold:
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
        state = fold(verified(read_events(db)))
        standing: dict[tuple[str, bytes], tuple[int, str | None]] = {}
        for subject, event in state.standing.items():
            event.outcome()
            standing[subject.kind.value, subject.key] = (event.seq, event.body)
        if read_fold(db) != standing:
            raise StoreDamaged("the records are not what the history comes to")
        if read_number(db, "user_version") >= BINDING_SINCE:
            read_binding(db)
    except (BadRecord, BrokenChain) as error:
        raise StoreDamaged(str(error)) from error
    return state


def contains(db: Database, head: Head) -> bool:
    """Whether the chain of `db` passes through `head`."""
    if head == START:
        return True
    return read_head_at(db, head.seq) == head


def rebuild(
    file: Path,
    sources: Sequence[Path],
    at: datetime,
    anchored: Head | None = None,
    mark: Mark | None = None,
) -> Salvage:
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
        damaged = put_aside(file, at) if is_there(file) else None
        # The old journal must be gone from here before the new database comes: it would be
        # played back into it.
        sync_path(file.parent)
        rebuilt.replace(file)
        sync_path(file.parent)
    except OSError as error:
        raise unusable(file, error) from error
    return Salvage(head, damaged)


def sync_database(file: Path) -> None:
    """Return when the database `file` and its journal, the names too, have reached the disk.

    Raises NotPrivate.
    """
    try:
        for path in (file, journal_of(file), file.parent):
            if is_there(path):
                sync_path(path)
    except OSError as error:
        raise unusable(file, error) from error


def _write_rebuilt(
    rebuilt: Path, files: Sequence[Path], anchored: Head | None, mark: Mark | None
) -> Head:
    """Write the new database; where its head is now. Raises OSError, too."""
    for is_last in (False, True):
        for old in (rebuilt, journal_of(rebuilt)):
            old.unlink(missing_ok=True)
        ensure_private_file(rebuilt)  # so that it never has another mode
        with ExitStack() as stack:
            stack.enter_context(explained(rebuilt))
            sources = stack.enter_context(closing(Sources(files)))
            key, identity = _key_for(files[0], sources, mark), identify(rebuilt)
            db = stack.enter_context(closing(connect(rebuilt)))
            head = _fill(db, sources, key, identity)
            if anchored is not None and contains(db, anchored):
                break
            # SQLite calls some read errors damage: nothing is given up before a second look.
            if is_last:
                sources.require_all_read()
    sync_path(rebuilt)
    return head


def _fill(db: Database, sources: Sources, key: bytes | None, file: FileIdentity | None) -> Head:
    migrate(db, back_up=lambda: None)
    with transaction(db):
        write_events(db, sources.events())
        for row in sources.sightings():
            write_sighting(db, *row)
        if key is not None:
            write_binding(db, Binding(key, file))
    return check(db).head


def _key_for(file: Path, sources: Sources, mark: Mark | None) -> bytes | None:
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
