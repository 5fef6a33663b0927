"""Build the daemon, run it in one task group, and shut it down cleanly.

The daemon starts in this order: store, verification of the approved folders, sockets. Only then it
is "ready", while the first scan continues. SIGTERM and SIGINT stop it, and SIGHUP reloads the
configuration.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec import Struct

from rootsd.config.configuration import Config
from rootsd.control.attempts import (
    AGENT_COMMANDS_FILE,
    REFUSED_FILE,
    AttemptRecorder,
    AttemptSummary,
)
from rootsd.control.dispatch import Dispatcher
from rootsd.control.guard import CommandGuard
from rootsd.control.inspector import Inspector
from rootsd.control.process_view import ProcessView
from rootsd.control.project_reader import ProjectReader
from rootsd.control.references import real_path
from rootsd.control.server import ControlServer
from rootsd.control.services import ControlServices
from rootsd.control.session_requests import SessionRequests
from rootsd.control.wardens import WallServices, WardenRegistry
from rootsd.core.catalog import Catalog
from rootsd.core.changes import AuditNote, ChangeVerb
from rootsd.core.errors import RootsdError
from rootsd.core.guard_setting import Guard
from rootsd.core.model import Actor, Focus, LapseReason
from rootsd.core.paths import RefusedPlaces
from rootsd.core.policy import MachinePolicy
from rootsd.daemon.admission import AdmissionControl
from rootsd.daemon.configuration import ReloadableConfig
from rootsd.daemon.daemon_view import DaemonView
from rootsd.daemon.discovery_adapter import DiscoveryAdapter
from rootsd.daemon.garbage import freeze_scanned
from rootsd.daemon.health import HealthReporter, HelperProbe, check_daemon
from rootsd.daemon.listeners import RunFolderClaim, SocketListeners
from rootsd.daemon.notifier import PendingNotifier
from rootsd.daemon.policy import ReloadablePolicy
from rootsd.daemon.prompt_file import PromptFile
from rootsd.daemon.startup import handle_signals
from rootsd.discovery.service import DiscoveryDependencies
from rootsd.disk.canonical import is_canonical_local
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.mounts import process_mounts
from rootsd.disk.safety import FolderSafety
from rootsd.helper.client import Helper
from rootsd.helper.folders import ask_folders_in_use, ask_folders_of_tools
from rootsd.mcp.sessions.history import SessionLog
from rootsd.mcp.sessions.registry import SessionRegistry
from rootsd.mcp.sessions.requests import RootRequestQueue
from rootsd.mcp.sessions.server import SessionServer
from rootsd.mcp.sessions.source import LedgerRootsSource
from rootsd.mcp.sessions.tracker import SessionTracker
from rootsd.notify.desktop import this_desktop
from rootsd.places.base_folders import WALLS
from rootsd.processes.process_exit import ExitWatch
from rootsd.service.notify import ServiceNotifier
from rootsd.state.backups import BackupScheduler
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.clock import make_alarm, read_clocks, utc_now
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.ledger import Ledger
from rootsd.state.recovery_notice import RecoveryNotice
from rootsd.state.store.revisions import first_revision
from rootsd.state.store.session_history import SessionHistoryStore
from rootsd.state.store.store import Store, StoredState
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.sync.record import SyncRecord
from rootsd.vcs.git.worktrees import recall_checkouts
from rootsd.vcs.verify import RootVerifier
from rootsd.wall.kernel.daemon_rights import Confinement

log = logging.getLogger(__name__)

_EXIT_FAILURE = 1
_INDEX_FILE = "discovery.index"
_SESSIONS_FILE = "sessions.db"


def _load_catalog(loaded: StoredState, places: RefusedPlaces, policy: MachinePolicy) -> Catalog:
    """Return the catalog that a store holds, under the policy from its first moment.

    This also looks at the main checkouts in it, before anything looks at their worktrees.
    """
    counters = loaded.next_rule, loaded.events
    catalog = Catalog.of(loaded.projects, loaded.rules, places, *counters, loaded.names, policy)
    recall_checkouts(catalog.projects)
    return catalog


class DaemonSettings(Struct, frozen=True):
    """What a daemon is told at its start. `state` is the folder of the store.

    `confined` says what the kernel lets the daemon do, and a warning if that is too much.
    """

    places: RefusedPlaces
    configuration: ReloadableConfig
    policy: ReloadablePolicy
    state: Path
    confined: tuple[Confinement, str | None]


class Daemon:
    """One running daemon. Make it in the event loop.

    `status` is the exit status once `serve` has returned.
    """

    status = 0

    def __init__(
        self,
        settings: DaemonSettings,
        store: Store,
        helper: Helper,
        supervisor: ServiceNotifier,
    ) -> None:
        configuration, policy = settings.configuration, settings.policy
        places, state = settings.places, settings.state
        self._configuration, self._policy, self._places = configuration, policy, places
        self._helper, self._store, self._state = helper, store, state
        loaded = store.load()
        self._mounts = process_mounts()
        self._hung_mounts = HungMountDetector(self._mounts.remote)
        self._alarm = make_alarm()
        process_view = ProcessView(helper)
        self._session_tracker = SessionTracker(
            process_view.ancestors, ExitWatch, read_clocks().boot
        )
        self._ledger = Ledger(
            _load_catalog(loaded, places, policy.policy),
            store,
            TimeoutVerifier(
                lambda: RootVerifier(self._folder_safety()), self._mounts.remote, self._recheck
            ),
            expiries=ExpiryTracker(read_clocks, self._alarm, self._session_tracker.is_over),
            now=utc_now,
            first_revision=first_revision(state, utc_now()),
            focus=Focus(loaded.focus),
        )
        self._backups = BackupScheduler(store, self._ledger, utc_now)
        self._discovery = self._make_discovery(state)
        self._reader = ProjectReader(helper, self._discovery.parents, self._hung_mounts.responds)
        self._changes = ChangeSignal()
        self._root_requests = self._make_root_requests()
        self._notifier = self._make_notifier(configuration.config)
        self._inspector = self._make_inspector(configuration.config)
        self._session_store = SessionHistoryStore(state / _SESSIONS_FILE)
        self._session_log = SessionLog(self._session_store, utc_now)
        self._sessions = SessionRegistry(self._session_log, utc_now, self._changes)
        self._is_new = loaded.is_new
        self._guard = CommandGuard(
            loaded.guard or Guard.AGENTS,
            view=process_view,
            note=self._ledger.note,
            connected=self._sessions.pids,
            now=utc_now,
            refused=self._recorder(ChangeVerb.REFUSED, state / REFUSED_FILE),
            agent_commands=self._recorder(ChangeVerb.AGENT_COMMAND, state / AGENT_COMMANDS_FILE),
        )
        self._guard.allowed = loaded.allowed
        self._source = self._make_source()
        self._wardens = self._make_wardens()
        self._session_server = self._make_session_server()
        self._supervisor, self._stopping = supervisor, anyio.Event()
        self._view = self._make_view(loaded, settings)
        self._control_server = self._make_control_server()

    def _folder_safety(self) -> FolderSafety:
        return FolderSafety(
            os.getuid(),
            places=lambda: self._ledger.catalog.places,
            mounted=self._mounts.now,
            responds=self._hung_mounts.responds,
        )

    def _recorder(self, verb: ChangeVerb, file: Path) -> AttemptRecorder:
        summary = AttemptSummary(file)
        return AttemptRecorder(verb, summary, self._ledger.note, time.monotonic, utc_now)

    def _make_discovery(self, state: Path) -> DiscoveryAdapter:
        dependencies = DiscoveryDependencies(
            find_in_use=partial(ask_folders_in_use, self._helper),
            find_tools=partial(ask_folders_of_tools, self._helper),
            safety=self._folder_safety(),
        )
        return DiscoveryAdapter(
            self._ledger,
            self._discovery_died,
            state / _INDEX_FILE,
            dependencies,
            self._hung_mounts,
            self._folder_safety(),
        )

    def _make_notifier(self, config: Config) -> PendingNotifier:
        return PendingNotifier(
            self._ledger, self._root_requests, settings=config.notify, show=this_desktop().show
        )

    def _make_inspector(self, config: Config) -> Inspector:
        inspector = Inspector(
            self._ledger, self._reader, self._notifier.on_changed, config.approval.on_change
        )
        self._discovery.on_observed = inspector.note
        return inspector

    def _make_root_requests(self) -> RootRequestQueue:
        return RootRequestQueue(
            self._ledger,
            observe=self._discovery.observe,
            propose=self._discovery.propose,
            sessions=self._session_tracker,
            clock=time.monotonic,
            changes=self._changes,
        )

    def _make_view(self, loaded: StoredState, settings: DaemonSettings) -> DaemonView:
        state = os.fsencode(settings.state)
        confinement, warning = settings.confined
        return DaemonView(
            since=utc_now(),
            confinement=confinement,
            walls=state + WALLS,
            warnings=[each for each in (loaded.warning, warning) if each],
            configuration=self._configuration,
            policy=self._policy,
            registry=self._sessions,
            session_store=self._session_store,
            recovery_notice=RecoveryNotice(self._ledger, loaded.note, loaded.cause),
            helper_probe=HelperProbe(self._helper),
            backups=self._backups,
            synced=SyncRecord(state),
            reload=self.reload,
            stop=self.stop,
        )

    def _make_control_server(self) -> ControlServer:
        services = ControlServices(
            ledger=self._ledger,
            discovery=self._discovery,
            daemon=self._view,
            command_guard=self._guard,
            archive=self._store,
            more_routes=self._notifier.routes,
            wall=self._make_wall_services(),
            note_on=self._root_requests.last_note_on,
            requests=SessionRequests(
                self._root_requests.sessions_requesting,
                self._session_tracker.track,
                self._wardens.sessions,
            ),
            reader=self._reader,
            inspector=self._inspector,
            real_path=partial(real_path, resolve=self._hung_mounts.real_path),
            is_canonical=partial(is_canonical_local, self._mounts),
            state=bytes(self._state),
            changes=self._changes,
        )
        return ControlServer(self._guard, Dispatcher(services))

    def _make_source(self) -> LedgerRootsSource:
        return LedgerRootsSource(
            self._ledger, self._hung_mounts.real_path, self._root_requests, self._discovery.scanned
        )

    def _make_wardens(self) -> WardenRegistry:
        lineage_of = self._session_tracker.lineage_of
        wardens = WardenRegistry(self._ledger, utc_now, lineage_of, self._changes)
        wardens.on_changed = self._notifier.on_changed
        return wardens

    def _make_wall_services(self) -> WallServices:
        return WallServices(
            self._wardens,
            settings=lambda: self._policy.wall_settings(self._configuration.config.wall),
            canonical=self._source.canonical,
            session_start=self._source.session_start,
            sessions_of=self._session_tracker.sessions_of,
            servers=self._session_server,
        )

    def _make_session_server(self) -> SessionServer:
        return SessionServer(
            self._sessions,
            self._source,
            self._session_tracker,
            self._wardens,
            connected=self._guard.record_connection,
            outdated=self._fail,
        )

    async def serve(self, claim: RunFolderClaim, on_ready: Callable[[], None]) -> None:
        """Serve both sockets until `stop` is called."""
        # Loaded approvals prove nothing. They are verified before the first client connects, and
        # the configuration or a newer version may refuse places that were allowed before.
        config = self._configuration.config
        await self._session_tracker.restore(self._ledger.catalog.session_bound.values())
        await self._ledger.set_places(config.with_configured_places(self._places))
        await self._ledger.set_policy(self._policy.policy)
        self._guard.set_agents(config.approval)
        if self._is_new:
            await self._guard.adopt_mode(config.approval)
        await self._note(self._configuration.changes_since(self._state))
        await to_thread.run_sync(self._configuration.keep_copy, self._state, config)
        with ExitStack() as stack:
            listening = stack.enter_context(
                SocketListeners(
                    claim, control=self._control_server.serve, mcp=self._session_server.serve
                )
            )
            stack.callback(self._alarm.close)
            async with anyio.create_task_group() as watch:
                # A signal must not kill the process from before "ready" until all threads have
                # ended.
                await watch.start(handle_signals, self.stop, self.reload)
                try:
                    await self._serve_until_stopped(listening, on_ready)
                finally:
                    # Also after a bug: a running thread would keep the process alive.
                    with anyio.CancelScope(shield=True):
                        await to_thread.run_sync(self._discovery.stop)
                watch.cancel_scope.cancel()
            self._session_log.write_now()
            self._session_store.close()
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
            group.start_soon(self._session_tracker.run, self._ledger.current)
            group.start_soon(self._backups.keep)
            group.start_soon(self._discovery.forward_observations)
            group.start_soon(self._discovery.follow_roots)
            group.start_soon(self._root_requests.process_queue)
            group.start_soon(self._root_requests.follow_decisions)
            group.start_soon(self._session_log.run)
            group.start_soon(PromptFile(self._ledger, lambda: listening.folder).keep)
            group.start_soon(self._notifier.keep_reporting)
            group.start_soon(self._inspector.keep_looking, self._discovery.first_scan)
            group.start_soon(self._guard.keep_recording_hosts)
            self._view.admission = AdmissionControl(
                listening.mcp, listening.control, config.sessions
            )
            group.start_soon(self._listen, listening)
            self._discovery.start(config.parents)
            await group.start(self._configuration.keep_reloading, self._apply_config)
            await group.start(self._policy.keep_reloading, self._apply_policy)
            log.info("ready: %d roots published", len(self._ledger.catalog.roots))
            on_ready()
            self._supervisor.ready()
            group.start_soon(health.keep_reporting)
            group.start_soon(self._load_sdk_when_idle)
            group.start_soon(freeze_scanned, self._discovery.scanned_beside)
            await self._stopping.wait()
            log.info("stopping")
            self._supervisor.stopping()
            group.cancel_scope.cancel()

    async def _load_sdk_when_idle(self) -> None:
        """Load the MCP SDK if there was ever a client, because the next one may not wait long."""
        await self._discovery.first_scan()
        with suppress(RootsdError):  # without the history, the first client waits
            if await to_thread.run_sync(self._session_store.has_any):
                await self._session_server.load_early()

    async def reload(self, actor: Actor | None = None) -> None:
        """Read the configuration again, at the command of `actor`; None for a signal.

        Raises BadConfig, and then the old configuration stays in force.
        """
        with self._supervisor.reload():
            await self._policy.reload(self._apply_policy)
            await self._configuration.reload(self._apply_config, actor)

    def stop(self) -> None:
        """End the daemon."""
        self._stopping.set()

    async def _apply_config(self, config: Config, changes: Sequence[AuditNote]) -> None:
        await self._ledger.set_places(config.with_configured_places(self._places))
        self._discovery.set_parents(config.parents)
        self._guard.set_agents(config.approval)
        self._inspector.policy = config.approval.on_change
        self._inspector.note(self._ledger.catalog.projects)
        self._notifier.configure(config.notify)
        if self._view.admission:
            self._view.admission.cap(config.sessions)
        await self._note(changes)
        await to_thread.run_sync(self._configuration.keep_copy, self._state, config)

    async def _note(self, changes: Sequence[AuditNote]) -> None:
        for change in changes:
            try:
                await self._ledger.note(change)
            except RootsdError as error:
                log.warning("the store did not record a change: %s", error)

    async def _apply_policy(self, policy: MachinePolicy, summary: str) -> None:
        await self._ledger.set_policy(policy)
        # A hazard lasts until the folder is observed again.
        projects = self._ledger.catalog.projects.values()
        hidden = [p.path for p in projects if p.observed.hazard is LapseReason.POLICY]
        self._recheck(hidden)
        await self._note([AuditNote(ChangeVerb.POLICY_CHANGED, summary)])

    def _recheck(self, paths: Sequence[bytes]) -> None:
        self._discovery.doubt(paths)

    def _discovery_died(self) -> None:
        # A daemon that no longer sees changes must not continue as if nothing changed.
        log.critical(
            "a bug ended discovery (traceback above); stopping, so that a new daemon can start"
        )
        self._fail()

    def _fail(self) -> None:
        self.status = _EXIT_FAILURE
        self.stop()

    async def _listen(self, listening: SocketListeners) -> None:
        await listening.serve()
        log.critical(
            "clients cannot find the daemon any more; stopping, so that a new daemon can start"
        )
        self._fail()
