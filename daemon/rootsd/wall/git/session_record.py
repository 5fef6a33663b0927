"""Record what a session behind the wall did, for `rootsd sessions --report`.

While a session runs, its warden and the relay for git append to a journal in the wall's folder.
At the end, the journal and the changed files become one record. Records lie beside the folders of
a program's walls, in `reports`. Only the newest records of all programs are kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.labels import first_of, home_label, safe_label
from rootsd.core.record import BadRecord, Text, from_line, to_line
from rootsd.wall.git.file_changes import ChangedRoot
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.wall_folders import CHANGES, names_in, program_of

_JOURNAL, _REPORTS = b"/journal", b"/reports/"
_MAX_JOURNAL_BYTES = 4 << 20
_MAX_RECORDS, _MAX_RECORDED_BYTES = 200, 16 << 20
_MAX_RUNS, _MAX_AT_ONCE = 100, 200
_MAX_ROOTS_TOLD, _MAX_NAMED = 2, 4


class EventKind(Enum):
    """What happened in a session."""

    BEGAN = "began"
    OPENED = "opened"
    OPENED_READ_ONLY = "opened read-only"
    CLOSED = "closed"
    USED = "used your credentials at"
    ALLOWED = "answered yes"
    FORBIDDEN = "answered no"
    REFUSED = "refused to git"


_OPENED = {EventKind.OPENED: Access.READ_WRITE, EventKind.OPENED_READ_ONLY: Access.READ}


class SessionEvent(NamedTuple):
    """Something that happened, at a time in seconds. `what` is a root, a host, or a question."""

    at: float
    kind: EventKind
    what: Text


class JournalEntry(NamedTuple):
    """A line of a journal. `root` is one that went away before the end of the session."""

    event: SessionEvent | None = None
    root: ChangedRoot | None = None


class SessionRecord(NamedTuple):
    """What one session did. `pid` is its `rootsd confine`; times are in seconds.

    `runs` are the files that it made or changed and that run by themselves outside.
    """

    id: str
    program: str
    pid: int
    began: float
    ended: float
    end: SessionEnd
    events: tuple[SessionEvent, ...] = ()
    roots: tuple[ChangedRoot, ...] = ()
    runs: tuple[Text, ...] = ()

    def what(self, *kinds: EventKind) -> list[bytes]:
        """Return what the events of these kinds are about, each once."""
        return list(dict.fromkeys(each.what for each in self.events if each.kind in kinds))

    def lines(self) -> list[str]:
        """Return at most five sentences for the end of the session; none if it did nothing."""
        from rootsd.places.runtime_dir import home_folder  # noqa: PLC0415 - no start

        roots = [each for each in self.roots if each.total or each.ignored]
        home = os.path.realpath(home_folder())
        found = [
            f"files in {home_label(each.root, home)}: {describe_changes(each)}" for each in roots
        ]
        if len(found) > _MAX_ROOTS_TOLD:
            more = len(found) - _MAX_ROOTS_TOLD
            found[_MAX_ROOTS_TOLD:] = [f"files in {more} more root{'s' * (more > 1)}"]
        if used := self.what(EventKind.USED):
            found.append(f"git used your credentials at {_named(used)}")
        if found:
            found.append(f"the whole report: rootsd sessions --report {self.id}")
        return found


def describe_changes(root: ChangedRoot) -> str:
    """Return how many files were created, changed, and deleted, as `2 created, 1 deleted`."""
    counts = (("created", root.created), ("changed", root.changed), ("deleted", root.deleted))
    parts = [f"{count:,} {word}" for word, count in counts if count]
    if root.ignored:
        parts.append(f"{root.ignored:,} that git ignores")
    return ", ".join(parts)


def append(folder: bytes, *entries: JournalEntry) -> None:
    """Append to the journal of a session. `folder` is that of its wall."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with suppress(OSError):
        os.makedirs(folder + CHANGES, 0o700, exist_ok=True)
        with open(os.open(folder + CHANGES + _JOURNAL, flags, 0o600), "ab") as file:
            if file.tell() < _MAX_JOURNAL_BYTES:
                file.write(b"".join(map(to_line, entries)))


