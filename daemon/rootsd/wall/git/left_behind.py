"""Say for people what one session behind the wall left behind.

`sentences` has each finding with what to do. A report is one record in a file, which
`left_behind_reports` finds and reads. The record of all that a session did is another one:
`session_record`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from rootsd.core.labels import first_of, safe_label
from rootsd.core.record import Text
from rootsd.wall.git.facts import Fact, FactKind, describe
from rootsd.wall.git.kept_contents import forget_contents
from rootsd.wall.git.state_files import read_record
from rootsd.wall.git.taken_away import still_holds
from rootsd.wall.git.wall_folders import CHANGES, START, names_in

_MAX_NAMED, _MAX_OF_A_KIND = 8, 16
_OF_TOOLS = (FactKind.TOOL_FILE, FactKind.UNREAD_TOOLS)
_MAY_GO = (FactKind.TOOL_FILE, FactKind.WORKTREE)


class Finding(NamedTuple):
    """A fact that a session made. `is_removed` says that what was found was taken away.

    `others` are the sessions that ran in the same place, so that any of them may have made it.
    `number` is part of the name of a file that was taken away. `before` is what stood for the
    content of a tool file before the session; nothing if the file is new.
    """

    fact: Fact
    number: int = 0
    is_removed: bool = False
    others: tuple[str, ...] = ()
    before: Text = b""


class SessionEnd(Enum):
    """How a session ended. After a kill, others may have made what is found later."""

    ORDERLY = "orderly"
    KILLED = "killed"


class LeftBehindReport(NamedTuple):
    """What one session left behind. `file` is where the report lies.

    `program` is the name of the session, and `ended` the time in seconds of the report.
    """

    file: Text
    program: str
    ended: float
    end: SessionEnd
    findings: tuple[Finding, ...]
    is_seen: bool = False

    @property
    def wall(self) -> bytes:
        """The folder of the wall."""
        return os.path.dirname(os.path.dirname(self.file))

    @property
    def removed(self) -> list[Fact]:
        """What was taken away."""
        return [each.fact for each in self.findings if each.is_removed]

    def as_of_now(self) -> LeftBehindReport:
        """Return the report without changed tool files and worktrees that are gone by now."""
        findings = tuple(
            each
            for each in self.findings
            if each.fact.kind not in _MAY_GO or still_holds(each.fact)
        )
        return self._replace(findings=findings)

    def place_of(self, fact: Fact) -> bytes:
        """Return where a file is that was taken away."""
        number = next(each.number for each in self.findings if each.fact == fact)
        return b"%s.%d" % (self.file, number)

    def sentences(self) -> list[str]:
        """Return the findings for people, with what to do."""
        changed, unread = (
            [each for each in self.findings if each.fact.kind is kind] for kind in _OF_TOOLS
        )
        return [*self._changed(changed), *self._unread(unread), *self.sentences_about_git()]

    def sentences_about_git(self) -> Iterator[str]:
        """Yield the findings that `review --changed` cannot show as a difference."""
        others = (each for each in self.findings if each.fact.kind not in _OF_TOOLS)
        return some_of_each((each.fact.kind, self._sentence(each)) for each in others)

    def _changed(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield one sentence about the files that tools run, or none."""
        if findings:
            others = tuple(dict.fromkeys(name for each in findings for name in each.others))
            makers = makers_of(self.program, others) + ("," if others else "")
            what = f"{makers} changed files that tools outside run"
            if self.end is SessionEnd.KILLED:
                since = f"while {self.program} ran, or since it was killed"
                what = f"files that tools outside run were changed {since}"
            yield f"{what}: {_paths_of(findings)}; rootsd review --changed"

    def _unread(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield one sentence about the files that tools run and that were not read, or none."""
        if findings:
            yield (
                "rootsd could not look at everything that tools outside run in"
                f" {_paths_of(findings)}, so it cannot tell what {self.program} changed there"
            )

    def _sentence(self, finding: Finding) -> str:
        if finding.fact.kind is FactKind.SETTINGS:
            return f"{describe(finding.fact)}; to keep one, set it outside"
        if finding.fact.kind is FactKind.NEW_SETTINGS:
            return f"{describe(finding.fact)}; remove each that you did not set"
        makers = makers_of(self.program, finding.others)
        is_certain = self.end is SessionEnd.ORDERLY
        who = f"left by {makers}" if is_certain else f"found after {makers} was killed"
        if finding.fact.kind is FactKind.WORKTREE:
            return (
                f"{who}: {describe(finding.fact)}; move it where you want it, and run git worktree"
                " repair NEW-PATH in its repository; or to remove it: rootsd confine --clean"
            )
        if not finding.is_removed:
            return f"{who}: {describe(finding.fact)}; look at it before you use git there"
        path = safe_label(finding.fact.path, limit=None)
        if finding.fact.kind is not FactKind.LINK:
            return (
                f"{who}: {path} was new, and git outside would have obeyed it, so rootsd moved it"
                " away; to put it back: rootsd undo"
            )
        target = safe_label(finding.fact.value, limit=None)
        return (
            f"{who}: {path} was a link to {target}, and git outside would have written through"
            " it, so rootsd removed it; to put it back: rootsd undo"
        )


def _paths_of(findings: Sequence[Finding]) -> str:
    return first_of([safe_label(each.fact.path, limit=None) for each in findings], _MAX_NAMED)


def some_of_each(sentences: Iterable[tuple[FactKind, str]]) -> Iterator[str]:
    """Yield the first sentences about each kind: a program can make a million of one."""
    told = Counter[FactKind]()
    for kind, sentence in sentences:
        told[kind] += 1
        if told[kind] <= _MAX_OF_A_KIND:
            yield sentence
    for kind, count in told.items():
        if count > _MAX_OF_A_KIND:
            yield f"{count - _MAX_OF_A_KIND} more of this kind: {kind.value}"


def makers_of(program: str, others: tuple[str, ...]) -> str:
    """Return which sessions may have made something, as a clause."""
    if not others:
        return program
    return f"{program} or {' or '.join(others)}, which ran there at the same time"


def reports_of(folder: bytes) -> Iterator[LeftBehindReport]:
    """Yield the reports of one wall, oldest first."""
    for name in names_in(folder + CHANGES):
        if name.endswith(b".json") and b"/" + name != START:
            file = folder + CHANGES + b"/" + name
            if (report := read_record(LeftBehindReport, file)) is not None:
                yield report._replace(file=file)


def forget_unused_contents(folder: bytes) -> None:
    """Forget the kept contents if no report needs them. No session of this wall may be running."""
    if not any(reports_of(folder)):
        forget_contents(folder)
