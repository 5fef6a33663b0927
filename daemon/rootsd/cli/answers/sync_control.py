"""Start and stop `rootsd sync` for the other commands.

It runs as a job of the service manager if the service is installed, else in the background.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import Busy, DaemonUnreachable, RootsdError
from rootsd.service import detect, launcher, start_record
from rootsd.settings.settings_folders import make_folders, remove_folders
from rootsd.sync.access import ClientOutcome
from rootsd.sync.record import SyncedClient, SyncLock, SyncRecord, holder_of
from rootsd.sync.targets import TARGETS, SyncTarget

_STOP_TIMEOUT_S = 20.0


def ensure_running(invocation: Invocation) -> None:
    """Start `rootsd sync` unless it runs or no client is chosen. Raises RootsdError."""
    record = SyncRecord(invocation.places.state)
    if record.clients() and holder_of(record) is None:
        restart(invocation)


def restart(invocation: Invocation) -> None:
    """Restart `rootsd sync`, so that it sees the chosen clients. Raises RootsdError."""
    service = detect.installed_service(os.environ)
    if service is not None and service.restart_sync():
        return
    stop(invocation)
    launcher.launch_sync(start_record.plan_start())


def stop(invocation: Invocation) -> None:
    """Stop `rootsd sync` if it runs, and wait until it is gone. Raises Busy."""
    pid = holder_of(SyncRecord(invocation.places.state))
    if pid is None:
        return
    with launcher.ExitWaiter(pid) as waiter:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        if not waiter.wait(_STOP_TIMEOUT_S):
            raise Busy(f"rootsd sync (pid {pid}) does not exit", f"kill {pid}")


def start_syncing(invocation: Invocation, chosen: SyncedClient) -> ClientOutcome | None:
    """Sync a home of a client from now on. Return what was written; None if no daemon runs.

    Raises RootsdError.
    """
    from rootsd.sync.process import AccessSync, DaemonDecisions

    record = SyncRecord(invocation.places.state)
    with record.choosing():
        stop(invocation)
        lock = _take_lock(record)
        try:
            clients = record.clients()
            before = clients.get(chosen.file)
            made = before.made_folders if before else ()
            made += make_folders(Path(chosen.file).parent)
            clients[chosen.file] = replace(chosen, made_folders=made)
            record.save_clients(clients.values())
            work = AccessSync(record, clients)
            with suppress(DaemonUnreachable):
                work.apply(DaemonDecisions())
        finally:
            lock.release()
        restart(invocation)
    return work.outcomes.get(chosen.file)


def stop_syncing(invocation: Invocation, record: SyncRecord, file: str) -> None:
    """Stop the process, and remove our entries from `file`. Raises RootsdError if that fails."""
    with record.choosing():
        stop(invocation)
        lock = _take_lock(record)
        try:
            _remove(record, file)
        finally:
            lock.release()


def _remove(record: SyncRecord, file: str) -> None:
    from rootsd.sync.process import AccessSync

    clients = record.clients()
    outcome = AccessSync(record, clients).remove(file)
    if outcome.problem:
        name = clients[file].client
        remedy = TARGETS[name].in_home(file, f"rootsd sync rm {name}")
        raise RootsdError(outcome.problem, remedy)
    record.save_clients(each for each in clients.values() if each.file != file)
    remove_folders(clients[file].made_folders)


def remove_containers(invocation: Invocation, record: SyncRecord) -> None:
    """Remove what is left of lists that are no longer synced. Raises RootsdError.

    `rootsd connect` may have had entries in a container that we made, until now.
    """
    from rootsd.sync.process import AccessSync

    if all(own.entries for own in record.own().values()):
        return
    stop(invocation)
    lock = _take_lock(record)
    try:
        AccessSync(record, {}).remove_containers()
    finally:
        lock.release()
    ensure_running(invocation)


def _take_lock(record: SyncRecord) -> SyncLock:
    """Take the lock, once nobody has it. Raises Busy.

    After the process ends, the service manager withdraws the grants, and holds the lock meanwhile.
    """
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while (pid := holder_of(record)) is not None and time.monotonic() < deadline:
        with launcher.ExitWaiter(pid) as waiter:
            waiter.wait(_STOP_TIMEOUT_S)
    return SyncLock.acquire(record)


def settings_file(target: SyncTarget) -> Path:
    """Return the settings file of a client, for the environment of this shell."""
    return Path(target.settings_file(os.path.expanduser("~"), os.environ))
