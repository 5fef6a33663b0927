"""Find the confined processes that still hold something of a folder that was taken away.

After a revoke, the kernel refuses new accesses. But a file that is open stays open, and a mapping
stays mapped. `find_holders` finds these processes; `end_holders` ends them.

`kernel.pause` finds the confined processes. A descriptor belongs to a folder that was taken
away if its mount is no longer in the list of its process's mounts. This also finds processes that
hide the path with chroot.

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
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from rootsd.core.errors import RootsdError
from rootsd.disk.process_stat import ProcessStat
from rootsd.wall.kernel.pause import ProgramPause, levels, send
from rootsd.wall.system_calls import closing

_MAX_LOOKS, _QUIET_LOOKS = 30, 3
_END_TIMEOUT_S = 1.0
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


def find_holders(search: Search) -> list[ProcessStat]:
    """Return the processes in a wall that hold what `search` describes, or that hide it."""
    return [each for each in confined_processes(search.owner) if _is_holder(each.pid, search)]


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
        _kill(found)
        quiet = quiet + 1 if not found and before == _activity(owner) else 0
        if quiet == _QUIET_LOOKS:
            return
    _kill(init for level in islice(levels(owner), 1) for init in level)


def mounts_of_standard_files() -> frozenset[bytes]:
    """Return the ids of the mounts that hold this process's standard files.

    These are mounts outside. No mount of a wall has such an id.
    """
    found = set()
    for fd in (0, 1, 2):
        with suppress(OSError):
            found.add(_mount_id(fd))
    return frozenset(found)


def confined_processes(owner: int) -> list[ProcessStat]:
    """Return the processes of programs in the wall of `owner`.

    The waiter and init are left out. They run no code of a program, and map files from outside.
    """
    return [each for level in islice(levels(owner), 1, None) for each in level]


def _activity(owner: int) -> dict[int, int]:
    """Return the processes of a wall, each with a counter that changes when it reaps a child."""
    return {each.pid: each.children_faults for level in levels(owner) for each in level}


def _kill(processes: Iterable[ProcessStat]) -> None:
    """Kill processes and wait for their ends."""
    poll, ending = select.poll(), set()
    with ExitStack() as stack:
        for each in processes:
            with suppress(OSError):
                fd = stack.enter_context(closing(os.pidfd_open(each.pid)))
                if send(each, signal.SIGKILL):
                    poll.register(fd, select.POLLIN)
                    ending.add(fd)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while ending and (left := deadline - time.monotonic()) > 0:
            for fd, _ in poll.poll(left * 1000):
                poll.unregister(fd)
                ending.discard(fd)


def _is_holder(pid: int, search: Search) -> bool:
    with suppress(OSError):  # it has ended
        return any(_holds(folder, search) for folder in _threads(pid))
    return False


def _holds(folder: bytes, search: Search) -> bool:
    """Return whether a thread holds what `search` describes. A living one that hides it does."""
    try:
        return _holds_file(folder, search) or _maps_file(folder, search.devices)
    except PermissionError:
        return _has_memory(folder)
    except OSError:
        return False  # it has ended


def _has_memory(folder: bytes) -> bool:
    """Return whether a thread has not ended and is not about to. See proc_pid_status(5)."""
    with suppress(OSError), open(folder + b"status", "rb") as lines:
        return any(line.startswith(b"VmSize:") for line in lines)
    return False


def _threads(pid: int) -> list[bytes]:
    return [b"/proc/%d/task/%b/" % (pid, name) for name in os.listdir(b"/proc/%d/task" % pid)]


def _holds_file(folder: bytes, search: Search) -> bool:
    """Return whether a thread has an open file or folder that hangs below no mount that it sees.

    Descriptors that wait in a socket are of unknown files, so these count.
    """
    attached = _mount_ids(folder) | search.outside
    links = [b"fd/" + name for name in os.listdir(folder + b"fd")]
    if any(_has_waiting_files(folder, link) for link in links):
        return True
    places = (b"cwd", b"root") if search.footholds else ()
    if any(_is_detached(folder + link, attached, search) for link in (*links, *places)):
        return True
    if Foothold.MOUNTS not in search.footholds:
        return False
    spaces = (link for link in links if _is_mount_namespace(folder + link))
    return any(_is_of_a_program(folder + link) for link in (b"ns/mnt", *spaces))


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


def _maps_file(folder: bytes, devices: frozenset[int]) -> bool:
    """Return whether a thread maps a file on `devices` that is not at its path in the view."""
    with open(folder + b"maps", "rb") as lines:
        for line in lines:
            fields = line.split(None, 5)
            if len(fields) < 6 or not fields[5].startswith(b"/"):  # noqa: PLR2004 - no file
                continue
            major, minor = fields[3].split(b":")
            device, inode = os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
            if device in devices and not _is_at(folder, fields[5].rstrip(b"\n"), device, inode):
                return True
    return False


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


def _has_waiting_files(folder: bytes, link: bytes) -> bool:
    """Return whether a socket has descriptors that nobody has received."""
    place = folder + link.replace(b"fd", b"fdinfo", 1)
    with suppress(FileNotFoundError), open(place, "rb") as lines:
        return any(line.startswith(b"scm_fds:") and line.split()[1] != b"0" for line in lines)
    return False
