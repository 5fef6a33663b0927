"""Keeps what is mounted at hand, and tells when that changes. Source: proc_pid_mountinfo(5)."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from rootsd.host.disk.mounts import (
    MOUNTINFO,
    Mount,
    holding,
    parse_mounts,
    remote_points,
    told_mounts,
)
from rootsd.host.disk.volumes import volumes


class MountTable:
    """What is mounted, read again only after it changed: to ask costs a microsecond.

    Where the system does not tell of changes, `now` is None, and `volumes`, which is read each
    time, answers the other questions. May be used by several threads.
    """

    def __init__(self, volumes: Callable[[], tuple[Mount, ...]] = volumes) -> None:
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._volumes = volumes
        self._told: bytes | None = None
        self._found: tuple[Mount, ...] | None = None
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None
        else:
            self._poll.register(self._fd, select.POLLPRI)
        self._sort(())
        self._read()

    def now(self) -> tuple[Mount, ...] | None:
        """As `mounts`."""
        with self._lock:
            if self._fd is not None and self._poll.poll(0):
                self._read()
            return self._found

    def holding(self, path: bytes) -> Mount | None:
        """As `rootsd.host.disk.mounts.holding`."""
        return holding(path, self._all())

    def remote(self) -> tuple[bytes, ...]:
        """As `remote_points`."""
        self._all()
        return self._remote

    def automounts(self) -> tuple[bytes, ...]:
        """Where something is mounted once somebody looks, or was then."""
        self._all()
        return self._automounts

    def _all(self) -> tuple[Mount, ...]:
        found = self.now()
        if found is None:
            found = self._volumes()
            self._sort(found)
        return found

    def has_moved(self) -> bool:
        """Whether anything is not where it was told to be, which is known from now on: who renames
        a folder takes the mounts below along, and the system tells nobody."""
        with self._lock:
            return self._fd is not None and self._read()

    def _read(self) -> bool:
        """Whether it differs from what was read before; the same objects stay where not."""
        told = told_mounts()
        if told == self._told:
            return False
        self._told = told
        self._found = None if told is None else parse_mounts(told)
        self._sort(self._found or ())
        return True

    def _sort(self, found: tuple[Mount, ...]) -> None:
        self._remote = remote_points(found)
        self._automounts = tuple(each.point for each in found if each.is_automount)

    def close(self) -> None:
        """Close what it holds; what was mounted then is told from now on."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None


class MountWatch:
    """Calls `changed` from a thread of its own each time something is mounted or unmounted."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._wake_r, self._wake_w = os.pipe()
        self._thread: threading.Thread | None = None
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def start(self) -> None:
        """Begin to watch; does nothing where mounts are not told."""
        if self._fd is None:
            return
        self._thread = threading.Thread(
            target=self._run, args=(self._fd,), name="mounts", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close what it held."""
        os.write(self._wake_w, b"!")
        if self._thread is not None:
            self._thread.join()
        for fd in (self._fd, self._wake_r, self._wake_w):
            if fd is not None:
                os.close(fd)

    def _run(self, fd: int) -> None:
        poll = select.poll()
        # The kernel marks a change by POLLPRI and POLLERR and clears it by being polled.
        poll.register(fd, select.POLLPRI)
        poll.register(self._wake_r, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            if self._wake_r in ready:
                return
            self._changed()