def note(folder: bytes, kind: EventKind, *subjects: bytes) -> None:
    """Append events that happen now."""
    now = time.time()
    few = islice(subjects, _MAX_AT_ONCE)
    append(folder, *(JournalEntry(SessionEvent(now, kind, each)) for each in few))


def begin_journal(folder: bytes, owner: int) -> None:
    """Begin the journal of a session, whose programs process `owner` has started."""
    with suppress(OSError):
        os.unlink(folder + CHANGES + _JOURNAL)  # of a session that was killed
    note(folder, EventKind.BEGAN, b"%d" % owner)


def note_roots(
    folder: bytes, before: Mapping[bytes, Access], after: Mapping[bytes, Access]
) -> None:
    """Note which roots programs see now, and no longer."""
    new = {path: access for path, access in after.items() if before.get(path) is not access}
    for kind, access in _OPENED.items():
        note(folder, kind, *(path for path in new if new[path] is access))
    note(folder, EventKind.CLOSED, *(path for path in before if path not in after))


def _end_journal(folder: bytes) -> list[JournalEntry]:
    """Return the entries of a journal, and remove it."""
    found = []
    with suppress(OSError):
        with open(folder + CHANGES + _JOURNAL, "rb") as file:
            lines = file.readlines()
        os.unlink(folder + CHANGES + _JOURNAL)
        for line in lines:
            with suppress(BadRecord):
                found.append(from_line(JournalEntry, line))
    return found


def conclude_record(
    folder: bytes,
    roots: Iterable[ChangedRoot],
    runs: Iterable[bytes],
    end: SessionEnd,
) -> list[str]:
    """Make the record of a session, and keep it. Return `SessionRecord.lines`. Raises OSError."""
    journal = _end_journal(folder)
    events = [each.event for each in journal if each.event is not None]
    early = (each.root for each in journal if each.root is not None)
    first = next((each for each in events if each.kind is EventKind.BEGAN), None)
    if first is None:
        return []
    record = SessionRecord(
        os.urandom(4).hex(),
        program_of(folder),
        int(first.what),
        first.at,
        time.time(),
        end,
        tuple(each for each in events if each is not first),
        (*early, *roots),
        tuple(islice(runs, _MAX_RUNS)),
    )
    _save(folder, record)
    return record.lines()


def _save(folder: bytes, record: SessionRecord) -> None:
    """Keep a record, and forget the oldest ones beyond the limits. Raises OSError."""
    reports = os.path.dirname(folder) + _REPORTS
    os.makedirs(reports, 0o700, exist_ok=True)
    replace_record(reports + b"%d.json" % int(record.ended * 1e9), record)
    left = _MAX_RECORDED_BYTES
    for count, file in enumerate(_newest_files(os.path.dirname(os.path.dirname(folder)))):
        with suppress(OSError):
            left -= os.stat(file).st_size
            if count >= _MAX_RECORDS or left < 0:
                os.unlink(file)


def records(walls: bytes) -> Iterator[SessionRecord]:
    """Yield the records of all programs, newest first."""
    for file in _newest_files(walls):
        if (record := read_record(SessionRecord, file)) is not None:
            yield record


def _newest_files(walls: bytes) -> list[bytes]:
    found = [
        (int(name[:-5]), walls + b"/" + program + _REPORTS + name)
        for program in names_in(walls)
        for name in names_in(walls + b"/" + program + _REPORTS)
        if name.endswith(b".json") and name[:-5].isdigit()
    ]
    return [file for _, file in sorted(found, reverse=True)]


def _named(subjects: Sequence[bytes]) -> str:
    return first_of([safe_label(each) for each in subjects], _MAX_NAMED)
