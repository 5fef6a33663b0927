"""The process `rootsd sync`: follow the daemon, and keep the lists of the chosen clients in step.

It follows the roots. After each change, it asks for the denied and the published projects, and
writes what changed. If the daemon is gone for some
seconds, and when the process ends, it withdraws the grants and leaves the denials.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.agents.forms.access import ListFile
from rootsd.core.errors import Exit, RootsdError
from rootsd.core.model import Verdict
from rootsd.files.private_files import display_path
from rootsd.link import rpc
from rootsd.link.feed import Feed
from rootsd.link.hidden_process import hide_process
from rootsd.service.launcher import report_ready
from rootsd.service.notify import make_service_notifier
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable
from rootsd.sync.access import ClientOutcome, choose_access
from rootsd.sync.entries import NOTHING_OWN, EntryKind, ListEntry, OwnEntries
from rootsd.sync.overrides import WrittenDenials
from rootsd.sync.reconcile import FilePlan, keep_denials, plan_target
from rootsd.sync.record import GrantedTag, SyncedClient, SyncLock, SyncRecord
from rootsd.sync.targets import TARGETS, SyncTarget, Wanted
from rootsd.wall.kernel.landlock import READ, WRITE, Right, Ruleset, version
from rootsd.wire.decisions import FocusQuery
from rootsd.wire.feed import (
    FEED_VERSION,
    Away,
    BadFeed,
    Changed,
    Connected,
    FeedEvent,
    Given,
    SessionMoved,
)
from rootsd.wire.follow import FeedPart
from rootsd.wire.projects import ProjectsQuery, Selection
from rootsd.wire.request import ControlRequest, encode_request

_WAIT_S = 10.0  # for the next change; failed writes are tried again after it
_TIMEOUT_S = 60.0
_GRACE_S = 5.0  # how long a daemon that restarts may be away before grants are withdrawn
_DEV_NULL = b"/dev/null"


class DaemonDecisions:
    """What the daemon says about projects."""

    def projects(self, query: ProjectsQuery) -> list[dict[str, Any]]:
        """Return the items that the daemon lists. Raises RootsdError."""
        items: list[dict[str, Any]] = _ask(query)["items"]
        return items

    def focus(self) -> str | None:
        """Return the tag of the focus. Raises RootsdError."""
        tag: str | None = _ask(FocusQuery())["tag"]
        return tag


def _ask(request: ControlRequest) -> dict[str, Any]:
    method, params = encode_request(request)
    with rpc.connect_control() as channel:
        channel.settimeout(_TIMEOUT_S)
        return rpc.ask(channel, method, params)


class AccessSync(Struct):
    """Writes the lists of the chosen clients, by settings file, and notes the outcomes.

    `record` must be locked by this process.
    """

    record: SyncRecord
    clients: Mapping[str, SyncedClient]
    outcomes: dict[str, ClientOutcome] = field(default_factory=dict)

    def apply(self, source: DaemonDecisions) -> None:
        """Ask for the decisions, and write them. Raises RootsdError if the daemon fails."""
        own: Mapping[str, OwnEntries] = {}
        with suppress(RootsdError):  # `_write` reports a damaged record
            own = self.record.own()
        wanted = {
            file: _wanted(TARGETS[each.client], each, source, _own_of(own, each))
            for file, each in self.clients.items()
        }
        for file, entries in wanted.items():
            self._write(file, entries)
        self._report()

    def withdraw(self) -> None:
        """Remove all grants, and leave the denials. Failures are reported as outcomes."""
        try:
            own = self.record.own()
        except RootsdError as error:
            sys.stderr.write(f"rootsd sync: {error.message}\n")
            return
        for file in self.clients:
            kept = keep_denials(_own_of(own, self.clients[file]))
            before = self.outcomes.get(file, ClientOutcome())
            self._write(file, Wanted(kept, replace(before, granted=0, problem="")))
        self._report()

    def remove(self, file: str) -> ClientOutcome:
        """Remove everything that is ours from the settings `file`."""
        self._write(file, Wanted())
        self._forget(file)
        return self.outcomes[file]

    def remove_containers(self) -> None:
        """Remove the containers that we made and that are empty by now, where no entry is left.

        Another command may have had an entry in one when `remove` ran. A file that cannot be
        changed now stays in the record. Raises RootsdError.
        """
        for file, own in self.record.own().items():
            if not own.entries:
                # A person accepted the file when it was synced, if that was necessary.
                client = SyncedClient("", file, is_accepted=True)
                with suppress(NotEditable, SettingsUnusable):
                    self._write_file(ListFile.SHARED, client, ())
                    self._forget(file)

    def _forget(self, file: str) -> None:
        """Forget that we made a file: nothing in it is ours, and others wrote in it."""
        everything = self.record.own()
        own = everything.get(file, NOTHING_OWN)
        if own != NOTHING_OWN and not own.entries and not own.made:
            self.record.save_own({**everything, file: NOTHING_OWN})

    def _write(self, file: str, wanted: Wanted) -> None:
        client = self.clients[file]
        target = TARGETS[client.client]
        omitted = wanted.outcome.omitted
        consent = target.in_home(file, f"rootsd sync add {client.client} --yes")
        *earlier, winner = target.merged_files(file)
        try:
            chosen = replace(client, file=winner)
            conflicts = self._write_file(target.format.kept_in, chosen, wanted.entries, consent)
            for each in earlier:  # the winner may be new
                if self.record.own().get(each, NOTHING_OWN) != NOTHING_OWN:
                    self._write_file(
                        target.format.kept_in, replace(client, file=each), (), consent
                    )
            written = _written(target, file, wanted.entries)
            lost = [each for each in written.lost() if each not in omitted]
            open_in = [*written.lost_in(wanted.projects).values()]
        except (RootsdError, NotEditable) as error:
            if isinstance(error, RootsdError):
                problem = error.sentence
            else:
                problem = f"{display_path(Path(winner))} is left alone: {error}"
            self._note(file, ClientOutcome(problem=problem, omitted=omitted))
            return
        others = [f"{entry.name} has another value in the file" for entry in conflicts]
        denied = wanted.outcome.denied - len(lost)
        sentences = tuple(dict.fromkeys((*omitted, *others, *lost, *open_in)))
        self._note(file, replace(wanted.outcome, denied=denied, omitted=sentences))

    def _write_file(
        self,
        kept_in: ListFile,
        client: SyncedClient,
        wanted: tuple[ListEntry, ...],
        consent: str = "",
    ) -> tuple[ListEntry, ...]:
        everything = self.record.own()
        own = everything.get(client.file, NOTHING_OWN)
        plan = FilePlan(None, own)

        def change(text: str | None) -> str | None:
            nonlocal own, plan
            plan = plan_target(kept_in, text, wanted, own)
            if plan.text != text:
                # First the record: after a kill in between, our entries are known as ours.
                own = own.with_more(plan.own)
                if everything.get(client.file) != own:
                    everything[client.file] = own
                    self.record.save_own(everything)
            return plan.text

        file = Path(client.file)
        if not file.parent.is_dir():
            if wanted:
                raise SettingsUnusable(
                    f"{display_path(file.parent)} is missing", "start the client once"
                )
            return ()
        SettingsFile(file, client.is_accepted, consent).update(change)
        if everything.get(client.file, NOTHING_OWN) != plan.own:
            everything[client.file] = plan.own
            self.record.save_own(everything)
        return plan.conflicts

    def _note(self, file: str, outcome: ClientOutcome) -> None:
        before = self.outcomes.get(file, ClientOutcome())
        if outcome.problem and outcome.problem != before.problem:
            sys.stderr.write(f"rootsd sync: {self.clients[file].client}: {outcome.problem}\n")
        self.outcomes[file] = outcome

    def _report(self) -> None:
        with suppress(RootsdError):  # a full disk: the problem is in the log
            if self.record.outcomes() != self.outcomes:
                self.record.save_outcomes(self.outcomes)


def preview(
    state: bytes, target: SyncTarget, client: SyncedClient, source: DaemonDecisions
) -> tuple[str | None, str | None, Wanted]:
    """Return the text of a client's file, the text after a sync, and what is wanted in it.

    Raises RootsdError.
    """
    place = target.merged_files(client.file)[-1]
    own = SyncRecord(state).own().get(place, NOTHING_OWN)
    wanted = _wanted(target, client, source, own)
    file = SettingsFile(Path(place), client.is_accepted)
    before = file.read()
    try:
        return before, plan_target(target.format.kept_in, before, wanted.entries, own).text, wanted
    except NotEditable as error:
        raise SettingsUnusable(f"{display_path(file.path)}: {error}", "") from error


def _wanted(
    target: SyncTarget, client: SyncedClient, source: DaemonDecisions, own: OwnEntries
) -> Wanted:
    denied = source.projects(ProjectsQuery("/", verdict=Verdict.DENIED))
    tag = source.focus() if client.granted is GrantedTag.FOCUS else client.tag
    published: list[dict[str, Any]] = []
    if tag is not None:
        query = ProjectsQuery("/", select=Selection.PUBLISHED, tag=tag)
        published = source.projects(query)
    places = {entry.place for entry in keep_denials(own)}

    def is_written(path: str) -> bool:
        entries = target.denial(path)
        return not isinstance(entries, str) and any(entry.place in places for entry in entries)

    wanted = target.entries(choose_access(denied, published, tag, is_written))
    if not (target.format.merges or target.format.replaced_by):
        return wanted
    everything = source.projects(ProjectsQuery("/", select=Selection.PUBLISHED))
    paths = [item["path"] for item in everything if item["kind"] != "uri" and item["path"]]
    return replace(wanted, projects=tuple(paths))


def _own_of(own: Mapping[str, OwnEntries], client: SyncedClient) -> OwnEntries:
    """Return what is ours in the file that has the lists of a client."""
    files = TARGETS[client.client].merged_files(client.file)
    return next((own[file] for file in reversed(files) if file in own), NOTHING_OWN)


def _written(target: SyncTarget, file: str, entries: Iterable[ListEntry]) -> WrittenDenials:
    names = tuple(entry.name for entry in entries if entry.kind is EntryKind.DENIAL)
    return WrittenDenials(target, file, names, os.environ)


class _Ended(BaseException):
    """A signal asks the process to end. No handler of errors may catch it."""


def _known_clients(record: SyncRecord) -> dict[str, SyncedClient]:
    """Return what was chosen, without clients that this version does not know."""
    chosen = record.clients()
    return {file: each for file, each in chosen.items() if each.client in TARGETS}


def run(state: bytes, is_stopped: Callable[[], bool], ready_fd: int | None = None) -> int:
    """Run until a signal comes, or until the daemon is gone and `is_stopped` returns true.

    It tells the pipe `ready_fd` and the service manager when it has the lock. Raises Busy if
    another process does this, and what the record raises.
    """
    record = SyncRecord(state)
    lock = SyncLock.acquire(record)
    if ready_fd is not None:
        report_ready(ready_fd)
    with make_service_notifier() as manager:
        manager.ready()
    clients = _known_clients(record)
    work = AccessSync(record, clients)
    ending = _on_signals()
    try:
        _confine(record, clients.values())
        if not clients:
            sys.stderr.write("rootsd sync: no client is synced (try: rootsd sync add CLIENT)\n")
            return Exit.OK
        _follow(work, is_stopped, ending)
    except _Ended:
        pass
    finally:
        ending.is_busy = True
        work.withdraw()
        lock.release()
    return Exit.OK


def withdraw(state: bytes) -> int:
    """Remove all grants in place of a process that was killed. Raises Busy if one runs."""
    record = SyncRecord(state)
    lock = SyncLock.acquire(record)
    try:
        AccessSync(record, _known_clients(record)).withdraw()
    finally:
        lock.release()
    return Exit.OK


Result = TypeVar("Result")


class _Ending(Struct):
    """Whether a signal came, and whether it must wait until a write is done."""

    is_asked: bool = False
    is_busy: bool = True

    def handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.is_asked = True
        if not self.is_busy:
            self.is_busy = True
            raise _Ended

    def wait(self, wait: Callable[[], Result]) -> Result:
        """Return what `wait` returns. Raise _Ended if a signal comes before or during the call."""
        self.is_busy = False
        try:
            if self.is_asked:
                raise _Ended
            return wait()
        finally:
            self.is_busy = True


def _on_signals() -> _Ending:
    ending = _Ending()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ending.handle)
    return ending


def _follow(work: AccessSync, is_stopped: Callable[[], bool], ending: _Ending) -> None:
    following = _Following(work)
    while True:
        for event in ending.wait(partial(following.feed.wait, _WAIT_S)):
            following.take(event)
        following.update()
        if following.lost_at is not None and is_stopped():
            return


class _Following:
    """What the process knows about the daemon. `lost_at` is None while it follows one."""

    def __init__(self, work: AccessSync) -> None:
        self.feed = Feed({"version": FEED_VERSION, "part": FeedPart.ROOTS.value})
        self.lost_at: float | None = time.monotonic()
        self._work = work
        self._is_hidden = False
        self._has_withdrawn = False

    def take(self, event: FeedEvent) -> None:
        """Note what has happened."""
        match event:
            case Connected():
                self._is_hidden = False
            case Changed():
                self.lost_at = None
            case Given() | SessionMoved():
                pass  # this is for walls
            case Away(why):
                self._lose(why)

    def update(self) -> None:
        """Write the decisions, or withdraw the grants if no daemon is there for some seconds."""
        if self.lost_at is None:
            try:
                if not self._is_hidden:
                    hide_process()
                    self._is_hidden = True
                self._work.apply(DaemonDecisions())
                self._has_withdrawn = False
            except RootsdError as error:
                self.feed.reject()
                self._lose(error)
        elif not self._has_withdrawn and time.monotonic() - self.lost_at > _GRACE_S:
            self._work.withdraw()
            self._has_withdrawn = True

    def _lose(self, why: RootsdError) -> None:
        self.lost_at = self.lost_at or time.monotonic()
        if isinstance(why, BadFeed | rpc.DaemonError):  # it is too old, or does not like us
            sys.stderr.write(f"rootsd sync: {why.message}\n")


def _confine(record: SyncRecord, clients: Iterable[SyncedClient]) -> None:
    """Allow this process to write only the folders of the settings files and its own."""
    if sys.platform != "linux" or not version():
        return
    sys.dont_write_bytecode = True
    folders = {record.folder, *(SettingsFile(Path(each.file)).folder() for each in clients)}
    try:
        rules = Ruleset()
        rules.allow(b"/", READ)
        rules.allow(_DEV_NULL, READ | Right.WRITE_FILE)
        for folder in folders:
            with suppress(FileNotFoundError):
                rules.allow(os.fsencode(folder), WRITE)
        rules.restrict()
    except OSError as error:
        sys.stderr.write(f"rootsd sync is not confined: {error.strerror}\n")
