"""Read processes and their ancestors, within limits of time and memory.

Any process can make itself slow to read, with thousands of ancestors or a large environment. So
each reader has a budget, and a lineage that is not complete says so. Source: proc(5).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

from msgspec import Struct, field

from rootsd.core.processes import Lineage, LineageCompleteness, Process, ProgramSight
from rootsd.disk.process_stat import read_process_stat

# AppImages mount themselves in folders with such names.
_TEMPORARY, _APP_IMAGE = b"/tmp", b"/tmp/.mount_"
_FIRST = 1  # init, which is not part of a lineage
_MAX_ANCESTORS = 256
_CMDLINE_CAP = 4096
_ENVIRONMENT_CAP = 1 << 20
_ENVIRONMENTS_CAP = 64 << 20
READ_TIMEOUT_S = 1.5
"""How long one reader may take, in seconds."""


class ReadBudget(Struct):
    """How much a reader may still read, and until when (monotonic clock)."""

    until: float = field(default_factory=lambda: time.monotonic() + READ_TIMEOUT_S)
    environments: int = _ENVIRONMENTS_CAP

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.until


class ProcessReader:
    """A reader of processes that reads each process once.

    `markers` are `NAME` or `NAME=value`. A process has the markers that its environment sets.
    Without markers, the reader reads no environment.
    """

    def __init__(self, markers: Collection[str], budget: ReadBudget | None = None) -> None:
        self._wanted = {os.fsencode(marker): marker for marker in markers}
        self.budget = budget or ReadBudget()
        self._seen: dict[int, tuple[Process | None, LineageCompleteness]] = {}

    @property
    def is_late(self) -> bool:
        """Whether the reader has run out of time."""
        return self.budget.is_late

    def lineage(self, pid: int) -> Lineage:
        """Return the process `pid` and its ancestors, without init."""
        processes: list[Process] = []
        completeness = LineageCompleteness.COMPLETE
        while True:
            if self.is_late:
                return Lineage(tuple(processes), LineageCompleteness.LATE)
            if len(processes) == _MAX_ANCESTORS:
                return Lineage(tuple(processes), LineageCompleteness.CUT_OFF)
            process, read = self._process(pid)
            if process is None:
                break
            if read is not LineageCompleteness.COMPLETE:
                completeness = read
            processes.append(process)
            pid = process.parent
            if pid <= _FIRST:
                break
        return Lineage(tuple(processes), completeness)

    def _process(self, pid: int) -> tuple[Process | None, LineageCompleteness]:
        if pid not in self._seen:
            self._seen[pid] = self._read(pid)
        return self._seen[pid]

    def _read(self, pid: int) -> tuple[Process | None, LineageCompleteness]:
        return _read_process(pid, self._wanted, self.budget)


class BareProcessReader(ProcessReader):
    """A reader that reads no arguments and no environments, so no process can delay it."""

    def __init__(self) -> None:
        super().__init__(())

    def lineage(self, pid: int) -> Lineage:
        """Return the lineage without arguments and environments. It never counts as complete."""
        seen = super().lineage(pid)
        if not seen.processes:
            return seen
        return Lineage(seen.processes, LineageCompleteness.LATE)

    def _read(self, pid: int) -> tuple[Process | None, LineageCompleteness]:
        return _read_bare_process(pid), LineageCompleteness.COMPLETE


def lineages(pids: Iterable[int], markers: Collection[str]) -> dict[int, Lineage]:
    """Return the lineage of each of `pids`, in this order, as far as the time limit allows."""
    reader = ProcessReader(markers)
    return {pid: reader.lineage(pid) for pid in pids}


def _linux_process(
    pid: int, wanted: dict[bytes, str], budget: ReadBudget
) -> tuple[Process | None, LineageCompleteness]:
    folder = b"/proc/%d/" % pid
    try:
        bare = _linux_bare_process(pid)
        if bare is None:
            return None, LineageCompleteness.COMPLETE
        folder = _living_thread(folder)
        arguments = tuple(_read(folder + b"cmdline", _CMDLINE_CAP).split(b"\0")[:-1])
    except OSError:
        return None, LineageCompleteness.COMPLETE
    program, sight = _program(folder)
    cap = min(_ENVIRONMENT_CAP, budget.environments)
    environment = _environment(folder, cap + 1) if wanted else b""
    budget.environments -= min(len(environment), budget.environments)
    markers = _markers_in(environment[:cap], wanted)
    seen = Process(
        pid=pid,
        started=bare.started,
        parent=bare.parent,
        name=bare.name,
        arguments=arguments,
        terminal=bare.terminal,
        control_group=bare.control_group,
        markers=markers,
        folder=_working_directory(folder),
        program=program,
        sight=sight,
    )
    is_cut = len(environment) > cap
    return seen, LineageCompleteness.CUT_OFF if is_cut else LineageCompleteness.COMPLETE


def _linux_bare_process(pid: int) -> Process | None:
    folder = b"/proc/%d/" % pid
    try:
        seen = read_process_stat(folder)
        if seen.has_wholly_ended:
            return None
        return Process(
            pid=pid,
            started=seen.started,
            parent=seen.parent,
            name=seen.name,
            terminal=seen.terminal,
            control_group=_control_group(folder),
        )
    except OSError:
        return None


def _living_thread(folder: bytes) -> bytes:
    """Return the folder of a thread that runs, for a process whose first thread has ended.

    /proc/PID shows the first thread, and after its end no arguments, environment, or executable.
    """
    if not read_process_stat(folder).has_ended:
        return folder
    for name in os.listdir(folder + b"task"):
        thread = folder + b"task/" + name + b"/"
        with suppress(OSError):
            if not read_process_stat(thread).has_ended:
                return thread
    return folder


def _program(folder: bytes) -> tuple[bytes, ProgramSight]:
    """Return the path of the executable in our mount namespace, and whether it could be read.

    A process of this user is readable unless it hides: then the kernel gives its files to root
    (proc(5), "dumpable"). If the files are ours and still unreadable, the process has capabilities
    that we lack, or a user namespace above ours (ptrace(2), "access mode checking").
    """
    uid = os.getuid()
    try:
        owner = os.stat(folder).st_uid
        if owner != uid != 0:
            return b"", ProgramSight.OUT_OF_REACH if owner else ProgramSight.OF_ROOT
        return _here(folder, os.readlink(folder + b"exe")), ProgramSight.SEEN
    except PermissionError:
        with suppress(OSError):
            if os.stat(folder + b"environ").st_uid == uid:
                return b"", ProgramSight.OUT_OF_REACH
        return b"", ProgramSight.HIDDEN
    except OSError:  # it has ended
        return b"", ProgramSight.HIDDEN


def _here(folder: bytes, program: bytes) -> bytes:
    """Return `program`, or nothing if that is another file where this process looks.

    In a mount namespace of its own, a process can show any file at any path.
    """
    with suppress(OSError):
        if program.startswith(_APP_IMAGE) and _is_on_disk_of(_TEMPORARY, folder + b"exe"):
            return b""  # a plain folder that has a name like the mount point of an AppImage
        if os.readlink(folder + b"ns/mnt") == os.readlink(b"/proc/self/ns/mnt"):
            return program
        if os.path.samestat(os.stat(folder + b"exe"), os.stat(program)):
            return program
    return b""


def _is_on_disk_of(place: bytes, file: bytes) -> bool:
    return os.stat(place).st_dev == os.stat(file).st_dev


def _working_directory(folder: bytes) -> bytes:
    """Return the working directory of a process in our pid namespace, without reading the disk.

    Sources: proc(5), pid_namespaces(7).
    """
    try:
        if os.readlink(folder + b"ns/pid") != os.readlink(b"/proc/self/ns/pid"):
            return b""
        return os.readlink(folder + b"cwd")
    except OSError:  # it has ended, or we may not read it
        return b""


def _control_group(folder: bytes) -> bytes:
    for line in _read(folder + b"cgroup", _CMDLINE_CAP).splitlines():
        if line.startswith(b"0::"):
            return line[3:]
    return b""


def _environment(folder: bytes, limit: int) -> bytes:
    try:
        return _read(folder + b"environ", limit)
    except OSError:  # another user's, or hidden by the service's unit
        return b""


def _markers_in(environment: bytes, wanted: dict[bytes, str]) -> frozenset[str]:
    found = set[str]()
    for entry in environment.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if entry in wanted:
            found.add(wanted[entry])
        if value and name in wanted:
            found.add(wanted[name])
    return frozenset(found)


def _read(file: bytes, limit: int) -> bytes:
    """Return up to `limit` bytes. The kernel returns an environment in small pieces."""
    parts, left = list[bytes](), limit
    with open(file, "rb", buffering=0) as stream:
        while left and (part := stream.read(left)):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


if sys.platform == "linux":
    _read_process = _linux_process
    _read_bare_process = _linux_bare_process

    def terminal_path(pid: int) -> str | None:  # noqa: ARG001 - on Linux, the device number is enough
        """Return the path of the controlling terminal, if its device number is not enough."""
        return None
else:
    import psutil

    def _psutil_bare_process(pid: int) -> Process | None:
        try:
            known = psutil.Process(pid)
            with known.oneshot():
                if known.status() == psutil.STATUS_ZOMBIE:
                    return None
                return Process(
                    pid=pid,
                    started=int(known.create_time() * 1_000_000),
                    parent=known.ppid(),
                    name=os.fsencode(known.name()),
                    terminal=_psutil_terminal(known),
                )
        except psutil.Error:
            return None

    def _psutil_process(
        pid: int, wanted: dict[bytes, str], budget: ReadBudget
    ) -> tuple[Process | None, LineageCompleteness]:
        try:
            known = psutil.Process(pid)
            with known.oneshot():
                if known.status() == psutil.STATUS_ZOMBIE:
                    return None, LineageCompleteness.COMPLETE
                program, sight = _psutil_program(known)
                environment = _psutil_environment(known)
                budget.environments -= min(len(environment), budget.environments)
                process = Process(
                    pid=pid,
                    started=int(known.create_time() * 1_000_000),
                    parent=known.ppid(),
                    name=os.fsencode(known.name()),
                    arguments=tuple(map(os.fsencode, known.cmdline())),
                    terminal=_psutil_terminal(known),
                    markers=_markers_in(environment, wanted),
                    folder=_psutil_folder(known),
                    program=program,
                    sight=sight,
                )
                return process, LineageCompleteness.COMPLETE
        except psutil.Error:
            return None, LineageCompleteness.COMPLETE

    def _psutil_program(known: psutil.Process) -> tuple[bytes, ProgramSight]:
        try:
            owner = known.uids().real
            if owner != os.getuid() != 0:
                return b"", ProgramSight.OUT_OF_REACH if owner else ProgramSight.OF_ROOT
            return os.fsencode(known.exe()), ProgramSight.SEEN
        except (psutil.Error, OSError):
            return b"", ProgramSight.OUT_OF_REACH

    def _psutil_folder(known: psutil.Process) -> bytes:
        try:
            return os.fsencode(known.cwd())
        except (psutil.Error, OSError):
            return b""

    def terminal_path(pid: int) -> str | None:
        """Return the path of the controlling terminal, if its device number is not enough."""
        try:
            path: str | None = psutil.Process(pid).terminal()
        except psutil.Error:
            return None
        return path

    def _psutil_terminal(known: psutil.Process) -> int:
        """Return the device number of the controlling terminal, or 0."""
        path = known.terminal()
        try:
            return os.stat(path).st_rdev if path else 0
        except OSError:
            return 0

    def _psutil_environment(known: psutil.Process) -> bytes:
        try:
            return b"\0".join(os.fsencode(f"{k}={v}") for k, v in known.environ().items())
        except (psutil.Error, OSError):
            return b""

    _read_process = _psutil_process
    _read_bare_process = _psutil_bare_process
