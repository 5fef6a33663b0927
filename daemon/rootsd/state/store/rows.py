"""Read and write the rows of the decision database.

`event` is the truth; `record` is its fold, written in the same transaction; `sighting` is what the
disk showed, which a scan can find again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from rootsd.core.changes import ChangeVerb
from rootsd.core.encoding import BadRecord, decode_observed, encode_observed
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
from rootsd.state.store.database import Database

_NAME = re.compile(r'"name":("(?:[^"\\]|\\.)*")')
_VERBS = {verb.value: verb for verb in ChangeVerb}
_KINDS = {kind.value: kind for kind in SubjectKind}


def read_head(db: Database) -> ChainHead:
    """Where the chain ends."""
    row = db.execute("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return ChainHead(*row) if row else CHAIN_START


def read_names(db: Database) -> dict[str, bytes]:
    """Return each name that a project ever had, with the path of the last project that had it.

    The text of an event is canonical JSON (`rootsd.core.encoding`). So a quotation mark inside a
    value is escaped, and the key can be found without parsing the whole.
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
    """Where the chain was when it had `seq` events; None where it has no such event."""
    row = db.execute("SELECT seq, hash FROM event WHERE seq = ?", (seq,)).fetchone()
    return ChainHead(*row) if row else None


def read_events(db: Database, after: int = 0, limit: int | None = None) -> Iterator[HistoryEvent]:
    """The events after number `after`, in order, at most `limit`. Raises BadRecord for a row
    whose values are not of their columns' types; does not verify the chain."""
    query = (
        "SELECT seq, at, actor, verb, kind, key, body, prev, hash FROM event"
        " WHERE seq > ? ORDER BY seq LIMIT ?"
    )
    return map(_event, db.execute(query, (after, -1 if limit is None else limit)))


def write_events(db: Database, events: Iterable[HistoryEvent]) -> None:
    """Append `events`, and bring `record` up to date with them."""
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
    """The events that `record` says are the last ones of their subjects. An event stands for its
    record only where the two agree, which `rootsd.state.store.recovery.check` has made sure of.
    """
    query = (
        "SELECT seq, at, actor, verb, event.kind, event.key, event.body, prev, hash"
        " FROM record JOIN event USING (seq) ORDER BY seq"
    )
    return map(_event, db.execute(query))


def read_fold(db: Database) -> dict[tuple[str, bytes], tuple[int, str]]:
    """The `record` table as it stands: sequence number and body by kind and key of subject."""
    rows = db.execute("SELECT kind, key, seq, body FROM record")
    return {(kind, key): (seq, body) for kind, key, seq, body in rows}


def read_next_rule(db: Database) -> int:
    """The first rule number that was never used, not even by a rule that is removed."""
    keys = db.execute("SELECT key FROM event WHERE kind = 'rule'")
    numbers = (rule_number(EventSubject(SubjectKind.RULE, key)) for (key,) in keys)
    return 1 + max(numbers, default=0)


def read_observed(db: Database) -> Iterator[tuple[bytes, str, ObservedState]]:
    """Path, project id and sighting of every row that is as it was written. A damaged row is left
    out: nothing rests on it, and the next scan writes it anew."""
    # As blobs: to make text of a damaged row would fail, and with it the rows after it.
    query = "SELECT path, CAST(id AS BLOB), CAST(body AS BLOB), digest FROM sighting"
    for path, project_id, body, digest in db.execute(query):
        try:
            if _observed_digest(path, project_id, body) == digest:
                yield path, project_id.decode(), decode_observed(body.decode())
        except (BadRecord, TypeError):
            continue


def write_observed(db: Database, path: bytes, project_id: str, observed: ObservedState) -> None:
    """Keep what was last seen at `path`."""
    body = encode_observed(observed)
    digest = _observed_digest(path, project_id.encode(), body.encode())
    db.execute(
        "INSERT INTO sighting(path, id, body, digest) VALUES(?,?,?,?) ON CONFLICT(path)"
        " DO UPDATE SET id = excluded.id, body = excluded.body, digest = excluded.digest",
        (path, project_id, body, digest),
    )


def drop_observed(db: Database, path: bytes) -> None:
    """Keep nothing about `path`."""
    db.execute("DELETE FROM sighting WHERE path = ?", (path,))


def _observed_digest(path: bytes, project_id: bytes, body: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((path, project_id, body))).digest()


def _event(row: tuple[object, ...]) -> HistoryEvent:
    match row:  # SQLite hands out what the row holds, whatever the column was declared as
        case (
            int(seq), int(at_ns), str(actor), str(verb), str(kind), bytes(key),
            str() | None as body, bytes(prev), bytes(digest),
        ):  # fmt: skip
            pass
        case _:
            raise BadRecord(f"event {row[0]} holds a value of a wrong type")
    if verb not in _VERBS or kind not in _KINDS:
        raise BadRecord(f"event {seq} is of an unknown verb or about nothing that is known")
    subject = EventSubject(_KINDS[kind], key)
    return HistoryEvent(seq, at_ns, actor, _VERBS[verb], subject, body, prev, digest)
