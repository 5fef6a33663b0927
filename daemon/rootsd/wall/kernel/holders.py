"""Find the confined processes that still hold something of a folder that was taken away.

After a revoke, the kernel refuses new accesses. But a file that is open stays open, and a mapping
stays mapped. `find_holders` finds these processes; `kill` ends them.

A process is confined if it is in an inner pid namespace and descends from the owner of the wall.
The programs cannot change that: orphans go to their own init. A descriptor belongs to a folder
that was taken away if its mount is no longer in the list of its process's mounts. This also finds
processes that hide the path with chroot.

A process can make itself unreadable with PR_SET_DUMPABLE, or let descriptors wait in a socket. It
then counts as a holder, because nobody can tell. Each thread can have descriptors, a working
directory, and mounts of its own, and the first one may have ended. So this looks at all threads.

Where a layer of the wall is left out, programs can keep more than open files: see `Foothold`. Then
any other mount namespace counts, also one without processes that a descriptor keeps, and any
folder without a mount: what is mounted below it can still be reached. Sources: proc_pid_fdinfo(5),
proc_pid_maps(5), proc_pid_status(5), prctl(2), pidfd_open(2), ioctl_ns(2), mount_namespaces(7).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from rootsd.core.errors import RootsdError
from rootsd.disk.process_stat import read_process_stat
from rootsd.wall.kernel.pause import ProgramPause
from rootsd.wall.system_calls import closing

_MAX_LOOKS, _QUIET_LOOKS = 30, 3
_END_TIMEOUT_S = 1.0
_MAX_COMMAND, _MAX_STATUS = 64, 1 << 14
_NS_GET_USERNS, _NS_GET_PARENT = 0xB701, 0xB702  # linux/nsfs.h


class Foothold(Enum):
    """What keeps a folder that was taken away, besides open files, where no layer forbids it."""

    FOLDERS = "a working directory or root folder; Landlock makes these useless"
    MOUNTS = "a mount in a namespace of its own; seccomp and Landlock forbid mounts"


class Search(NamedTuple):
    """What to search for in the wall of `owner`: detached files on `devices`, and more.

    `outside` are the mounts of files that the owner passed to the program: see
    `mounts_of_standard_files`.
    """

    owner: int
    devices: frozenset[int]
    outside: frozenset[bytes]
    footholds: frozenset[Foothold] = frozenset()


class Holder(NamedTuple):
    """A confined process that holds something of a folder that was taken away.

    `files` and `mappings` are None if the process hides them.
    """

    pid: int
    command: str
    files: int | None
    mappings: int | None


class _Status(NamedTuple):
    """What proc tells everybody. `pids` are those in its pid namespaces, outermost first."""

    parent: int
    pids: list[bytes]
    has_memory: bool
    """False for a process that has ended or is about to."""


def find_holders(search: Search) -> list[Holder]:
    """Return the processes in a wall that hold what `search` describes."""
    found = []
    for pid in confined_processes(search.owner):
        try:
            files, mappings = _held_by(pid, search)
            if files or mappings:
                found.append(Holder(pid, _command(pid), files, mappings))
        except PermissionError:
            found.append(Holder(pid, _command(pid), None, None))
        except OSError:
            continue  # it has ended
    return found


_WHY = RootsdError("a root was taken away")


def end_holders(search: Search) -> None:
    """Kill all processes in a wall that hold what `search` describes.

    They could pass an open file from one to another while this looks. So all are stopped first,
    and this ends only after some looks during which no process began or ended. If the programs
    are too busy for that, all of their processes are killed.
    """
    pause = ProgramPause(search.owner, lambda _: None)
    try:
        _end_stopped_holders(search, pause)
    finally:
        pause.resume()


def _end_stopped_holders(search: Search, pause: ProgramPause) -> None:
    owner, quiet = search.owner, 0
    for _ in range(_MAX_LOOKS):
        pause.stop(_WHY)
        before = _activity(owner)
        found = find_holders(search)
        _kill(owner, [holder.pid for holder in found])
        quiet = quiet + 1 if not found and before == _activity(owner) else 0
        if quiet == _QUIET_LOOKS:
            return
    _kill(owner, [pid for pid, inner in _inner_pids(owner) if inner == [b"1"]])


def mounts_of_standard_files() -> frozenset[bytes]:
    """Return the ids of the mounts that hold this process's standard files.

    These are mounts outside. No mount of a wall has such an id.
    """
    found = set()
    for fd in (0, 1, 2):
        with suppress(OSError):
            found.add(_mount_id(fd))
    return frozenset(found)


def confined_processes(owner: int) -> list[int]:
    """Return the processes of programs in the wall of `owner`.

    The waiter and init are left out. They run no code of a program, and map files from outside.
    """
    return [pid for pid, inner in _inner_pids(owner) if inner != [b"1"]]


def _activity(owner: int) -> dict[int, int]:
    """Return the processes of a wall, each with a counter that changes when it reaps a child."""
    found = {}
    for pid, _ in _inner_pids(owner):
        with suppress(OSError):
            found[pid] = read_process_stat(b"/proc/%d/" % pid).children_faults
    return found


def _inner_pids(owner: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the processes in the wall of `owner`, with their pids in inner namespaces."""
    table = _table()
    depth = len(table[os.getpid()].pids)
    for pid, status in table.items():
        inner = status.pids[depth:]
        if inner and owner in _ancestors(table, pid):
            yield pid, inner


