"""Find the processes that hold a terminal open, and write text to a terminal.

A pseudo-terminal has two sides. A program such as a terminal window has the master side open. It
displays what the processes on the other side write. Sources: pts(4), proc(5), "tty-index" in
fs/proc and drivers/tty/pty.c.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import termios
from collections.abc import Iterator

from msgspec import Struct

from rootsd.core.processes import TerminalHolder, TerminalHolders, terminal_name
from rootsd.processes.process_tree import BareProcessReader, ProcessReader, terminal_path

_PTS = 136  # the major number: Documentation/admin-guide/devices.txt
_MASTERS = frozenset({b"/dev/ptmx", b"/dev/pts/ptmx"})
_SLAVE = re.compile(rb"/dev/(?:pts/\d+|tty\d*|console|tty[A-Z]+\d+)$")
_INDEX = re.compile(rb"^tty-index:\s*(\d+)$", re.MULTILINE)
_DEVPTS = re.compile(rb"\d+ \d+ (\d+):(\d+) / /dev/pts .* - devpts ")
_FDINFO_CAP = 1024
_MAX_TERMINALS = 16
_MAX_BYTES = 1 << 14


class TerminalWriteFailed(Exception):
    """The text was not written. The message completes "the word could not be shown: …"."""


def write_to_terminal(pid: int, started: int, device: int, text: bytes) -> None:
    """Write `text` on the controlling terminal of a process, and drop what was typed there before.

    Open the device by name. Check that it is the same terminal, that it is a terminal of this
    user, and that it is in the same mount of devpts. Raises TerminalWriteFailed.
    """
    seen = BareProcessReader().lineage(pid).processes
    if not seen or (seen[0].started, seen[0].terminal) != (started, device):
        raise TerminalWriteFailed("the caller has ended")
    if sys.platform == "linux" and _numbers(device)[0] == _PTS:
        instance = _instance_at(os.getpid())
        if instance is None or _instance_of(pid, device) != instance:
            raise TerminalWriteFailed("its terminal belongs to a container or a sandbox")
    if len(text) > _MAX_BYTES:
        raise TerminalWriteFailed("the text is too long")
    path = _path_of(pid, device)
    # A background process that changes its own terminal would be stopped.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError as error:
        raise TerminalWriteFailed(f"{path} cannot be opened: {error.strerror}") from error
    try:
        _check(fd, path, device)
        termios.tcflush(fd, termios.TCIFLUSH)
        if os.write(fd, text) != len(text):
            raise TerminalWriteFailed(f"{path} takes no more text")
    except BlockingIOError as error:
        raise TerminalWriteFailed(f"{path} is stopped") from error
    except (OSError, termios.error) as error:
        raise TerminalWriteFailed(f"{path} cannot be written: {error}") from error
    finally:
        os.close(fd)


def _check(fd: int, path: str, device: int) -> None:
    """Raise TerminalWriteFailed unless `fd` is the terminal `device` of this user."""
    found = os.fstat(fd)
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != _as_rdev(device):
        raise TerminalWriteFailed(f"{path} is another device")
    if found.st_uid != os.getuid():
        raise TerminalWriteFailed(f"{path} belongs to user {found.st_uid}, not to you")
    if not os.isatty(fd):
        raise TerminalWriteFailed(f"{path} is not a terminal")


def _path_of(pid: int, device: int) -> str:
    path = f"/dev/{terminal_name(device)}" if sys.platform == "linux" else terminal_path(pid)
    if path is None:
        raise TerminalWriteFailed("the caller no longer has a terminal")
    return path


def terminal_holders(pid: int, device: int, reader: ProcessReader) -> TerminalHolders:
    """Return the holders of the terminal `device` of the process `pid`.

    A holder may itself run on a terminal, as tmux does. So also return the holders of that
    terminal, and so on. This finds no process of another user, no process that hides its
    descriptors, and none at all without /proc.
    """
    if sys.platform != "linux" or _numbers(device)[0] != _PTS:
        return {}
    instance = _instance_of(pid, device)
    if instance is None:
        return {}
    ends = [found for found in _all_ends(instance, reader) if found.masters]
    wanted, found = [device], dict[int, tuple[TerminalHolder, ...]]()
    while wanted and len(found) < _MAX_TERMINALS:
        terminal = wanted.pop()
        if terminal in found:
            continue
        holders = [each for each in ends if terminal in each.masters]
        found[terminal] = tuple(
            TerminalHolder(reader.lineage(each.pid), tuple(sorted(each.slaves)))
            for each in holders
        )
        wanted += [slave for each in holders for slave in each.slaves]
    return found


class _Ends(Struct, frozen=True):
    """The terminals that a process has open, on the master side or on the other side."""

    pid: int
    masters: frozenset[int]
    slaves: frozenset[int]


def _all_ends(instance: int, reader: ProcessReader) -> Iterator[_Ends]:
    """Yield the ends that each process of this user holds in one mount of devpts."""
    uid = os.getuid()
    for name in os.listdir(b"/proc"):
        if reader.is_late:
            return
        if not name.isdigit():
            continue
        folder = b"/proc/" + name
        try:
            if os.stat(folder).st_uid != uid:
                continue
            numbers = os.listdir(folder + b"/fd")
        except OSError:
            continue
        masters, slaves = set[int](), set[int]()
        for number in numbers:
            _add_end(folder, number, instance, masters, slaves)
        yield _Ends(int(name), frozenset(masters), frozenset(slaves))


def _add_end(
    process: bytes, number: bytes, instance: int, masters: set[int], slaves: set[int]
) -> None:
    file = process + b"/fd/" + number
    try:
        link = os.readlink(file)
        if link in _MASTERS:
            if _instance_of_master(process, file, link) == instance:
                index = _INDEX.search(_read(process + b"/fdinfo/" + number))
                if index is not None:
                    masters.add(_pts_device(int(index[1])))
        elif _SLAVE.match(link):
            found = os.stat(file)
            if stat.S_ISCHR(found.st_mode):
                slaves.add(_as_device(found.st_rdev))
    except OSError:  # closed in the meantime
        return


def _instance_of(pid: int, device: int) -> int | None:
    """Return the device number of the devpts mount that the terminal of a process is in.

    If one of the descriptors of the process is the terminal, it shows the mount. Otherwise, return
    the mount at /dev/pts of the process.
    """
    folder = b"/proc/%d" % pid
    try:
        for number in os.listdir(folder + b"/fd"):
            try:
                found = os.stat(folder + b"/fd/" + number)
            except OSError:
                continue
            if stat.S_ISCHR(found.st_mode) and found.st_rdev == _as_rdev(device):
                return found.st_dev
    except OSError:
        pass
    return _instance_at(pid)


def _instance_of_master(process: bytes, file: bytes, link: bytes) -> int | None:
    if link.endswith(b"/pts/ptmx"):
        return os.stat(file).st_dev
    # /dev/ptmx is not in a mount of devpts. The kernel uses the mount at /dev/pts beside it.
    return _instance_at(int(process.rpartition(b"/")[2]))


def _instance_at(pid: int) -> int | None:
    try:
        return os.stat(b"/proc/%d/root/dev/pts" % pid).st_dev
    except PermissionError:
        return _listed_instance(pid)
    except OSError:
        return None


def _listed_instance(pid: int) -> int | None:
    """Return the same for a process that hides: everybody may read its mounts (proc(5))."""
    try:
        with open(b"/proc/%d/mountinfo" % pid, "rb") as mounts:
            found = [_DEVPTS.match(line) for line in mounts]
    except OSError:
        return None
    numbers = [each.groups() for each in found if each is not None]
    # A later mount is on top of an earlier one.
    return os.makedev(*map(int, numbers[-1])) if numbers else None


def _numbers(device: int) -> tuple[int, int]:
    """Return the major and minor number of a device that /proc/PID/stat prints.

    Source: new_encode_dev() in linux/kdev_t.h.
    """
    return (device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00)


def _as_rdev(device: int) -> int:
    return os.makedev(*_numbers(device)) if sys.platform == "linux" else device


def _as_device(rdev: int) -> int:
    major, minor = os.major(rdev), os.minor(rdev)
    return (minor & 0xFF) | (major << 8) | ((minor & 0xFFF00) << 12)


def _pts_device(index: int) -> int:
    return _as_device(os.makedev(_PTS, index))


def _read(file: bytes) -> bytes:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _FDINFO_CAP)
    finally:
        os.close(fd)
