"""The daemon: builds everything, runs it in one task group, and ends it cleanly.

Order at start: locks, configuration, store, the approved folders verified, sockets, and only then
"ready"; the first scan goes on behind. SIGTERM and SIGINT end the daemon, SIGHUP reads the
configuration again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from rootsd import __version__
from rootsd.app.arrival import tell_launcher
from rootsd.app.collecting import spare_what_is_loaded
from rootsd.app.configuration import Configuration
from rootsd.app.control.desk import Desk, Means
from rootsd.app.control.door import Door, HelperView, lacking, open_gate
from rootsd.app.control.executed import Executed
from rootsd.app.control.facts import Sight
from rootsd.app.control.items import rfc3339
from rootsd.app.control.origins import Origins
from rootsd.app.control.refusals import Records
from rootsd.app.deciding.answering import Requests
from rootsd.app.deciding.backups import Backups
from rootsd.app.deciding.chronicle import Chronicle
from rootsd.app.deciding.expiries import Expiries
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import real_path
from rootsd.app.deciding.repairs import Repairs
from rootsd.app.discovery.service import Senses
from rootsd.app.discovery.surveyor import Surveyor
from rootsd.app.health import Health, check_daemon
from rootsd.app.listening import Claim, Listening, refuges
from rootsd.app.noticing import Noticing
from rootsd.app.relief import keep_giving_back
from rootsd.app.sessions.admission import Admission
from rootsd.app.sessions.asking import Asking
from rootsd.app.sessions.history import history
from rootsd.app.sessions.hosts import Hosts
from rootsd.app.sessions.log import GENERATION_BYTES, SessionLog
from rootsd.app.sessions.patience import Patience
from rootsd.app.sessions.reception import Reception
from rootsd.app.sessions.registry import Sessions
from rootsd.app.sessions.supplier import Supplier
from rootsd.app.signals import heed_signals
from rootsd.app.sparing import begin_log
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ParentChange
from rootsd.core.errors import RootsdError
from rootsd.core.focus import Focus
from rootsd.core.model import Actor
from rootsd.core.paths import RefusedPlaces
from rootsd.host import desktop, folders
from rootsd.host.alarm import make_alarm
from rootsd.host.allocator import hold_little
from rootsd.host.clock import moment, utc_now
from rootsd.host.config import Config, read_config
from rootsd.host.confine import Confinement, confine
from rootsd.host.disk.answering import Answering
from rootsd.host.disk.mounttable import MountTable
from rootsd.host.disk.plain import is_plain
from rootsd.host.disk.safety import Surroundings
from rootsd.host.disk.verify import RootVerifier
from rootsd.host.helper.at_work import ask_worked_on
from rootsd.host.helper.link import Helper
from rootsd.host.living import Living
from rootsd.host.lock import DaemonLock, LockRecord
from rootsd.host.places import Places
from rootsd.host.service.notify import Notifier, notifier
from rootsd.host.storage.journal import Journal
from rootsd.host.storage.revisions import first_revision
from rootsd.host.storage.store import Loaded, Store
from rootsd.wire.running import ConfigStatus, DaemonStatus, SessionStatus
from rootsd.wire.sessions import SessionItem

log = logging.getLogger(__name__)

_BROKEN = 1
_INDEX_FILE = "discovery.index"
_SESSIONS_FILE = "sessions.ndjson"


def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
    """Run the daemon until it is told to stop; the exit status.

    On the pipe `ready_fd` it writes `ready` and a newline once the sockets accept. `helper` was
    started before, and remains the caller's to close. Raises Busy where another daemon uses the
    same folders, BadConfig, and what the store raises.
    """
    begin_log()
    hold_little()
    run_folder = folders.run_folder()
    record = LockRecord(
        os.getpid(),
        __version__,
        {
            "config": os.fsdecode(places.config),
            "state": os.fsdecode(places.state),
            "data": os.fsdecode(places.data),
            "run": os.fsdecode(run_folder.path),
        },
    )
    state = Path(os.fsdecode(places.state))
    with ExitStack() as stack:
        supervisor = stack.enter_context(notifier())
        # The state folder guards the store, the runtime folder the sockets; with unusual
        # environments two daemons can meet in either alone.
        stack.enter_context(DaemonLock.acquire(state, record))
        lock = stack.enter_context(DaemonLock.acquire(Path(os.fsdecode(run_folder.path)), record))
        config = read_config(places.config_file)
        store = Store.open(state, Path(os.fsdecode(places.data)))
        stack.callback(store.close)
        written = (places.state, run_folder.path, *refuges())
        own = (places.config, places.log, places.data, *written)
        refused = RefusedPlaces(folders.home_folder(), own)
        # The data folder is missing where a service file of an older version protects it.
        data = [places.data] if os.path.isdir(places.data) else []
        confined = confine((*written, *data))

        async def serve() -> int:
            configuration = Configuration(places.config_file, config, utc_now)
            daemon = Daemon(store, refused, configuration, state, helper, supervisor)
            daemon.confined = confined
            on_ready = partial(tell_launcher, ready_fd, daemon.stop)
            await daemon.serve(Claim(run_folder, lock, record), on_ready)
            return daemon.status

        return anyio.run(serve)


def _catalog_of(loaded: Loaded, places: RefusedPlaces) -> Catalog:
    """Return the catalog that a store holds."""
    counters = loaded.next_rule, loaded.events
    return Catalog.of(loaded.projects, loaded.rules, places, *counters, loaded.names)


class Daemon:
    """One running daemon; also what `status` says about it. Make it in the event loop.

    `status` is the exit status, once `serve` has returned.
    """

    def __init__(
        self,
        store: Store,
        places: RefusedPlaces,
        configuration: Configuration,
        state: Path,
        helper: Helper,
        supervisor: Notifier,
    ) -> None:
        self._configuration = configuration
        self._places = places
        self._helper = helper
        loaded = store.load()
        self._mounted = MountTable()
        self._answering = Answering(self._mounted.remote)
        self._alarm = make_alarm()
        self._hosts = Hosts(HelperView(helper).ancestors, Living, moment().boot)
        self._ledger = Ledger(
            _catalog_of(loaded, places),
            store,
            Patience(lambda: RootVerifier(self._judge()), self._mounted.remote, self._doubt),
            expiries=Expiries(moment, self._alarm, self._hosts.is_over),
            now=utc_now,
            first_revision=first_revision(state, utc_now()),
            focus=Focus(loaded.focus),
        )
        self._repairs = Repairs(self._ledger, loaded.note, loaded.cause)
        self._store_warning = loaded.warning
        self._backups = Backups(store, self._ledger, utc_now)
        senses = Senses(worked_on=partial(ask_worked_on, helper), surroundings=self._judge())
        self._surveyor = Surveyor(
            self._ledger, self._discovery_died, state / _INDEX_FILE, senses, self._answering
        )
        self._sight = Sight(helper, self._surveyor.parents)
        self.status = 0
        self.confined: tuple[Confinement, str | None] = (Confinement.NONE, None)
        self._asking = Asking(
            self._ledger,
            look=self._surveyor.look,
            propose=self._surveyor.propose,
            sessions=self._hosts,
            clock=time.monotonic,
        )
        self._noticing = Noticing(self._ledger, self._asking, clock=time.monotonic)
        self._since = utc_now()
        self._journal = Journal(state / _SESSIONS_FILE, GENERATION_BYTES)
        self._session_log = SessionLog(self._journal, __version__, utc_now)
        self._sessions = Sessions(self._session_log, utc_now)
        self._is_new = loaded.is_new
        records = Records.kept_in(state)
        self._gate = open_gate(
            loaded.guard, helper, self._ledger.note, self._sessions.pids, utc_now, records
        )
        self._door = self._make_door(store, state)
        self._reception = self._make_reception()
        self._admission: Admission | None = None
        self._supervisor = supervisor
        self._store = store
        self._stopping = anyio.Event()

    def _judge(self) -> Surroundings:
        return Surroundings(
            os.getuid(),
            places=lambda: self._ledger.catalog.places,
            mounted=self._mounted.now,
            answers=self._answering.answers,
        )

    def _make_door(self, store: Store, state: Path) -> Door:
        chronicle = Chronicle(self._ledger, self._gate, store)
        found = partial(real_path, resolve=self._answering.real_path)
        means = Means(
            self._ledger,
            self._surveyor,
            self,
            chronicle,
            self._noticing,
            note_on=self._asking.note_on,
            requests=Requests(self._asking.session_asking_for, self._hosts.hold),
            facts_of=self._sight.facts_of,
            origins_of=Origins(self._answering.answers).of,
            executed_in=Executed(self._answering.answers).of,
            real_path=found,
            is_plain=partial(is_plain, self._mounted),
            state=bytes(state),
        )
        return Door(self._gate, Desk(means))

    def _make_reception(self) -> Reception:
        scanned = self._surveyor.scanned
        supplier = Supplier(self._ledger, self._answering.real_path, self._asking, scanned)
        return Reception(
            self._sessions,
            supplier,
            self._hosts,
            connected=self._gate.remember,
            outdated=self._fail,
        )

    async def serve(self, claim: Claim, on_ready: Callable[[], None]) -> None:
        """Serve both sockets until `stop`."""
        # Loading proves nothing: what was approved is looked at before anybody can ask, and the
        # configuration, or a newer version, may refuse places that were none to refuse then.
        config = self._configuration.config
        await self._hosts.recall(self._ledger.catalog.bound.values())
        await self._ledger.set_places(config.limiting(self._places))
        await self._gate.begin(config.approval, is_new=self._is_new)
        with ExitStack() as stack:
            listening = stack.enter_context(
                Listening(claim, control=self._door.serve, mcp=self._reception.serve)
            )
            stack.callback(self._alarm.close)
            stack.callback(self._mounted.close)
            async with anyio.create_task_group() as watch:
                # From before "ready" until all threads have ended: a signal must not simply kill.
                await watch.start(heed_signals, self.stop, self.reload)
                try:
                    await self._serve_until_stopped(listening, on_ready)
                finally:
                    # Also after a bug: threads that live on would keep the process from ending.
                    with anyio.CancelScope(shield=True):
                        await to_thread.run_sync(self._surveyor.stop)
                watch.cancel_scope.cancel()
            self._session_log.write_now()
        await self._ledger.save_now()

    async def _serve_until_stopped(
        self, listening: Listening, on_ready: Callable[[], None]
    ) -> None:
        config = self._configuration.config
        can_read = partial(self._store.events, limit=1)
        check = partial(check_daemon, self._ledger, can_read, lambda: listening.control_path)
        health = Health(
            self._supervisor, self._ledger, clients=self._sessions.__len__, check=check
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._ledger.keep_saving)
            group.start_soon(self._ledger.keep_expiring)
            group.start_soon(self._hosts.keep, self._ledger.current)
            group.start_soon(self._backups.keep)
            group.start_soon(keep_giving_back, self._ledger, self._store)
            group.start_soon(self._surveyor.take_in)
            group.start_soon(self._surveyor.follow_roots)
            group.start_soon(self._asking.carry_out)
            group.start_soon(self._asking.follow_decisions)
            group.start_soon(self._session_log.keep)
            if desktop.is_possible():
                group.start_soon(self._noticing.keep_telling)
            group.start_soon(self._gate.keep_remembering)
            self._admission = Admission(listening.mcp, listening.control, config.sessions)
            group.start_soon(self._listen, listening)
            self._surveyor.start(config.parents)
            await group.start(self._configuration.keep_following, self._take_over)
            spare_what_is_loaded()
            log.info("ready: %d roots published", len(self._ledger.catalog.roots))
            on_ready()
            self._supervisor.ready()
            group.start_soon(health.keep_telling)
            await self._stopping.wait()
            log.info("stopping")
            self._supervisor.stopping()
            group.cancel_scope.cancel()

    def about(self) -> DaemonStatus:
        """Version, pid, start, confinement."""
        since, confined = rfc3339(self._since), self.confined[0].value
        return DaemonStatus(version=__version__, pid=os.getpid(), since=since, confined=confined)

    def config_status(self) -> ConfigStatus:
        """The configuration in force."""
        return self._configuration.status()

    def sessions(self) -> list[SessionStatus]:
        """The MCP connections."""
        return self._sessions.status()

    def session_items(self) -> list[SessionItem]:
        """The MCP connections, with what each was given last."""
        return self._sessions.items()

    def session_history(self, last: int) -> list[SessionItem]:
        """The `last` sessions that began, and what each was given; called in a thread."""
        return history(self._journal.read, last)

    def closed_connections(self) -> dict[str, int]:
        """How many connections were closed from this side, and why."""
        return self._admission.closed() if self._admission else {}

    def degraded(self, *, is_look: bool) -> list[str]:
        """What does not work as it should; with `is_look` a person is shown it now."""
        noted = self._repairs.told(is_look=is_look)
        noted += filter(None, (self._store_warning, self.confined[1]))
        noted += [*lacking(self._helper), *self._configuration.degraded()]
        noted += self._admission.degraded() if self._admission else []
        return [*noted, *self._backups.degraded()]

    async def reload(self, actor: Actor | None = None) -> None:
        """Read the configuration again, on the command of `actor`; None for a signal.

        Raises BadConfig, and then the old one stays.
        """
        with self._supervisor.reload():
            await self._configuration.reload(self._take_over, actor)

    def stop(self) -> None:
        """End the daemon."""
        self._stopping.set()

    async def _take_over(self, config: Config, changes: Sequence[ParentChange]) -> None:
        await self._ledger.set_places(config.limiting(self._places))
        self._surveyor.set_parents(config.parents)
        self._gate.know(config.approval)
        if self._admission:
            self._admission.cap(config.sessions)
        for change in changes:
            try:
                await self._ledger.note(change)
            except RootsdError as error:
                log.warning("the store does not record a change of the parents: %s", error)

    def _doubt(self, paths: Sequence[bytes]) -> None:
        self._surveyor.doubt(paths)

    def _discovery_died(self) -> None:
        # A daemon that sees nothing any more must not go on as if nothing ever changed.
        log.critical("a bug ended discovery (traceback above); stopping, to be started again")
        self._fail()

    def _fail(self) -> None:
        self.status = _BROKEN
        self.stop()

    async def _listen(self, listening: Listening) -> None:
        await listening.serve()
        log.critical("nobody can find the daemon any more; stopping, to be started again")
        self._fail()