def _kill(owner: int, pids: Iterable[int]) -> None:
    """Kill processes and wait for their ends. A pidfd excludes a reused pid."""
    opened = {}
    for pid in pids:
        with suppress(OSError):
            opened[pid] = os.pidfd_open(pid)
    table = _table()
    poll, ending = select.poll(), set()
    for pid, process in opened.items():
        if owner in _ancestors(table, pid):
            with suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                poll.register(process, select.POLLIN)
                ending.add(process)
    deadline = time.monotonic() + _END_TIMEOUT_S
    while ending and (left := deadline - time.monotonic()) > 0:
        for process, _ in poll.poll(left * 1000):
            poll.unregister(process)
            ending.discard(process)
    for process in opened.values():
        os.close(process)


def _table() -> dict[int, _Status]:
    names = (name for name in os.listdir("/proc") if name.isdecimal())
    found = ((int(name), _status(b"/proc/%d/" % int(name))) for name in names)
    return {pid: status for pid, status in found if status is not None}


def _status(folder: bytes) -> _Status | None:
    """Return what proc_pid_status(5) tells about a process or thread, or None if it is gone.

    This runs for every process of the machine, so it does not split the lines. No name of a
    process can forge a line: the kernel escapes line feeds.
    """
    try:
        fd = os.open(folder + b"status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, _MAX_STATUS)
        finally:
            os.close(fd)
    except OSError:
        return None
    parent, pids = _field(text, b"\nPPid:\t"), _field(text, b"\nNSpid:\t")
    return _Status(int(parent or 0), pids.split(), b"\nVmSize:" in text)


def _field(text: bytes, name: bytes) -> bytes:
    start = text.find(name)
    return b"" if start < 0 else text[start + len(name) : text.find(b"\n", start + 1)]


def _ancestors(table: Mapping[int, _Status], pid: int) -> list[int]:
    found: list[int] = []
    while pid in table and len(found) <= len(table):
        pid = table[pid].parent
        if pid in table:
            found.append(pid)
    return found


def _held_by(pid: int, search: Search) -> tuple[int, int]:
    """Count the files and mappings of a process that `search` describes.

    Raises PermissionError if a living thread hides them.
    """
    files = mappings = 0
    for folder in _threads(pid):
        try:
            files = max(files, _files_of(folder, search))
            mappings = max(mappings, _detached_mappings(folder, search.devices))
        except PermissionError:
            if (status := _status(folder)) is not None and status.has_memory:
                raise
        except OSError:
            continue  # it has ended
    return files, mappings


def _threads(pid: int) -> list[bytes]:
    return [b"/proc/%d/task/%b/" % (pid, name) for name in os.listdir(b"/proc/%d/task" % pid)]


def _files_of(folder: bytes, search: Search) -> int:
    """Count the open files and folders of a thread that hang below no mount that it sees.

    Descriptors that wait in a socket are of unknown files. Raises PermissionError for these, too.
    """
    attached = _mount_ids(folder) | search.outside
    names = os.listdir(folder + b"fd")
    if any(_has_waiting_files(folder, name) for name in names):
        raise PermissionError
    found = sum(_is_detached(folder + b"fd/" + name, attached, search) for name in names)
    if search.footholds:
        found += sum(_is_detached(folder + name, attached, search) for name in (b"cwd", b"root"))
    if Foothold.MOUNTS in search.footholds:
        spaces = (b"fd/" + name for name in names if _is_mount_namespace(folder + b"fd/" + name))
        found += sum(_is_of_a_program(folder + name) for name in (b"ns/mnt", *spaces))
    return found


def _is_detached(link: bytes, attached: set[bytes], search: Search) -> bool:
    """Return whether a file or folder of a thread hangs below none of its mounts."""
    try:
        seen = os.stat(link)
    except OSError:
        return False
    is_kept = Foothold.MOUNTS in search.footholds and stat.S_ISDIR(seen.st_mode)
    if not is_kept and seen.st_dev not in search.devices:
        return False
    with closing(os.open(link, os.O_PATH | os.O_CLOEXEC)) as fd:
        return _mount_id(fd) not in attached


def _is_mount_namespace(link: bytes) -> bool:
    try:
        return os.readlink(link).startswith(b"mnt:")  # the path of a file starts with a slash
    except OSError:
        return False


def _is_of_a_program(namespace: bytes) -> bool:
    """Return whether a mount namespace is one that a program has made, in a user namespace.

    That of a wall belongs to its user namespace, and the one above that is the warden's. What a
    program makes is below the wall's.
    """
    with (
        closing(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)) as fd,
        closing(fcntl.ioctl(fd, _NS_GET_USERNS)) as owner,
        closing(fcntl.ioctl(owner, _NS_GET_PARENT)) as above,
    ):
        return not os.path.samestat(os.fstat(above), os.stat("/proc/self/ns/user"))


