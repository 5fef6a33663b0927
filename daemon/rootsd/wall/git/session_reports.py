"""Report what a session behind the wall left in git directories, until a person has seen it.

Each wall has a private folder, and in it a folder `changes`. There, `start.json` has the facts
about each root before the program saw it. At the end of the session it becomes a report,
`TIME.json`, or nothing if the session changed nothing. If all parts of a session are killed,
`start.json` stays, and the next start of a wall, or the daemon, makes the report.

A link that the session made is removed at the end. Its report has the target, so `put_back` makes
it again. If the session changed an earlier link, that one is made again at once. A file that git
obeys is moved to `TIME.json.N`, where N is its number in the report. Nothing is removed after a
kill, because a person may have made it since. Nor is anything removed from a git directory that is
new: it may be a checkout of `repo`, which is made of links.

A root may be moved while its session runs, and something else may take its place. So each root
stays open, and a git directory is known by its device and inode, not by its path alone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from rootsd.core.labels import first_of, safe_label
from rootsd.core.paths import contains, text_of
from rootsd.core.record import Text
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.git.facts import (
    OF_SETTINGS,
    Fact,
    FactKind,
    RootFacts,
    describe,
    find_facts,
    names_in,
)
from rootsd.wall.git.kept_contents import (
    forget_contents,
    keep_contents,
    kept_content,
    read_content,
)
from rootsd.wall.git.named_files import NamedFiles, named_by_git
from rootsd.wall.git.session_peers import CHANGES as _CHANGES
from rootsd.wall.git.session_peers import START as _START
from rootsd.wall.git.session_peers import (
    FolderId,
    Peers,
    SessionState,
    note_end,
    program_of,
    wall_folders,
)
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.taken_away import (
    is_removable,
    make_link,
    put_back_fact,
    still_holds,
    take_away,
)
from rootsd.wall.git.tool_files import RUN_BY_HOOKS
from rootsd.wall.system_calls import closing, open_path

_MAX_NAMED, _MAX_OF_A_KIND = 8, 16
_OF_TOOLS = (FactKind.TOOL_FILE, FactKind.UNREAD_TOOLS)
_ONLY_LAST = (FactKind.TOOL_FILE, *OF_SETTINGS)  # an earlier fact about the path is void
LOCK = b"/lock"
"""The name of the lock in a wall's folder, which its warden holds."""


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


