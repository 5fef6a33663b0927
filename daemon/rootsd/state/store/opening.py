"""Open the database; rebuild it if it is damaged, and lapse approvals if it was restored.

A start asks two questions about the database:

1. Is it undamaged? `rootsd.state.store.recovery` verifies every part. A damaged database is
   rebuilt from what is left of it and from the backups.
2. Is it the current one? An undamaged history may still be an older one that was restored. The two
   anchors and the binding show that (`rootsd.state.store.anchors`). Such a history keeps its
   denials and loses its approvals, because a decision that it lacks may have taken an approval
   back.

The start then writes the anchors and fills the reserve for a full disk. `OpenedDatabase.note`
tells the user what the start repaired or took back.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from rootsd.core.history import (
    CHAIN_START,
    ChainHead,
    HistoryState,
    SubjectKind,
    lapse_all_approvals,
)
from rootsd.core.labels import safe_label
from rootsd.files.private_files import (
    NotPrivate,
    display_path,
    ensure_private_file,
    path_exists,
    unusable_error,
)
from rootsd.state.store import backup, recovery
from rootsd.state.store.anchors import (
    HEAD_NAME,
    AnchorPair,
    DatabaseBinding,
    FileIdentity,
    identify,
    new_key,
    read_binding,
    write_binding,
)
from rootsd.state.store.database import (
    Database,
    StoreDamaged,
    StoreUnusable,
    connect,
    transaction,
    translate_errors,
)
from rootsd.state.store.recovery import damaged_files, prune_damaged_files
from rootsd.state.store.rows import write_events
from rootsd.state.store.schema import fill_reserve, migrate, refuse_newer

DATABASE_NAME = "decisions.db"


class OpenedDatabase(Struct, frozen=True):
    """A verified database with its anchors.

    `note` says what this start repaired or took back, and `warning` what protection is missing;
    each is empty if there is nothing to say. `cause` says why approvals lapsed, at this start or
    an earlier one.
    """

    db: Database
    anchors: AnchorPair
    note: str
    cause: str
    warning: str


class _Verified(Struct, frozen=True):
    """A database whose parts agree with each other, and the identity of its file."""

    db: Database
    state: HistoryState
    file: FileIdentity | None


def open_database(folder: Path, outside: Path, at: datetime) -> OpenedDatabase:
    """Open the database in `folder`: create, migrate, verify and, if necessary, rebuild it.

    The second anchor lies in the folder `outside`. Raises NewerStore (nothing was touched),
    NotPrivate, StoreUnusable, DiskFull, and Busy if another program has the database open.
    """
    file = folder / DATABASE_NAME
    refuse_newer(file)
    with ExitStack() as stack:
        anchors = AnchorPair.open(folder, outside)
        stack.callback(anchors.close)
        found, note = _open_or_rebuild(folder, anchors, at)
        db = found.db
        stack.callback(db.close)
        binding = read_binding(db)
        if anchors.trouble is not None and binding is not None:
            raise anchors.trouble
        head = found.state.head
        if cause := _why_distrusted(folder, found, binding, anchors):
            head, binding, lost = _distrust(file, found, cause, anchors, at)
            note = f"{note} {lost}".strip()
        elif binding is None and anchors.second is not None:
            # First the anchor and then the binding: see `rootsd.state.store.anchors`.
            recovery.sync_database(file)
            binding = DatabaseBinding(new_key(), found.file)
            anchors.write_second(head, binding.key)
            _bind(file, db, binding)
        _write_anchors(file, anchors, head)
        fill_reserve(db, file)
        stack.pop_all()
    cause = binding.cause if binding else ""
    return OpenedDatabase(db, anchors, note, cause, _warning(anchors))


def _bind(file: Path, db: Database, binding: DatabaseBinding) -> None:
    with translate_errors(file), transaction(db):
        write_binding(db, binding)


def _write_anchors(file: Path, anchors: AnchorPair, head: ChainHead) -> None:
    if anchors.hold(head):
        return
    # A killed daemon may have committed an event that is not on the disk yet. It must be on the
    # disk before an anchor records it.
    recovery.sync_database(file)
    anchors.write(head)


def _warning(anchors: AnchorPair) -> str:
    if anchors.trouble is None:
        return ""
    return (
        "A restored state folder would not be detected, because the second record of the latest"
        f" decision cannot be written: {anchors.trouble.message}; try: {anchors.trouble.remedy}"
    )


def _open_or_rebuild(folder: Path, anchors: AnchorPair, at: datetime) -> tuple[_Verified, str]:
    file = folder / DATABASE_NAME
    anchored = anchors.first.head
    for _ in range(2):  # SQLite reports some read errors as damage, so try twice
        try:
            return _open_verified(folder, anchored, at), ""
        except StoreDamaged as error:
            damage = safe_label(str(error), limit=200)  # may quote the damaged bytes
    older = [] if path_exists(file) else damaged_files(file)
    salvage = recovery.rebuild(
        file, [*backup.list_backups(folder), *older], at, anchored, anchors.record
    )
    kept = (
        f"; the damaged file is kept as {display_path(salvage.damaged)}" if salvage.damaged else ""
    )
    note = f"{DATABASE_NAME} was damaged ({damage}) and has been rebuilt{kept}."
    try:
        found = _open_verified(folder, anchored, at)
    except StoreDamaged as error:
        remedy = f"move {folder} to another disk, then: rootsd up"
        raise StoreUnusable(f"{display_path(file)} is damaged again: {error}", remedy) from error
    with suppress(NotPrivate):  # a failed cleanup must not stop the start
        prune_damaged_files(file, found.db)
    return found, note


def _is_lost(file: Path, anchored: ChainHead | None) -> bool:
    """Return whether the database is missing or empty although there was one."""
    try:
        if file.lstat().st_size > 0:
            return False
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable_error(file, error) from error
    decided = anchored is not None and anchored != CHAIN_START
    return decided or bool(backup.list_backups(file.parent) or damaged_files(file))


def _open_verified(folder: Path, anchored: ChainHead | None, at: datetime) -> _Verified:
    file = folder / DATABASE_NAME
    if _is_lost(file, anchored):
        raise StoreDamaged("it is gone")
    # Do this before SQLite opens the file, because closing a second descriptor would drop SQLite's
    # lock.
    ensure_private_file(file)
    identity = identify(file)
    with translate_errors(file), ExitStack() as stack:
        db = connect(file)
        stack.callback(db.close)
        migrate(db, lambda: backup.make_backup(db, folder, at, backup.UPGRADE_PREFIX))
        state = recovery.check(db)
        stack.pop_all()
    return _Verified(db, state, identity)


def _why_distrusted(
    folder: Path, found: _Verified, binding: DatabaseBinding | None, anchors: AnchorPair
) -> str:
    """Return a sentence that says why the history is not the latest one.

    Return an empty text if neither the anchors nor the binding contradict it.
    """
    first, record, head = anchors.first.head, anchors.record, found.state.head
    if (head != CHAIN_START) if first is None else not recovery.chain_contains(found.db, first):
        return (
            "The history of decisions is not the one that was last acknowledged, as after an older"
            " copy was put back."
        )
    second = anchors.second
    if second is None:
        return ""
    if binding is None:
        is_ours = record is None or record.head == head
    elif record is None:
        return (
            f"{display_path(second.file)} is missing. It records your latest decision, so without"
            f" it an older {display_path(folder)} could have been put back."
        )
    else:
        is_ours = record.key == binding.key and recovery.chain_contains(found.db, record.head)
    if not is_ours:
        return (
            f"{display_path(folder)} was replaced, as after an older copy was put back: its"
            f" decisions are not the ones that {display_path(second.file)} records as the latest."
        )
    if binding is not None and binding.file and not binding.file.is_same(found.file):
        return (
            f"{display_path(folder / DATABASE_NAME)} is a copy and not the file that rootsd wrote,"
            " as after a backup was restored or the folder was moved to another disk."
        )
    if record is not None and anchors.first.was_overwritten(record.first, head):
        return (
            f"Another program than rootsd changed {display_path(folder / HEAD_NAME)}, as when a"
            " backup is copied over your files."
        )
    return ""


def _distrust(
    file: Path, found: _Verified, cause: str, anchors: AnchorPair, at: datetime
) -> tuple[ChainHead, DatabaseBinding | None, str]:
    """Take every approval back, and bind the database again.

    Return the new head of the chain, the binding, and a note for the user. The module
    `rootsd.state.store.anchors` describes the order of the writes.
    """
    db = found.db
    events = lapse_all_approvals(found.state, at)
    binding = None if anchors.second is None else DatabaseBinding(new_key(), found.file, cause)
    with translate_errors(file):
        with transaction(db):
            write_events(db, events)
            if binding is not None:
                write_binding(db, binding)
        state = recovery.check(db)
    recovery.sync_database(file)
    anchors.first.write(state.head)
    if binding is not None:
        anchors.write_second(state.head, binding.key)
    note = f"{cause} {_lapsed(Counter(event.subject.kind for event in events))}"
    return state.head, binding, note


def _lapsed(count: Counter[SubjectKind]) -> str:
    """Return a sentence that says what was taken back and which command restores it."""
    approvals, rules = count[SubjectKind.PROJECT], count[SubjectKind.RULE]
    guard = (
        " The guard is the usual one again (rootsd guard)." if count[SubjectKind.SETTING] else ""
    )
    if not approvals and not rules:
        return f"It has no approvals. Decide again about what it lacks: rootsd pending.{guard}"
    return (
        f"{_count_of(approvals, 'approval')} and {_count_of(rules, 'approve rule')} lapsed:"
        f" rootsd approve --lapsed --all restores them, with --dry-run it shows them.{guard}"
    )


def _count_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