def _detached_mappings(folder: bytes, devices: frozenset[int]) -> int:
    """Count mapped files on `devices` that are not at their path in the view of a thread."""
    found = 0
    with open(folder + b"maps", "rb") as lines:
        for line in lines:
            fields = line.split(None, 5)
            if len(fields) < 6 or not fields[5].startswith(b"/"):  # noqa: PLR2004 - no file
                continue
            major, minor = fields[3].split(b":")
            device, inode = os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
            if device in devices and not _is_at(folder, fields[5].rstrip(b"\n"), device, inode):
                found += 1
    return found


def _is_at(folder: bytes, path: bytes, device: int, inode: int) -> bool:
    try:
        found = os.stat(folder + b"root" + path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (device, inode)


def _mount_ids(folder: bytes) -> set[bytes]:
    with open(folder + b"mountinfo", "rb") as lines:
        return {line.split(b" ", 1)[0] for line in lines}


def _mount_id(fd: int) -> bytes:
    """Return the id of the mount in which an open file of this process is."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"mnt_id":
                return value.strip()
    return b""


def _has_waiting_files(folder: bytes, fd: bytes) -> bool:
    """Return whether a socket has descriptors that nobody has received."""
    with suppress(FileNotFoundError), open(folder + b"fdinfo/" + fd, "rb") as lines:
        return any(line.startswith(b"scm_fds:") and line.split()[1] != b"0" for line in lines)
    return False


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_COMMAND).strip()
    except OSError:
        return ""
