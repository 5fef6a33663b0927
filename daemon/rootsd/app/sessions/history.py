"""Reads what `rootsd.app.sessions.log` wrote: which sessions there were, what each was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rootsd.app.control.items import rfc3339
from rootsd.app.sessions.registry import scope_words
from rootsd.core.model import Access, ProjectKind, Published, Root
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.paths import bytes_of
from rootsd.core.scope import EVERYTHING, Extent, Scope, Start, Uris, narrow
from rootsd.wire.sessions import GivenSet, SessionItem, ToldServer

_MOST_NAMES = 100
_LOST_WITH_THE_DAEMON = "the daemon ended"

Json = dict[str, Any]


def history(read: Callable[[], Iterable[bytes]], last: int) -> list[SessionItem]:
    """The `last` sessions that began, in that order; `read` gives all lines, and is called twice:
    of sessions that are not asked for nothing is kept."""
    began = dict.fromkeys(line["session"] for line in _parsed(read()) if "opened" in line)
    reader = _Reader(frozenset(list(began)[-last:] if last > 0 else ()))
    for line in _parsed(read()):
        reader.take(line)
    return [record.item() for record in reader.records.values()]


def _parsed(lines: Iterable[bytes]) -> Iterator[Json]:
    """The lines that are whole: a daemon may be killed in the middle of one."""
    for line in lines:
        try:
            value = parse_json(line)
        except Unparsable:
            continue
        match value:
            case {"at": str(), "session": str()} | {"at": str(), "daemon": _}:
                yield value
            case {"at": str(), "set": int(), "gained": list(), "lost": list()}:
                yield value
            case _:
                pass


@dataclass(slots=True)
class _Change:
    """What became of the names between two moments; none is in two of these."""

    fresh: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    def then(self, later: _Change) -> None:
        """Both changes as one."""
        self.changed |= (later.fresh & self.lost) | (later.changed - self.fresh)
        self.fresh = (self.fresh | (later.fresh - self.lost)) - later.lost
        self.lost = (self.lost - later.fresh) | (later.lost - self._came_before(later))
        self.changed -= later.lost

    def _came_before(self, later: _Change) -> set[str]:
        return later.lost & self.fresh


@dataclass(slots=True)
class _Record:
    """One session in the making. `scoped` is what it was given last, where it has a scope or had
    another one."""

    id: str
    pid: int
    client: str | None
    scope: Scope
    since: datetime
    until: datetime | None = None
    end: str | None = None
    given: list[GivenSet] = field(default_factory=list)
    changes: int = 0
    scoped: dict[str, Root] = field(default_factory=dict)
    has_refocused: bool = False
    told: ToldServer | None = None

    def item(self) -> SessionItem:
        return SessionItem(
            id=self.id,
            client=self.client,
            pid=self.pid,
            scope=scope_words(self.scope),
            since=rfc3339(self.since),
            until=rfc3339(self.until) if self.until else None,
            end=self.end,
            given=self.given,
            told=self.told,
        )


class _Reader:
    def __init__(self, wanted: frozenset[str]) -> None:
        self.records: dict[str, _Record] = {}
        self._wanted = wanted
        self._open: dict[str, _Record] = {}
        self._roots: dict[str, Root] = {}
        self._changes: list[_Change] = []

    def take(self, line: Json) -> None:
        at = datetime.fromisoformat(line["at"])
        match line:
            case {"daemon": _}:
                self._daemon_began(at)
            case {"set": _}:
                self._take_set(line)
            case {"session": id_} if id_ not in self._wanted:
                pass
            case {"session": id_, "opened": about}:
                self._take_opened(id_, about)
            case {"session": id_, "given": int() as revision} if id_ in self.records:
                self._take_given(self.records[id_], at, revision)
            case {
                "session": id_,
                "told": {"roots": int() as roots, "names": list() as names},
            } if id_ in self.records:
                self.records[id_].told = ToldServer(
                    roots=roots, names=[str(each) for each in names]
                )
            case {"session": id_, "closed": end} if id_ in self.records:
                self._end(self.records[id_], at, end)

    def _daemon_began(self, at: datetime) -> None:
        for record in tuple(self._open.values()):
            self._end(record, at, _LOST_WITH_THE_DAEMON)
        self._roots.clear()
        self._changes.clear()

    def _end(self, record: _Record, at: datetime, end: str) -> None:
        record.until, record.end = at, end
        self._open.pop(record.id, None)

    def _take_opened(self, id_: str, about: Json) -> None:
        if id_ not in self.records:
            since = datetime.fromisoformat(about["since"])
            record = _Record(id_, about["pid"], None, EVERYTHING, since)
            self.records[id_] = self._open[id_] = record
        record = self.records[id_]
        scope = _scope(about["scope"])
        if scope != record.scope and record.given:
            record.scoped, record.has_refocused = self._seen_in(record.scope), True
        record.client, record.scope = about["client"], scope

    def _take_set(self, line: Json) -> None:
        new = {each["name"]: _root(each) for each in line["gained"]}
        if line["whole"]:
            old, self._roots = self._roots, new
            fresh, lost = new.keys() - old.keys(), old.keys() - new.keys()
            changed = {name for name in new.keys() & old.keys() if new[name] != old[name]}
        else:
            fresh, lost = new.keys() - self._roots.keys(), set(line["lost"])
            changed = set(new) - fresh
            for name in lost:
                self._roots.pop(name, None)
            self._roots |= new
        self._changes.append(_Change(set(fresh), changed, set(lost)))

    def _take_given(self, record: _Record, at: datetime, revision: int) -> None:
        has_bound = any(root.session is not None for root in self._roots.values())
        if record.scope.takes_all and not record.has_refocused and not has_bound:
            change, count = self._change_since(record), len(self._roots)
        else:
            change, count = self._change_in_scope(record)
        record.changes = len(self._changes)
        gained = sorted(change.fresh | change.changed)
        lost = sorted(change.lost)
        if record.given and not gained and not lost:
            return
        record.given.append(
            GivenSet(
                at=rfc3339(at),
                revision=revision,
                roots=count,
                gained=gained[:_MOST_NAMES],
                gained_count=len(gained),
                lost=lost[:_MOST_NAMES],
                lost_count=len(lost),
            )
        )

    def _change_since(self, record: _Record) -> _Change:
        if not record.given:
            return _Change(fresh=set(self._roots))
        change = _Change()
        for each in self._changes[record.changes :]:
            change.then(each)
        return change

    def _seen_in(self, scope: Scope) -> dict[str, Root]:
        whole = Published(0, tuple(self._roots.values()))
        return {root.name: root for root in narrow(whole, scope).roots}

    def _change_in_scope(self, record: _Record) -> tuple[_Change, int]:
        now = self._seen_in(record.scope)
        before, record.scoped = record.scoped, now
        changed = {name for name in now.keys() & before.keys() if now[name] != before[name]}
        change = _Change(set(now.keys() - before.keys()), changed, set(before.keys() - now.keys()))
        return change, len(now)


def _root(shown: Json) -> Root:
    return Root(
        path=bytes_of(shown["path"]),
        name=shown["name"],
        kind=ProjectKind(shown["kind"]),
        access=Access(shown["access"]),
        tags=tuple(shown["tags"]),
        main_checkout=_path(shown.get("main")),
        approval=shown.get("approval", 0),
        session=shown.get("for_session"),
    )


def _scope(shown: Json) -> Scope:
    """Return the scope in a line; version 0.1.0 wrote no extent and no start."""
    return Scope(
        frozenset(shown["names"]),
        frozenset(shown["tags"]),
        _path(shown["folder"]),
        Uris.ANY if shown["any_uri"] else Uris.FILE,
        Extent(shown.get("extent", Extent.ROOT.value)),
        Start(_path(shown.get("anchor")), shown.get("approvals", 0)),
        frozenset(shown.get("sessions", ())),
    )


def _path(shown: str | None) -> bytes | None:
    return None if shown is None else bytes_of(shown)
