"""Find the reports about sessions behind the wall, until a person has seen them.

Each wall has a private folder, and in it a folder `changes`, where `start.json` is about a session
that runs. At its end, that becomes a report, `TIME.json`, or nothing if the session changed
nothing. If all parts of a session are killed, `start.json` stays, and the next start of a wall, or
the daemon, makes the report.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from rootsd.wall.git.facts import Fact, FactKind, describe
from rootsd.wall.git.kept_contents import kept_content, read_content
from rootsd.wall.git.left_behind import (
    LeftBehindReport,
    SessionEnd,
    forget_unused_contents,
    makers_of,
    reports_of,
    some_of_each,
)
from rootsd.wall.git.session_baseline import SessionBaseline
from rootsd.wall.git.state_files import replace_record
from rootsd.wall.git.taken_away import put_back_fact
from rootsd.wall.git.wall_folders import CHANGES, LOCK, START, wall_folders
from rootsd.wall.system_calls import closing


def conclude_unfinished(folder: bytes, end: SessionEnd) -> LeftBehindReport | None:
    """Make the report of a session that could not do so, if nobody else uses the wall's folder.

    Raises OSError.
    """
    if not os.path.exists(folder + CHANGES + START):
        return None
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
    with closing(os.open(folder + LOCK, flags, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a living warden, or the next session, which has done this
            return None
        record = SessionBaseline.read(folder)
        return None if record is None else record.conclude(end)


def conclude_killed(walls: bytes) -> list[LeftBehindReport]:
    """Make the reports of sessions that were killed with their warden and its owner."""
    reports = []
    for wall in wall_folders(walls):
        with suppress(OSError):
            report = conclude_unfinished(wall, SessionEnd.KILLED)
            if report is not None:
                reports.append(report)
    return reports


def read_reports(walls: bytes) -> list[LeftBehindReport]:
    """Return the reports of all walls in the folder `walls`, oldest first."""
    reports = [report for wall in wall_folders(walls) for report in reports_of(wall)]
    return sorted(reports, key=lambda report: report.ended)


class LeftBehind(NamedTuple):
    """What sessions made or left, as sentences, and the reports that say so.

    `is_any_running` says whether a session has not ended.
    """

    sentences: Sequence[str]
    reports: Sequence[LeftBehindReport]
    is_any_running: bool = False

    def mark_seen(self) -> None:
        """Remember that a person has seen the reports, so that they are not read again.

        A report about tool files stays until `rootsd review --changed` has shown them. It also
        stays while a session runs, which could put back a change and make it again later.
        """
        for report in self.reports:
            has_tool_files = any(e.fact.kind is FactKind.TOOL_FILE for e in report.findings)
            if not (has_tool_files and (self.is_any_running or any(changed_files(report)))):
                with suppress(OSError):
                    mark_seen(report)


def left_behind(walls: bytes) -> LeftBehind:
    """Return what sessions made or left, until a person has seen the reports.

    What a running session made is returned each time.
    """
    conclude_killed(walls)
    unseen = [report for report in read_reports(walls) if not report.is_seen]
    sentences = [each for report in unseen for each in report.as_of_now().sentences()]
    is_any_running = any(os.path.exists(wall + CHANGES + START) for wall in wall_folders(walls))
    return LeftBehind([*sentences, *running_findings(walls)], unseen, is_any_running)


def running_findings(walls: bytes) -> Iterator[str]:
    """Yield what running sessions are known to have made, as sentences."""
    return some_of_each(_running_facts(walls))


def _running_facts(walls: bytes) -> Iterator[tuple[FactKind, str]]:
    told: set[Fact] = set()
    for report in running_reports(walls):
        for fact, others in ((each.fact, each.others) for each in report.findings):
            if fact not in told:  # two sessions may have seen it
                told.add(fact)
                running = "" if others else ", which runs"
                makers = f"made by {makers_of(report.program, others)}{running}"
                yield fact.kind, f"{makers}: {describe(fact)}"


def mark_seen(report: LeftBehindReport) -> None:
    """Remember that a person has seen a report, or forget it if it removed nothing.

    Raises OSError.
    """
    if report.removed:
        replace_record(report.file, report._replace(is_seen=True))
    else:
        os.unlink(report.file)
        if not os.path.exists(report.wall + CHANGES + START):
            forget_unused_contents(report.wall)


class ToolFileChange(NamedTuple):
    """A tool file that a session made or changed, with its content before and now.

    A content is None if there was no file, if the file is a link, or if it is large. `is_new` says
    that nothing was there before.
    """

    path: bytes
    makers: str
    before: bytes | None
    after: bytes | None
    is_new: bool


def running_reports(walls: bytes) -> Iterator[LeftBehindReport]:
    """Yield what running sessions are known to have made. Nobody has to see these."""
    for wall in wall_folders(walls):
        if (record := SessionBaseline.read(wall)) is not None:
            yield record.report_now()


def changed_files(report: LeftBehindReport) -> Iterator[ToolFileChange]:
    """Yield the tool files of a report that still are as the session left them."""
    for each in report.as_of_now().findings:
        if each.fact.kind is FactKind.TOOL_FILE:
            before = kept_content(report.wall, each.fact._replace(value=each.before))
            makers = makers_of(report.program, each.others)
            after = read_content(each.fact.path)
            yield ToolFileChange(each.fact.path, makers, before, after, not each.before)


def put_back(report: LeftBehindReport) -> list[Fact]:
    """Put back what was taken away, and return it. Raises OSError.

    What something else replaces now is left out, or that whose folder is gone: git makes many of
    these files again. The report goes, because it must not stand before every later undo.
    """
    made = [fact for fact in report.removed if put_back_fact(fact, report.place_of(fact))]
    os.unlink(report.file)
    return made
