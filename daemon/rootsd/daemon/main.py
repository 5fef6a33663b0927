"""Start the daemon in this process: take its locks, read its files, and give up other rights."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio

from rootsd import __version__
from rootsd.config.configuration import read_config
from rootsd.config.policy import load_policy
from rootsd.config.policy_file import POLICY_FILE
from rootsd.core.paths import RefusedPlaces
from rootsd.daemon.configuration import ReloadableConfig
from rootsd.daemon.daemon import Daemon, DaemonSettings
from rootsd.daemon.garbage import collect_rarely
from rootsd.daemon.listeners import RunFolderClaim, fallback_folders
from rootsd.daemon.malloc import limit_malloc
from rootsd.daemon.policy import ReloadablePolicy
from rootsd.daemon.startup import notify_launcher
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.helper.client import Helper
from rootsd.net.rate_limited_log import configure_logging
from rootsd.places import runtime_dir
from rootsd.places.daemon_folders import Places
from rootsd.service.notify import make_service_notifier
from rootsd.state.clock import utc_now
from rootsd.state.store.store import Store
from rootsd.wall.kernel.daemon_rights import confine_daemon

# A tenth of the default. A thread that reads files waits so long after each system call while the
# event loop is busy. With the default, `status` took 0.3 s beside an `ls` of 20,000 projects.
_SWITCH_INTERVAL_S = 0.0005


def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
    """Run the daemon until it is stopped, and return the exit status.

    It writes `ready` and a newline to the pipe `ready_fd` once the sockets accept connections. The
    caller started `helper` and closes it. Raises Busy if another daemon uses the same folders,
    BadConfig, and what the store raises.
    """
    configure_logging()
    limit_malloc()
    collect_rarely()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
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
        # The lock on the state folder protects the store, and the one on the runtime folder the
        # sockets. With unusual environments, two daemons can share either folder alone.
        stack.enter_context(DaemonLock.acquire(state, record))
        lock = stack.enter_context(DaemonLock.acquire(Path(os.fsdecode(run_folder.path)), record))
        config = read_config(places.config_file)
        loaded = load_policy(POLICY_FILE)
        store = Store.open(state, Path(os.fsdecode(places.data)))
        stack.callback(store.close)
        written = (places.state, run_folder.path, *fallback_folders())
        own = (places.config, places.log, places.data, *written)
        refused = RefusedPlaces(
            runtime_dir.home_folder(), own, account_home=runtime_dir.account_home()
        )
        # A service can be told to hide the data folder, so it may be missing.
        data = [places.data] if os.path.isdir(places.data) else []
        confined = confine_daemon((*written, *data))

        async def serve() -> int:
            configuration = ReloadableConfig(places.config_file, config, utc_now)
            policy = ReloadablePolicy(POLICY_FILE, loaded, utc_now)
            settings = DaemonSettings(refused, configuration, policy, state, confined)
            daemon = Daemon(settings, store, helper, supervisor)
            on_ready = partial(notify_launcher, ready_fd, daemon.stop)
            await daemon.serve(RunFolderClaim(run_folder, lock, record), on_ready)
            return daemon.status

        return anyio.run(serve)
