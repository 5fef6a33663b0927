"""Build the daemon, run it in one task group, and shut it down cleanly.

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
from rootsd.confine.daemon import Confinement, confine_daemon
from rootsd.control.dispatch import ControlServices, Dispatcher
from rootsd.control.facts import ExecutedFileFinder, FactsCollector, OriginReader
from rootsd.control.guard import AgentActivity
from rootsd.control.handlers.audit_log import AuditLogHandlers
from rootsd.control.handlers.decisions import SessionRequests
from rootsd.control.references import real_path
from rootsd.control.server import ControlServer, HelperProcessView, helper_problems, make_guard
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ParentChange
from rootsd.core.errors import RootsdError
from rootsd.core.model import Actor, Focus
from rootsd.core.paths import RefusedPlaces
from rootsd.core.timestamps import rfc3339
from rootsd.daemon.admission import AdmissionControl
from rootsd.daemon.configuration import ReloadableConfig
from rootsd.daemon.discovery_adapter import DiscoveryAdapter
from rootsd.daemon.health import HealthReporter, check_daemon
from rootsd.daemon.listeners import RunFolderClaim, SocketListeners, fallback_folders
from rootsd.daemon.notifier import PendingNotifier
from rootsd.daemon.startup import handle_signals, notify_launcher
from rootsd.discovery.service import DiscoveryDependencies
from rootsd.disk.canonical import is_canonical_local
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.mounts import MountTable
from rootsd.disk.safety import FolderSafety
from rootsd.helper.client import Helper
from rootsd.helper.questions import ask_folders_in_use
from rootsd.mcp.sessions.history import SessionLog, read_history
from rootsd.mcp.sessions.registry import SessionRegistry
from rootsd.mcp.sessions.requests import RootRequestQueue
from rootsd.mcp.sessions.server import SessionServer
from rootsd.mcp.sessions.source import LedgerRootsSource
from rootsd.mcp.sessions.tracker import SessionTracker
from rootsd.service.notify import ServiceNotifier, make_service_notifier
from rootsd.state.backups import BackupScheduler
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.ledger import Ledger
from rootsd.state.recovery_notice import RecoveryNotice
from rootsd.state.store.revisions import first_revision
from rootsd.state.store.session_history import SessionHistoryStore
from rootsd.state.store.store import Store, StoredState
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.system import desktop, runtime_dir
from rootsd.system.clock import make_alarm, moment, utc_now
from rootsd.system.config import Config, read_config
from rootsd.system.lock import DaemonLock, LockRecord
from rootsd.system.malloc import limit_malloc
from rootsd.system.places import Places
from rootsd.system.process_exit import ExitWatch
from rootsd.system.rate_limited_log import configure_logging
from rootsd.vcs.verify import RootVerifier
from rootsd.wire.daemon import ConfigStatus, DaemonStatus, SessionItem, SessionStatus

log = logging.getLogger(__name__)

_EXIT_FAILURE = 1
_INDEX_FILE = "discovery.index"
_SESSIONS_FILE = "sessions.db"


def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
    """Run the daemon until it is told to stop; the exit status.

    On the pipe `ready_fd` it writes `ready` and a newline once the sockets accept. `helper` was
    started before, and remains the caller's to close. Raises Busy where another daemon uses the
    same folders, BadConfig, and what the store raises.
    """
    configure_logging()
    limit_malloc()
    run_folder = runtime_dir.find_runtime_dir()
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
        supervisor = stack.enter_context(make_service_notifier())
        # The state folder guards the store, the runtime folder the sockets; with unusual
        # environments two daemons can meet in either alone.
        stack.enter_context(DaemonLock.acquire(state, record))
        lock = stack.enter_context(DaemonLock.acquire(Path(os.fsdecode(run_folder.path)), record))
        config = read_config(places.config_file)
        store = Store.open(state, Path(os.fsdecode(places.data)))
        stack.callback(store.close)
        written = (places.state, run_folder.path, *fallback_folders())
        own = (places.config, places.log, places.data, *written)
        refused = RefusedPlaces(runtime_dir.home_folder(), own)
        # The data folder is missing where a service file of an older version protects it.
        data = [places.data] if os.path.isdir(places.data) else []
        confined = confine_daemon((*written, *data))

        async def serve() -> int:
            configuration = ReloadableConfig(places.config_file, config, utc_now)
            daemon = Daemon(store, refused, configuration, state, helper, supervisor)
            daemon.confined = confined
            on_ready = partial(notify_launcher, ready_fd, daemon.stop)
            await daemon.serve(RunFolderClaim(run_folder, lock, record), on_ready)
            return daemon.status

        return anyio.run(serve)


def _load_catalog(loaded: StoredState, places: RefusedPlaces) -> Catalog:
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
        configuration: ReloadableConfig,
        state: Path,
        helper: Helper,
        supervisor: ServiceNotifier,
    ) -> None:
        self._configuration = configuration
        self._places = places
        self._helper = helper
        loaded = store.load()
        self._mounted = MountTable()
        self._answering = HungMountDetector(self._mounted.remote)
        self._alarm = make_alarm()
        self._hosts = SessionTracker(HelperProcessView(helper).ancestors, ExitWatch, moment().boot)
        self._ledger = Ledger(
            _load_catalog(loaded, places),
            store,
            TimeoutVerifier(
                lambda: RootVerifier(self._judge()), self._mounted.remote, self._doubt
            ),
            expiries=ExpiryTracker(moment, self._alarm, self._hosts.is_over),
            now=utc_now,
            first_revision=first_revision(state, utc_now()),
            focus=Focus(loaded.focus),
        )
        self._repairs = RecoveryNotice(self._ledger, loaded.note, loaded.cause)
        self._store_warning = loaded.warning
        self._backups = BackupScheduler(store, self._ledger, utc_now)
        self._surveyor = self._make_discovery(state)
        self._sight = FactsCollector(helper, self._surveyor.parents)
        self.status = 0
        self.confined: tuple[Confinement, str | None] = (Confinement.NONE, None)
        self._asking = RootRequestQueue(
            self._ledger,
            observe=self._surveyor.look,
            propose=self._surveyor.propose,
            sessions=self._hosts,
            clock=time.monotonic,
        )
        self._noticing = PendingNotifier(self._ledger, self._asking, clock=time.monotonic)
        self._since = utc_now()
        self._session_store = SessionHistoryStore(state / _SESSIONS_FILE)
        self._session_log = SessionLog(self._session_store, utc_now)
        self._sessions = SessionRegistry(self._session_log, utc_now)
        self._is_new = loaded.is_new
        records = AgentActivity.kept_in(state)
        self._gate = make_guard(
            loaded.guard, helper, self._ledger.note, self._sessions.pids, utc_now, records
        )
        self._door = self._make_door(store, state)
        self._reception = self._make_reception()
        self._admission: AdmissionControl | None = None
        self._supervisor = supervisor
        self._store = store
        self._stopping = anyio.Event()

    def _judge(self) -> FolderSafety:
        return FolderSafety(
            os.getuid(),
            places=lambda: self._ledger.catalog.places,
            mounted=self._mounted.now,
            answers=self._answering.answers,
        )

    def _make_discovery(self, state: Path) -> DiscoveryAdapter:
        dependencies = DiscoveryDependencies(
            find_in_use=partial(ask_folders_in_use, self._helper), safety=self._judge()
        )
        return DiscoveryAdapter(
            self._ledger, self._discovery_died, state / _INDEX_FILE, dependencies, self._answering
        )

    def _make_door(self, store: Store, state: Path) -> ControlServer:
        chronicle = AuditLogHandlers(self._ledger, self._gate, store)
        found = partial(real_path, resolve=self._answering.real_path)
        means = ControlServices(
            self._ledger,
            self._surveyor,
            self,
            chronicle,
            self._noticing,
            note_on=self._asking.note_on,
            requests=SessionRequests(self._asking.session_requesting, self._hosts.track),
            facts_of=self._sight.facts_of,
            origins_of=OriginReader(self._answering.answers).of,
            executed_in=ExecutedFileFinder(self._answering.answers).of,
            real_path=found,
            is_plain=partial(is_canonical_local, self._mounted),
            state=bytes(state),
        )
        return ControlServer(self._gate, Dispatcher(means))

    def _make_reception(self) -> SessionServer:
        scanned = self._surveyor.scanned
        supplier = LedgerRootsSource(
            self._ledger, self._answering.real_path, self._asking, scanned
        )
        return SessionServer(
            self._sessions,
            supplier,
            self._hosts,
            connected=self._gate.remember,
            outdated=self._fail,
        )

    async def serve(self, claim: RunFolderClaim, on_ready: Callable[[], None]) -> None:
        """Serve both sockets until `stop`."""
        # Loading proves nothing: what was approved is looked at before anybody can ask, and the
        # configuration, or a newer version, may refuse places that were none to refuse then.
        config = self._configuration.config
        await self._hosts.restore(self._ledger.catalog.session_bound.values())
        await self._ledger.set_places(config.limiting(self._places))
        await self._gate.begin(config.approval, is_new=self._is_new)
        with ExitStack() as stack:
            listening = stack.enter_context(
                SocketListeners(claim, control=self._door.serve, mcp=self._reception.serve)
            )
            stack.callback(self._alarm.close)
            stack.callback(self._mounted.close)
            async with anyio.create_task_group() as watch:
                # From before "ready" until all threads have ended: a signal must not simply kill.
                await watch.start(handle_signals, self.stop, self.reload)
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
        self, listening: SocketListeners, on_ready: Callable[[], None]
    ) -> None:
        config = self._configuration.config
        can_read = partial(self._store.events, limit=1)
        check = partial(check_daemon, self._ledger, can_read, lambda: listening.control_path)
        health = HealthReporter(
            self._supervisor, self._ledger, clients=self._sessions.__len__, check=check
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._ledger.keep_saving)
            group.start_soon(self._ledger.keep_expiring)
            group.start_soon(self._hosts.run, self._ledger.current)
            group.start_soon(self._backups.keep)
            group.start_soon(self._surveyor.forward_observations)
            group.start_soon(self._surveyor.follow_roots)
            group.start_soon(self._asking.process_queue)
            group.start_soon(self._asking.follow_decisions)
            group.start_soon(self._session_log.run)
            if desktop.is_available():
                group.start_soon(self._noticing.keep_telling)
            group.start_soon(self._gate.keep_remembering)
            self._admission = AdmissionControl(listening.mcp, listening.control, config.sessions)
            group.start_soon(self._listen, listening)
            self._surveyor.start(config.parents)
            await group.start(self._configuration.keep_following, self._take_over)
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
        return read_history(self._session_store, last)

    def closed_connections(self) -> dict[str, int]:
        """How many connections were closed from this side, and why."""
        return self._admission.closed() if self._admission else {}

    def degraded(self, *, is_look: bool) -> list[str]:
        """What does not work as it should; with `is_look` a person is shown it now."""
        noted = self._repairs.told(is_look=is_look)
        noted += filter(None, (self._store_warning, self.confined[1]))
        noted += [*helper_problems(self._helper), *self._configuration.degraded()]
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
        self.status = _EXIT_FAILURE
        self.stop()

    async def _listen(self, listening: SocketListeners) -> None:
        await listening.serve()
        log.critical("nobody can find the daemon any more; stopping, to be started again")
        self._fail()
