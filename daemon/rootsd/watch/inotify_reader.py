"""Call inotify, and read its records in a thread.

`InotifyReader` holds one inotify instance. It passes on each buffer as the kernel wrote it;
`rootsd.watch.inotify_records` decodes buffers.

The thread waits in poll(2) without a timeout, for records and for an eventfd by which `close` ends
it. So nothing else wakes it. `close` closes the two descriptors after the thread has ended.
Otherwise the thread could read a descriptor that the system has reused for another file.

Sources: inotify(7), inotify_init(2), inotify_add_watch(2), inotify_rm_watch(2), eventfd(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import termios
from collections.abc import Callable
from threading import Lock, Thread

from rootsd.watch.inotify_records import MAX_RECORD_BYTES

_libc = ctypes.CDLL(None, use_errno=True)
_inotify_init1 = _libc.inotify_init1
_inotify_init1.argtypes = [ctypes.c_int]
_inotify_add_watch = _libc.inotify_add_watch
_inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
_inotify_rm_watch = _libc.inotify_rm_watch
_inotify_rm_watch.argtypes = [ctypes.c_int, ctypes.c_int]

_CLOSED = -1
# Nearly always large enough. Allocating a buffer for a full queue takes 15 us each time.
_BUFFER_SIZE = 1 << 16
# FIONREAD fills in an int.
_SIZE = struct.Struct("i")
_NO_SIZE = bytes(_SIZE.size)


class InotifyReader:
    """One inotify instance, and the thread that reads it.

    The thread calls `handle` with each buffer. `handle` must not call `close`, because `close`
    waits for the thread. Raises OSError: EMFILE if the user has no instances left.
    """

    def __init__(self, handle: Callable[[bytes], None]) -> None:
        self._handle = handle
        # Held during each system call, so that no call uses a descriptor after `close`.
        self._lock = Lock()
        # IN_NONBLOCK and IN_CLOEXEC have these values on every architecture.
        self._fd = _checked(_inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._end = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError:
            os.close(self._fd)
            raise
        self._thread = Thread(target=self._run, name="inotify", daemon=True)

    def start(self) -> None:
        """Start the thread. It also reads the records since the first `add`."""
        self._thread.start()

    def add(self, folder: bytes, mask: int) -> int:
        """Watch `folder`, and return the number of the watch: inotify_add_watch(2).

        If the kernel already watches the folder, it returns the same number. Raises OSError.
        """
        with self._lock:
            return _checked(_inotify_add_watch(self._fd, folder, mask))

    def remove(self, wd: int) -> None:
        """End a watch: inotify_rm_watch(2). It may already have ended with its folder."""
        with self._lock:
            _inotify_rm_watch(self._fd, wd)

    def close(self) -> None:
        """End the thread, every watch, and the instance. A second call does nothing."""
        if self._fd == _CLOSED:
            return
        if self._thread.is_alive():
            os.eventfd_write(self._end, 1)
            self._thread.join()
        with self._lock:
            os.close(self._fd)
            os.close(self._end)
            self._fd = _CLOSED

    def _run(self) -> None:
        """Pass on the kernel's records until `close`."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._end, select.POLLIN)
        while self._end not in [fd for fd, _ in poll.poll()]:
            self._handle(self._read())

    def _read(self) -> bytes:
        """Return all records in the kernel's queue.

        The kernel returns whole records only. So if the buffer has no room left for the longest
        record, more records may be queued. A second read then gets them all, with the overflow at
        the end of a full queue.
        """
        found = os.read(self._fd, _BUFFER_SIZE)
        if len(found) <= _BUFFER_SIZE - MAX_RECORD_BYTES:
            return found
        (size,) = _SIZE.unpack(fcntl.ioctl(self._fd, termios.FIONREAD, _NO_SIZE))
        return found + os.read(self._fd, size) if size else found


def _checked(result: int) -> int:
    """Return the result of a system call. Raises OSError."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
