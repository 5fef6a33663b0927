"""Opens the decision database. Nothing in it is believed before it is verified.

A damaged database is rebuilt from what is left. A history that is whole, but not the one that was
last acknowledged, keeps only its denials: a decision that it lacks may have taken an approval
back. The two anchors and the binding show which history that is.
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
from rootsd.host.storage.anchor import Anchors, Mark
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
    """A verified database with its anchors.

    `note` says what this start repaired or took back, and `warning` what protection is missing;
    each is empty if there is nothing to say. `cause` says why approvals lapsed, at this start or
    an earlier one.
    """

    db: Database
    anchors: Anchors
    note: str
    cause: str
    warning: str


@dataclass(frozen=True, slots=True)
class _Verified:
    """A database whose parts agree with each other, and the identity of its file."""

    db: Database
    state: Fold
    file: FileIdentity | None


def open_database(folder: Path, outside: Path, at: datetime) -> Opened:
    """Open the database in `folder`: create, migrate, verify and, if necessary, rebuild it.

    The second anchor lies in the folder `outside`. Raises NewerStore (nothing was touched),
    NotPrivate, StoreUnusable, DiskFull, and Busy if another program has the database open.
    """
    file = folder / DATABASE_NAME
    refuse_newer(file)
    with ExitStack() as stack:
        anchors = Anchors.open(folder, outside)
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
            # First the anchor and then the binding: see `rootsd.host.storage.binding`.
            recovery.sync_database(file)
            binding = Binding(new_key(), found.file)
            anchors.second.write(Mark(head, binding.key))
            _bind(file, db, binding)
        _write_anchors(file, anchors, head)
        fill_reserve(db, file)
        stack.pop_all()
    cause = binding.cause if binding else ""
    return Opened(db, anchors, note, cause, _warning(anchors))


def _bind(file: Path, db: Database, binding: Binding) -> None:
    with explained(file), transaction(db):
        write_binding(db, binding)


def _write_anchors(file: Path, anchors: Anchors, head: Head) -> None:
    mark = anchors.mark
    if anchors.first.head == head and (mark is None or mark.head == head):
        return
    # A killed daemon may have committed what is not on the disk yet; once anchored it must be.
    recovery.sync_database(file)
    anchors.write(head)


def _warning(anchors: Anchors) -> str:
    if anchors.trouble is None:
        return ""
    return (
        "A restored state folder would not be detected, because the second record of the latest"
        f" decision cannot be written: {anchors.trouble.message}; try: {anchors.trouble.remedy}"
    )


def _open_or_rebuild(folder: Path, anchors: Anchors, at: datetime) -> tuple[_Verified, str]:
    file = folder / DATABASE_NAME
    anchored = anchors.first.head
    for _ in range(2):  # SQLite calls some read errors damage: a second look tells
        try:
            return _open_verified(folder, anchored, at), ""
        except StoreDamaged as error:
            damage = safe_label(str(error), limit=200)  # may quote the damaged bytes
    older = [] if is_there(file) else leftovers(file)
    salvage = recovery.rebuild(file, [*backup.backups(folder), *older], at, anchored, anchors.mark)
    kept = f"; the damaged file is kept as {shown(salvage.damaged)}" if salvage.damaged else ""
    note = f"{DATABASE_NAME} was damaged ({damage}) and has been rebuilt{kept}."
    try:
        found = _open_verified(folder, anchored, at)
    except StoreDamaged as error:
        remedy = f"move {folder} to another disk, then: rootsd up"
        raise StoreUnusable(f"{shown(file)} is damaged again: {error}", remedy) from error
    with suppress(NotPrivate):  # to tidy up is no reason not to start
        prune(file, found.db)
    return found, note


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


def _open_verified(folder: Path, anchored: Head | None, at: datetime) -> _Verified:
    file = folder / DATABASE_NAME
    if _is_lost(file, anchored):
        raise StoreDamaged("it is gone")
    # Before SQLite has it open: to close a second descriptor of it would drop SQLite's lock.
    ensure_private_file(file)
    identity = identify(file)
    with explained(file), ExitStack() as stack:
        db = connect(file)
        stack.callback(db.close)
        migrate(db, lambda: backup.take(db, folder, at))
        state = recovery.check(db)
        stack.pop_all()
    return _Verified(db, state, identity)


def _why_distrusted(
    folder: Path, found: _Verified, binding: Binding | None, anchors: Anchors
) -> str:
    """Return why the history is not the one that was last acknowledged, as a sentence.

    Return an empty text if it is that one, as far as the anchors and the binding know.
    """
    first, mark, head = anchors.first.head, anchors.mark, found.state.head
    if (head != START) if first is None else not recovery.contains(found.db, first):
        return (
            "The history of decisions is not the one that was last acknowledged, as after an older"
            " copy was put back."
        )
    second = anchors.second
    if second is None:
        return ""
    if binding is None:
        is_ours = mark is None or mark.head == head
    elif mark is None:
        return (
            f"{shown(second.file)} is missing. It records your latest decision, so without it an"
            f" older {shown(folder)} could have been put back."
        )
    else:
        is_ours = mark.key == binding.key and recovery.contains(found.db, mark.head)
    if not is_ours:
        return (
            f"{shown(folder)} was replaced, as after an older copy was put back: its decisions are"
            f" not the ones that {shown(second.file)} records as the latest."
        )
    if binding is not None and binding.file and not binding.file.is_same(found.file):
        return (
            f"{shown(folder / DATABASE_NAME)} is a copy and not the file that rootsd wrote, as"
            " after a backup was restored or the folder was moved to another disk."
        )
    return ""


def _distrust(
    file: Path, found: _Verified, cause: str, anchors: Anchors, at: datetime
) -> tuple[Head, Binding | None, str]:
    """Take every approval back, and bind the database anew.

    Return the head of the chain then, the binding, and a note for the user. The order of the
    writes is described in `rootsd.host.storage.binding`.
    """
    db = found.db
    events = distrust(found.state, at)
    binding = None if anchors.second is None else Binding(new_key(), found.file, cause)
    with explained(file):
        with transaction(db):
            write_events(db, events)
            if binding is not None:
                write_binding(db, binding)
        state = recovery.check(db)
    recovery.sync_database(file)
    anchors.first.write(state.head)
    if anchors.second is not None and binding is not None:
        anchors.second.write(Mark(state.head, binding.key))
    note = f"{cause} {_lapsed(Counter(event.subject.kind for event in events))}"
    return state.head, binding, note


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