class SessionReport(NamedTuple):
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

    def as_of_now(self) -> SessionReport:
        """Return the report without the tool files that have another content by now."""
        findings = tuple(
            each
            for each in self.findings
            if each.fact.kind is not FactKind.TOOL_FILE or still_holds(each.fact)
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
        return _some_of_each((each.fact.kind, self._sentence(each)) for each in others)

    def _changed(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield one sentence about the files that tools run, or none."""
        if findings:
            others = tuple(dict.fromkeys(name for each in findings for name in each.others))
            who = f"changed by {_makers(self.program, others)}"
            if self.end is SessionEnd.KILLED:
                who = f"changed while {self.program} ran, or since it was killed,"
            yield f"{who} and run outside: {_paths_of(findings)}; rootsd review --changed"

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
        makers = _makers(self.program, finding.others)
        is_certain = self.end is SessionEnd.ORDERLY
        who = f"left by {makers}" if is_certain else f"found after {makers} was killed"
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


def _some_of_each(sentences: Iterable[tuple[FactKind, str]]) -> Iterator[str]:
    """Yield the first sentences about each kind: a program can make a million of one."""
    told = Counter[FactKind]()
    for kind, sentence in sentences:
        told[kind] += 1
        if told[kind] <= _MAX_OF_A_KIND:
            yield sentence
    for kind, count in told.items():
        if count > _MAX_OF_A_KIND:
            yield f"{count - _MAX_OF_A_KIND} more of this kind: {kind.value}"


def _makers(program: str, others: tuple[str, ...]) -> str:
    if not others:
        return program
    return f"{program} or {' or '.join(others)}, which ran there at the same time"


class SessionBaseline:
    """The facts at the start of a session, in the private `folder` of its wall."""

    def __init__(
        self, folder: bytes, protection: ProtectionPolicy = ProtectionPolicy.NONE
    ) -> None:
        self._folder = folder
        self._protection = protection
        self._file = folder + _CHANGES + _START
        self._roots: dict[bytes, RootFacts] = {}
        self._since: dict[bytes, float] = {}  # when the program saw each root first
        self._open: dict[bytes, int] = {}  # the folder of each root, wherever it is now
        self._repositories: dict[bytes, FolderId] = {}  # those that the session did not make
        self._found: dict[Fact, None] = {}
        self._earlier: dict[bytes, Fact] = {}  # links that were there, by path
        self._named: dict[bytes, NamedFiles] = {}  # what git runs, by root
        self._closed: dict[bytes, FolderId] = {}  # hooks that only others can have changed
        self._before: dict[bytes, bytes] = {}  # the contents of tool files, by path

    @classmethod
    def read(cls, folder: bytes) -> SessionBaseline | None:
        """Return the record of a session that has not ended by itself, or None."""
        saved = read_record(SessionState, folder + _CHANGES + _START)
        if saved is None:
            return None
        record = cls(folder)
        record._roots = {root: RootFacts(frozenset(facts)) for root, facts in saved.roots.items()}
        record._repositories = dict(saved.repositories)
        record._since = dict(saved.since)
        record._named = dict(saved.named)
        record._found = dict.fromkeys(saved.found)
        for facts in saved.roots.values():
            record._note_contents(facts)
        return record

    @property
    def roots(self) -> dict[bytes, RootFacts]:
        """What is known about each root that the program sees."""
        return self._roots

    def named_for(self, root: bytes) -> NamedFiles | None:
        """Return what git named for a root when it was noted, or None if it was not."""
        return self._named.get(root)

    @property
    def found(self) -> tuple[Fact, ...]:
        """What the session is known to have made so far."""
        return tuple(self._found)

    def add(self, roots: Iterable[bytes]) -> None:
        """Note the facts about roots that the program is about to see. Raises OSError."""
        for root in roots:
            with suppress(OSError):  # it is not there, so it is not shown either
                folder = open_path(root, os.O_DIRECTORY)
                self._close(root)
                self._open[root] = folder
                self._note_closed(root)
                self._since.setdefault(root, time.time())
                self._named[root] = named = named_by_git(root)
                self._roots[root] = found = find_facts(root, self._known_in(root), named)
                self._remember(found.repositories)
                self._note_contents(found.facts)
                keep_contents(self._folder, found.facts)
                for fact in found.facts:
                    if fact.kind is FactKind.LINK and fact not in self._found:
                        self._earlier.setdefault(fact.path, fact)
        self._write()

    def drop(self, roots: Collection[bytes]) -> None:
        """Look for the last time at roots that the program no longer sees. Raises OSError."""
        for root in roots:
            self._look(root)
            self._close(root)
            self._roots.pop(root, None)
        self._write()
        note_end(self._folder, roots, time.time())

    def keep(self, facts: Iterable[Fact]) -> None:
        """Keep facts that were seen early. Raises OSError."""
        known = {*self._found}.union(*(each.facts for each in self._roots.values()))
        if new := [each for each in facts if each not in known and self._is_of_session(each)]:
            self._find(new)
            self._write()

    def names_of(self, facts: Iterable[Fact]) -> tuple[str, ...]:
        """Return the names of new files that run outside, each with the name of its root.

        What git runs comes first. The names are not made safe to show.
        """
        kinds = (FactKind.OBEYED, FactKind.TOOL_FILE)
        found = [fact for fact in facts if fact.kind in kinds and still_holds(fact)]
        found.sort(key=lambda fact: (kinds.index(fact.kind), not self._is_run_by_git(fact.path)))
        roots = sorted(self._roots, key=len, reverse=True)
        above = (
            next((os.path.dirname(root) for root in roots if contains(root, fact.path)), b"/")
            for fact in found
        )
        pairs = zip(found, above, strict=True)
        names = (os.path.relpath(fact.path, folder) for fact, folder in pairs)
        return tuple(map(text_of, names))

    def report_now(self) -> SessionReport:
        """Return what the session is known to have made so far, as a report that is not saved."""
        return self._report([each for each in self._found if still_holds(each)], SessionEnd.KILLED)

    def conclude(self, end: SessionEnd) -> SessionReport | None:
        """Look at all roots again, and make the report. Return None if nothing was changed.

        Raises OSError.
        """
        for root in self._roots:
            self._look(root)
            self._close(root)
        still = [fact for fact in self._found if still_holds(fact)]
        note_end(self._folder, self._roots, time.time())
        if not still:
            _forget_unused_contents(self._folder)
            with suppress(FileNotFoundError):
                os.unlink(self._file)
            return None
        report = self._take_away(self._report(still, end))
        for fact in report.removed:
            if (earlier := self._earlier.get(fact.path)) is not None:
                with suppress(OSError):
                    make_link(earlier)
        os.unlink(self._file)
        return report

    def _report(self, facts: Iterable[Fact], end: SessionEnd) -> SessionReport:
        """Return the report about facts, with those as removed that `_take_away` will take.

        What git runs comes first, because a person commits without looking.
        """
        facts = sorted(facts, key=lambda fact: not self._is_run_by_git(fact.path))
        file = b"%s/%d.json" % (os.path.dirname(self._file), time.time_ns())
        findings = tuple(
            Finding(
                each,
                number,
                end is SessionEnd.ORDERLY and self._is_removable(each),
                others,
                self._before.get(each.path, b""),
            )
            for number, (each, others) in enumerate(zip(facts, self.others_at(facts), strict=True))
        )
        return SessionReport(file, program_of(self._folder), time.time(), end, findings)

    def _take_away(self, report: SessionReport) -> SessionReport:
        """Take away what the report says, and return the report about what is gone."""
        replace_record(report.file, report)  # first, so that none is lost
        gone = {each for each in report.removed if take_away(each, report.place_of(each))}
        if len(gone) == len(report.removed):
            return report
        findings = (
            each._replace(is_removed=each.fact in gone)
            for each in report.findings
            if each.fact in gone or still_holds(each.fact)  # a link above it may be gone
        )
        report = report._replace(findings=tuple(findings))
        replace_record(report.file, report)
        return report

    def others_at(self, facts: Iterable[Fact]) -> list[tuple[str, ...]]:
        """Return, for each fact, the other sessions that may have made it."""
        peers = Peers(self._folder)
        return [
            () if fact.kind in OF_SETTINGS else peers.at(fact.path, self._began_at(fact.path))
            for fact in facts
        ]

    def _began_at(self, path: bytes) -> float:
        """Return when the program saw a path first; for one that was moved, any of its roots."""
        inside = [at for root, at in self._since.items() if contains(root, path)]
        return min(inside or self._since.values(), default=0.0)

    def _look(self, root: bytes) -> None:
        """Keep the facts that are new in a root."""
        with suppress(OSError):
            place = self._place_now(root)
            known = self._known_in(root)
            facts = self._roots[root].facts
            if root in self._open or root not in self._named:
                self._named[root] = named_by_git(place)
            if place != root:
                known = [place + each[len(root) :] for each in known]
                facts = frozenset(
                    each._replace(path=place + each.path[len(root) :]) for each in facts
                )
                self._remember(known)
                self._note_contents(facts)
            new = {
                fact
                for fact in find_facts(place, known, self._named[root]).facts
                if (fact not in facts or fact.kind is FactKind.UNREAD_TOOLS)
                and self._is_of_session(fact)
            }
            self._find(sorted(new, key=lambda fact: fact.path))

    def _find(self, new: Collection[Fact]) -> None:
        again = {(each.kind, each.path) for each in new if each.kind in _ONLY_LAST}
        for old in [each for each in self._found if (each.kind, each.path) in again]:
            del self._found[old]
        self._found.update(dict.fromkeys(new))

    def _place_now(self, root: bytes) -> bytes:
        """Return the path that the folder of a root has now. Raises OSError if it has none."""
        folder = self._open.get(root)
        if folder is None:  # the session was killed
            return root
        place = os.readlink(b"/proc/self/fd/%d" % folder)
        if _identity(place) != FolderId.of(os.fstat(folder)):
            raise FileNotFoundError(place)
        return place

    def _close(self, root: bytes) -> None:
        if (folder := self._open.pop(root, None)) is not None:
            os.close(folder)

    def _known_in(self, root: bytes) -> list[bytes]:
        return sorted(each for each in self._repositories if contains(root, each))

    def _note_closed(self, root: bytes) -> None:
        """Note the hooks of a root if they are read-only inside from before programs saw them."""
        hooks = root + b"/.git/hooks"
        was_seen = any(contains(other, root) for other in self._since if other != root)
        if self._protection is not ProtectionPolicy.NONE and not was_seen:
            found = _identity(hooks)
            if found is not None and not os.path.islink(hooks):
                self._closed[hooks] = found

    def _remember(self, repositories: Iterable[bytes]) -> None:
        for each in repositories:
            if (identity := _identity(each)) is not None:
                self._repositories[each] = identity

    def _is_run_by_git(self, path: bytes) -> bool:
        if any(b"/" + name + b"/" in path + b"/" for name in RUN_BY_HOOKS):
            return True
        named = (each for names in self._named.values() for each in (*names.paths, *names.words))
        return any(contains(each, path) for each in named)

    def _is_removable(self, fact: Fact) -> bool:
        return is_removable(fact) and self._is_in_known_repository(fact)

    def _is_of_session(self, fact: Fact) -> bool:
        """Return whether a new fact counts.

        A new repository has settings, as each one has. A tool file may have its first content
        again, when a root comes back.
        """
        if fact.kind is FactKind.TOOL_FILE:
            return self._before.get(fact.path) != fact.value
        folder = os.path.dirname(fact.path)
        if folder in self._closed and self._closed[folder] == _identity(folder):
            return False
        return fact.kind is not FactKind.OBEYED or self._is_in_known_repository(fact)

    def _is_in_known_repository(self, fact: Fact) -> bool:
        return any(
            contains(common, fact.path) and _identity(common) == identity
            for common, identity in self._repositories.items()
        )

    def _note_contents(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if fact.kind is FactKind.TOOL_FILE:
                self._before.setdefault(fact.path, fact.value)

    def _write(self) -> None:
        os.makedirs(os.path.dirname(self._file), 0o700, exist_ok=True)
        state = SessionState(
            {root: tuple(known.facts) for root, known in self._roots.items()},
            self._repositories,
            tuple(self._found),
            self._since,
            self._named,
        )
        replace_record(self._file, state)


def conclude_unfinished(folder: bytes, end: SessionEnd) -> SessionReport | None:
    """Make the report of a session that could not do so, if nobody else uses the wall's folder.

    Raises OSError.
    """
    if not os.path.exists(folder + _CHANGES + _START):
        return None
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
    with closing(os.open(folder + LOCK, flags, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a living warden, or the next session, which has done this
            return None
        record = SessionBaseline.read(folder)
        return None if record is None else record.conclude(end)


def conclude_killed(walls: bytes) -> list[SessionReport]:
    """Make the reports of sessions that were killed with their warden and its owner."""
    reports = []
    for wall in wall_folders(walls):
        with suppress(OSError):
            report = conclude_unfinished(wall, SessionEnd.KILLED)
            if report is not None:
                reports.append(report)
    return reports


def read_reports(walls: bytes) -> list[SessionReport]:
    """Return the reports of all walls in the folder `walls`, oldest first."""
    reports = [report for wall in wall_folders(walls) for report in reports_of(wall)]
    return sorted(reports, key=lambda report: report.ended)


def reports_of(folder: bytes) -> Iterator[SessionReport]:
    """Yield the reports of one wall, oldest first."""
    for name in names_in(folder + _CHANGES):
        if name.endswith(b".json") and b"/" + name != _START:
            file = folder + _CHANGES + b"/" + name
            if (report := read_record(SessionReport, file)) is not None:
                yield report._replace(file=file)


class LeftBehind(NamedTuple):
    """What sessions made or left, as sentences, and the reports that say so.

    `is_any_running` says whether a session has not ended.
    """

    sentences: Sequence[str]
    reports: Sequence[SessionReport]
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
    is_any_running = any(os.path.exists(wall + _CHANGES + _START) for wall in wall_folders(walls))
    return LeftBehind([*sentences, *running_findings(walls)], unseen, is_any_running)


def running_findings(walls: bytes) -> Iterator[str]:
    """Yield what running sessions are known to have made, as sentences."""
    return _some_of_each(_running_facts(walls))


def _running_facts(walls: bytes) -> Iterator[tuple[FactKind, str]]:
    told: set[Fact] = set()
    for wall in wall_folders(walls):
        record = SessionBaseline.read(wall)
        found = [] if record is None else [each for each in record.found if still_holds(each)]
        others = [] if record is None else record.others_at(found)
        for fact, names in zip(found, others, strict=True):
            if fact not in told:  # two sessions may have seen it
                told.add(fact)
                running = "" if names else ", which runs"
                makers = f"made by {_makers(program_of(wall), names)}{running}"
                yield fact.kind, f"{makers}: {describe(fact)}"


def mark_seen(report: SessionReport) -> None:
    """Remember that a person has seen a report, or forget it if it removed nothing.

    Raises OSError.
    """
    if report.removed:
        replace_record(report.file, report._replace(is_seen=True))
    else:
        os.unlink(report.file)
        if not os.path.exists(report.wall + _CHANGES + _START):
            _forget_unused_contents(report.wall)


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


def running_reports(walls: bytes) -> Iterator[SessionReport]:
    """Yield what running sessions are known to have made. Nobody has to see these."""
    for wall in wall_folders(walls):
        if (record := SessionBaseline.read(wall)) is not None:
            yield record.report_now()


def changed_files(report: SessionReport) -> Iterator[ToolFileChange]:
    """Yield the tool files of a report that still are as the session left them."""
    for each in report.as_of_now().findings:
        if each.fact.kind is FactKind.TOOL_FILE:
            before = kept_content(report.wall, each.fact._replace(value=each.before))
            makers = _makers(report.program, each.others)
            after = read_content(each.fact.path)
            yield ToolFileChange(each.fact.path, makers, before, after, not each.before)


def _forget_unused_contents(folder: bytes) -> None:
    """Forget the kept contents if no report needs them. No session of this wall may be running."""
    if not any(reports_of(folder)):
        forget_contents(folder)


def put_back(report: SessionReport) -> list[Fact]:
    """Put back what was taken away, and return it. Raises OSError.

    What something else replaces now is left out, or that whose folder is gone: git makes many of
    these files again. The report goes, because it must not stand before every later undo.
    """
    made = [fact for fact in report.removed if put_back_fact(fact, report.place_of(fact))]
    os.unlink(report.file)
    return made


def _identity(folder: bytes) -> FolderId | None:
    try:
        return FolderId.of(os.lstat(folder))
    except OSError:
        return None
