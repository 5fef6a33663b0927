"""Remember how roots were before a session, and find what the session made there.

`start.json` in the folder `changes` of a wall has the facts about each root before the program saw
it. `conclude` looks again, and makes the report.

A link that the session made is removed at the end. Its report has the target, so that it can be
made again. If the session changed an earlier link, that one is made again at once. A file that git
obeys is moved to `TIME.json.N`, where N is its number in the report. Nothing is removed after a
kill, because a person may have made it since. Nor is anything removed from a git directory that is
new: it may be a checkout of `repo`, which is made of links.

A root may be moved while its session runs, and something else may take its place. So each root
stays open, and a git directory is known by its device and inode, not by its path alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from rootsd.core.labels import first_of, safe_label
from rootsd.core.paths import contains, text_of
from rootsd.core.wall import ProtectionPolicy
from rootsd.places.runtime_dir import home_folder
from rootsd.wall.git import private_worktrees
from rootsd.wall.git.facts import OF_SETTINGS, Fact, FactKind, RootFacts, find_facts
from rootsd.wall.git.file_names import RootListings
from rootsd.wall.git.kept_contents import keep_contents
from rootsd.wall.git.left_behind import (
    Finding,
    LeftBehindReport,
    SessionEnd,
    forget_unused_contents,
)
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.git.named_files import NamedFiles, named_by_git
from rootsd.wall.git.session_peers import FolderId, Peers, SessionState, note_end
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.taken_away import is_removable, make_link, still_holds, take_away
from rootsd.wall.git.tool_files import RUN_BY_HOOKS
from rootsd.wall.git.wall_folders import CHANGES, RUN_PREFIX, START, program_of
from rootsd.wall.system_calls import open_path

_MAX_LOST = 5
_ONLY_LAST = (FactKind.TOOL_FILE, *OF_SETTINGS)  # an earlier fact about the path is void


class SessionBaseline:
    """The facts at the start of a session, in the private `folder` of its wall."""

    def __init__(
        self,
        folder: bytes,
        protection: ProtectionPolicy = ProtectionPolicy.NONE,
        watch: WallWatch | None = None,
    ) -> None:
        self._folder = folder
        self._protection = protection
        self._file = folder + CHANGES + START
        self._roots: dict[bytes, RootFacts] = {}
        self._since: dict[bytes, float] = {}  # when the program saw each root first
        self._open: dict[bytes, int] = {}  # the folder of each root, wherever it is now
        self._repositories: dict[bytes, FolderId] = {}  # those that the session did not make
        self._found: dict[Fact, None] = {}
        self._earlier: dict[bytes, Fact] = {}  # links that were there, by path
        self._named: dict[bytes, NamedFiles] = {}  # what git runs, by root
        self._closed: dict[bytes, FolderId] = {}  # hooks that only others can have changed
        self._before: dict[bytes, bytes] = {}  # the contents of tool files, by path
        self._listings = RootListings(folder, watch)
        self.lines: list[str] = []
        """What `conclude` has found about files, for people."""

    @classmethod
    def read(cls, folder: bytes) -> SessionBaseline | None:
        """Return the record of a session that has not ended by itself, or None."""
        saved = read_record(SessionState, folder + CHANGES + START)
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
        """Note the facts about roots that the program is about to see. Raises OSError.

        Call `wait_listed` before it does.
        """
        roots = tuple(roots)
        self._listings.begin(roots)
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

    def wait_listed(self) -> None:
        """Wait a moment until the files of new roots are listed."""
        self._listings.wait()

    def drop(self, roots: Collection[bytes]) -> None:
        """Look for the last time at roots that the program no longer sees. Raises OSError."""
        for root in roots:
            self._look(root)
            self._listings.end_early(root, self._place_or_none(root))
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

    def report_now(self) -> LeftBehindReport:
        """Return what the session is known to have made so far, as a report that is not saved."""
        return self._report([each for each in self._found if still_holds(each)], SessionEnd.KILLED)

    def conclude(self, end: SessionEnd) -> LeftBehindReport | None:
        """Look at all roots again, and make the report. Return None if nothing was changed.

        Raises OSError.
        """
        places = {root: self._place_or_none(root) for root in self._roots}
        for root in self._roots:
            self._look(root)
            self._close(root)
        self._keep_worktrees()
        still = [fact for fact in self._found if still_holds(fact)]
        runs = [each.path for each in still if each.kind is FactKind.TOOL_FILE]
        with suppress(OSError):  # what could do harm is taken away all the same
            self.lines = self._listings.conclude(places, runs, end)
        home = os.path.realpath(home_folder())
        if lost := private_worktrees.names_lost(self._folder, home):
            names = first_of([f"~/{safe_label(name)}" for name in lost], _MAX_LOST)
            self.lines.append(
                f"removed with the private home folder: {names} (--write FOLDER keeps files)"
            )
        note_end(self._folder, self._roots, time.time())
        if not still:
            forget_unused_contents(self._folder)
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

    def _keep_worktrees(self) -> None:
        """Rename the private folders, which would be removed, if worktrees lie in them.

        Raises OSError.
        """
        old = self._folder + b"/" + RUN_PREFIX
        new = self._folder + b"/%s%d-" % (private_worktrees.LEFT_PREFIX, time.time_ns())
        inside = [each for each in self._found if each.path.startswith(old) and still_holds(each)]
        if inside:
            self._find([each._replace(path=new + each.path[len(old) :]) for each in inside])
            self._write()  # first, so that none is forgotten
            for folder in private_worktrees.private_folders(self._folder):
                os.rename(folder, new + folder[len(old) :])

    def _report(self, facts: Iterable[Fact], end: SessionEnd) -> LeftBehindReport:
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
            for number, (each, others) in enumerate(self._with_others(facts))
        )
        return LeftBehindReport(file, program_of(self._folder), time.time(), end, findings)

    def _take_away(self, report: LeftBehindReport) -> LeftBehindReport:
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

    def _with_others(self, facts: Iterable[Fact]) -> Iterator[tuple[Fact, tuple[str, ...]]]:
        """Yield each fact with the other sessions that may have made it."""
        peers = Peers(self._folder)
        for fact in facts:
            is_alone = fact.kind in OF_SETTINGS
            yield fact, () if is_alone else peers.at(fact.path, self._began_at(fact.path))

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
            now = find_facts(place, known, self._named[root])
            inside = private_worktrees.find_private_worktrees(self._folder, now.repositories)
            new = {
                fact
                for fact in (*now.facts, *inside)
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

    def _place_or_none(self, root: bytes) -> bytes | None:
        try:
            return self._place_now(root)
        except OSError:
            return None

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


def _identity(folder: bytes) -> FolderId | None:
    try:
        return FolderId.of(os.lstat(folder))
    except OSError:
        return None
