"""Read and write the rows of the decision database.

There are three tables. `event` holds the chain of events, from which all decisions follow.
`record` holds the last event of each subject, and is written in the same transaction. `sighting`
holds the observed states, which a scan can replace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from rootsd.core.changes import ChangeVerb
from rootsd.core.encoding import decode, encode
from rootsd.core.history import (
    CHAIN_START,
    ChainHead,
    EventSubject,
    HistoryEvent,
    SubjectKind,
    rule_number,
)
from rootsd.core.model import ObservedState
from rootsd.core.parsing import parse_json
from rootsd.core.record import BadRecord
from rootsd.state.store.database import Database

_NAME = re.compile(r'"name":("(?:[^"\\]|\\.)*")')
_VERBS = {verb.value: verb for verb in ChangeVerb}
_KINDS = {kind.value: kind for kind in SubjectKind}


def read_head(db: Database) -> ChainHead:
    """Return the end of the chain."""
    row = db.execute("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return ChainHead(*row) if row else CHAIN_START


def read_names(db: Database) -> dict[str, bytes]:
    """Return each name that a project ever had, with the path of the last project that had it.

    The text of an event is canonical JSON (`rootsd.core.encoding`). A quotation mark inside a
    value is escaped, so the key can be found without parsing the whole text.
    """
    names: dict[str, bytes] = {}
    rows = db.execute(
        "SELECT key, body FROM event WHERE kind = ? AND body LIKE '%\"name\":%' ORDER BY seq",
        (SubjectKind.PROJECT.value,),
    )
    for key, body in rows:
        if isinstance(body, str) and (found := _NAME.search(body)) is not None:
            names[parse_json(found[1])] = key
    return names


def read_head_at(db: Database, seq: int) -> ChainHead | None:
    """Return the head of the chain when it had `seq` events, or None if it has no such event."""
    row = db.execute("SELECT seq, hash FROM event WHERE seq = ?", (seq,)).fetchone()
    return ChainHead(*row) if row else None


def read_events(db: Database, after: int = 0, limit: int | None = None) -> Iterator[HistoryEvent]:
    """Yield the events after number `after`, in order, at most `limit`.

    Raises BadRecord for a row with a value of a wrong type. Does not verify the chain.
    """
    query = (
        "SELECT seq, at, actor, verb, kind, key, body, prev, hash FROM event"
        " WHERE seq > ? ORDER BY seq LIMIT ?"
    )
    return map(_event, db.execute(query, (after, -1 if limit is None else limit)))


def write_events(db: Database, events: Iterable[HistoryEvent]) -> None:
    """Append `events`, and update `record`."""
    for event in events:
        subject = (event.subject.kind.value, event.subject.key)
        row = (event.seq, event.at_ns, event.actor, event.verb.value, *subject)
        db.execute(
            "INSERT INTO event(seq, at, actor, verb, kind, key, body, prev, hash)"
            " VALUES(?,?,?,?,?,?,?,?,?)",
            (*row, event.body, event.prev, event.hash),
        )
        if event.body is None:
            db.execute("DELETE FROM record WHERE kind = ? AND key = ?", subject)
        else:
            db.execute(
                "INSERT INTO record(kind, key, body, seq) VALUES(?,?,?,?) ON CONFLICT(kind, key)"
                " DO UPDATE SET body = excluded.body, seq = excluded.seq",
                (*subject, event.body, event.seq),
            )


def read_records(db: Database) -> Iterator[HistoryEvent]:
    """Yield the events that `record` names as the last ones of their subjects.

    The rows of `record` are not read, because `rootsd.state.store.recovery.check` has verified
    that they agree with these events.
    """
    query = (
        "SELECT seq, at, actor, verb, event.kind, event.key, event.body, prev, hash"
        " FROM record JOIN event USING (seq) ORDER BY seq"
    )
    return map(_event, db.execute(query))


def read_fold(db: Database) -> dict[tuple[str, bytes], tuple[int, str]]:
    """Return sequence number and body of each row of `record`, by kind and key of the subject."""
    rows = db.execute("SELECT kind, key, seq, body FROM record")
    return {(kind, key): (seq, body) for kind, key, seq, body in rows}


def read_next_rule(db: Database) -> int:
    """Return the number of the next rule, which no rule ever had, not even a removed one."""
    keys = db.execute("SELECT key FROM event WHERE kind = 'rule'")
    numbers = (rule_number(EventSubject(SubjectKind.RULE, key)) for (key,) in keys)
    return 1 + max(numbers, default=0)


def read_observed(db: Database) -> Iterator[tuple[bytes, str, ObservedState]]:
    """Yield path, project id and observed state of every undamaged row.

    Damaged rows are skipped, because no decision depends on them, and the next scan writes them
    again.
    """
    # Read the text as blobs. Otherwise one damaged text would raise an error and end the query.
    query = "SELECT path, CAST(id AS BLOB), CAST(body AS BLOB), digest FROM sighting"
    for path, project_id, body, digest in db.execute(query):
        try:
            if _observed_digest(path, project_id, body) == digest:
                yield path, project_id.decode(), decode(ObservedState, body.decode())
        except (BadRecord, TypeError):
            continue


def write_observed(db: Database, path: bytes, project_id: str, observed: ObservedState) -> None:
    """Store the observed state of `path`."""
    body = encode(observed)
    digest = _observed_digest(path, project_id.encode(), body.encode())
    db.execute(
        "INSERT INTO sighting(path, id, body, digest) VALUES(?,?,?,?) ON CONFLICT(path)"
        " DO UPDATE SET id = excluded.id, body = excluded.body, digest = excluded.digest",
        (path, project_id, body, digest),
    )


def drop_observed(db: Database, path: bytes) -> None:
    """Delete the observed state of `path`."""
    db.execute("DELETE FROM sighting WHERE path = ?", (path,))


def _observed_digest(path: bytes, project_id: bytes, body: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((path, project_id, body))).digest()


def _event(row: tuple[object, ...]) -> HistoryEvent:
    match row:  # SQLite returns what the row holds, whatever type the column has
        case (
            int(seq), int(at_ns), str(actor), str(verb), str(kind), bytes(key),
            str() | None as body, bytes(prev), bytes(digest),
        ):  # fmt: skip
            pass
        case _:
            raise BadRecord(f"event {row[0]} holds a value of a wrong type")
    if verb not in _VERBS or kind not in _KINDS:
        raise BadRecord(f"event {seq} has an unknown verb or kind of subject")
    subject = EventSubject(_KINDS[kind], key)
    return HistoryEvent(seq, at_ns, actor, _VERBS[verb], subject, body, prev, digest)
