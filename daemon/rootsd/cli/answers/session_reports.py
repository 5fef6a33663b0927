"""Show the reports about sessions behind the wall: what each one did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import age, pluralize
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.paths import text_of
from rootsd.core.timestamps import rfc3339
from rootsd.places.base_folders import WALLS
from rootsd.wall.git.file_changes import ChangedRoot, GitView
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.left_behind_reports import conclude_killed
from rootsd.wall.git.session_record import EventKind, SessionEvent, SessionRecord, records
from rootsd.wire.guard import LogItem, LogQuery

DECISIONS = LogQuery(1000)
"""The query for the decisions that a report names."""
_REQUESTED = "requested"
_ROOT_EVENTS = (EventKind.OPENED, EventKind.OPENED_READ_ONLY, EventKind.CLOSED)


class NoReport(RootsdError):
    """There is no report with this id or name."""

    code = ErrorCode.NOTHING_MATCHED


class ChangedFileItem(TypedDict):
    """A file that a session created, changed, or deleted."""

    path: str
    """Its path below the root, with escapes."""
    change: str
    """`created`, `changed`, or `deleted`."""
    git: str
    """`tracked`, `untracked`, or `unknown`, if no checkout contains it or git did not answer."""


class ChangedRootItem(TypedDict):
    """The changed files in one root."""

    path: str
    """The root, with escapes."""
    created: int
    """How many files were created, without ignored ones."""
    changed: int
    """How many were changed."""
    deleted: int
    """How many were deleted."""
    ignored: int
    """How many files that git ignores were created, changed, or deleted."""
    not_listed: list[str]
    """Folders that could not be listed, with escapes."""
    is_certain: bool
    """False if files may be missing: programs were too fast, or the clock was set back."""
    files: NotRequired[list[ChangedFileItem]]
    """The files that git does not ignore, at most 1000. Left out in the list of all reports."""


class SessionEventItem(TypedDict):
    """Something that happened in a session."""

    at: str
    """When it happened."""
    what: str
    """`opened`, `opened read-only`, `closed`, `used your credentials at`, `answered yes`,
    `answered no`, or `refused to git`."""
    subject: str
    """The root, the host, the question, or the request, with escapes."""


class SessionReportItem(TypedDict):
    """What one session behind the wall did."""

    id: str
    """The id of the report."""
    program: str
    """The name of the session."""
    pid: int
    """The process of its `rootsd confine` or `rootsd run`."""
    since: str
    """When it began."""
    until: str
    """When it ended, or when rootsd found that it was killed."""
    was_killed: bool
    """True if the wall was killed. Then later changes count, too."""
    roots: list[ChangedRootItem]
    """The changed files in each writable root, once for each time that it was open."""
    events: list[SessionEventItem]
    """What happened, oldest first."""
    runs: list[str]
    """The files that it created or changed and that run by themselves outside, with escapes."""
    log: NotRequired[list[LogItem]]
    """Its requests, and all decisions meanwhile. Left out in the list of all reports."""


class SessionReportsOutput(TypedDict):
    """The reports about sessions behind the wall, with `--report`."""

    items: list[SessionReportItem]
    """The newest reports, oldest first, or the one with this id."""


_LIST = (
    Column("ID", lambda item: item["id"]),
    Column("PROGRAM", lambda item: item["program"], limit=64),
    Column("BEGAN", lambda item: item["since"], short=lambda item: age(item["since"])),
    Column("ENDED", lambda item: item["until"], short=lambda item: age(item["until"])),
    Column("CREATED", lambda item: _sum(item, "created")),
    Column("CHANGED", lambda item: _sum(item, "changed")),
    Column("DELETED", lambda item: _sum(item, "deleted")),
    Column("IGNORED", lambda item: _sum(item, "ignored")),
)
_ROWS = (
    Column("AT", lambda row: row["at"], short=lambda row: row["at"] and age(row["at"])),
    Column("WHAT", lambda row: row["what"]),
    Column("WHERE", lambda row: row["where"], fit=ColumnFit.PATH, exact=exact_path),
    Column("NOTE", lambda row: row["note"], fit=ColumnFit.NOTE),
)


def show_reports(invocation: Invocation, last: int) -> None:
    """List the newest reports."""
    found = _records(invocation)[:last]
    items = [{**_item(each), "roots": [_root(r) for r in each.roots]} for each in reversed(found)]
    invocation.output.show(CommandResult(items), _LIST)
    if invocation.output.on_terminal:
        if not items:
            invocation.output.message("No session behind the wall has left a report.")
        else:
            invocation.output.message("For the whole report: rootsd sessions --report ID")


def show_report(invocation: Invocation, wanted: str) -> None:
    """Print the report with an id, or the newest one of a program. Raises NoReport."""
    record = report_of(invocation, wanted)
    log: Sequence[LogItem] = ()
    with suppress(RootsdError):  # without it, nobody knows who decided
        log = call_or_read_store(invocation, DECISIONS)["items"]
    if not invocation.output.is_json:
        invocation.output.show(CommandResult([*report_rows(record, log)]), _ROWS)
        return
    roots = [{**_root(each), "files": [*_files(each)]} for each in record.roots]
    meanwhile = [each for each in log if _is_in(record, each)]
    item = {**_item(record), "roots": roots, "log": meanwhile}
    invocation.output.object(CommandResult([item]))


def report_of(invocation: Invocation, wanted: str) -> SessionRecord:
    """Return the report with an id, or the newest one of a program. Raises NoReport."""
    for record in _records(invocation):
        if wanted in (record.id, record.program):
            return record
    message = f"no report has the id or program {safe_label(wanted)}"
    raise NoReport(message, "rootsd sessions --report")


def _records(invocation: Invocation) -> list[SessionRecord]:
    walls = invocation.places.state + WALLS
    conclude_killed(walls)
    return list(records(walls))


def _item(record: SessionRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "program": record.program,
        "pid": record.pid,
        "since": _time(record.began),
        "until": _time(record.ended),
        "was_killed": record.end is SessionEnd.KILLED,
        "events": [
            {"at": _time(each.at), "what": each.kind.value, "subject": _label(each.what)}
            for each in record.events
        ],
        "runs": [_label(each) for each in record.runs],
    }


def _root(root: ChangedRoot) -> dict[str, Any]:
    return {
        "path": _label(root.root),
        "created": root.created,
        "changed": root.changed,
        "deleted": root.deleted,
        "ignored": root.ignored,
        "not_listed": [_label(root.root + b"/" + each) for each in root.unread],
        "is_certain": root.is_certain,
    }


def _files(root: ChangedRoot) -> Iterator[ChangedFileItem]:
    for each in root.files:
        yield {"path": _label(each.path), "change": each.change.value, "git": each.git.value}


def report_rows(record: SessionRecord, log: Sequence[LogItem]) -> Iterator[dict[str, str]]:
    """Yield the events and decisions in their order, and then the files."""
    yield _row(_time(record.began), "began", record.program, f"pid {record.pid}")
    told = [
        _row(_time(each.at), each.kind.value, text_of(each.what), _decision(each, log))
        for each in record.events
    ]
    roots = {text_of(each.what) for each in record.events if each.kind in _ROOT_EVENTS}
    told += (
        _row(each["at"], each["verb"], each["path"] or each["what"], _by(each))
        for each in log
        if _is_in(record, each) and each["path"] not in roots
    )
    yield from sorted(told, key=lambda row: row["at"])
    killed = record.end is SessionEnd.KILLED
    yield _row(_time(record.ended), "found killed" if killed else "ended", record.program)
    for path in record.runs:
        yield _row("", "runs by itself", text_of(path), "rootsd review --changed")
    for root in record.roots:
        place = text_of(root.root)
        for file in root.files:
            git = "" if file.git is GitView.UNKNOWN else file.git.value
            yield _row("", file.change.value, f"{place}/{text_of(file.path)}", git)
        if more := root.total - len(root.files):
            yield _row("", "more", place, pluralize(more, "more file"))
        if root.ignored:
            yield _row("", "ignored", place, f"{pluralize(root.ignored, 'file')} that git ignores")
        for path in root.unread:
            yield _row("", "not listed", f"{place}/{text_of(path)}")
        if not root.is_certain:
            yield _row("", "uncertain", place, "files may be missing")


def _row(at: str, what: str, where: str, note: str = "") -> dict[str, str]:
    return {"at": at, "what": what, "where": where, "note": note}


def _decision(event: SessionEvent, log: Sequence[LogItem]) -> str:
    """Return the last decision about the root of an event, and who made it, if the log has it."""
    if event.kind not in _ROOT_EVENTS:
        return ""
    root, limit = text_of(event.what), _time(event.at)
    found = [each for each in log if each["path"] == root and each["at"] <= limit]
    return f"{found[-1]['verb']} by {_by(found[-1])}" if found else ""


def _by(item: LogItem) -> str:
    return ": ".join(part for part in (item["actor"], item["by"]) if part) or "rootsd"


def _is_in(record: SessionRecord, item: LogItem) -> bool:
    is_own = item["verb"] != _REQUESTED or item.get("wall") == record.pid
    return is_own and _time(record.began) <= item["at"] <= _time(record.ended)


def _sum(item: Mapping[str, Any], word: str) -> str:
    return str(sum(root[word] for root in item["roots"]))


def _time(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def _label(text: bytes) -> str:
    return safe_label(text, limit=None)
