"""Find out what processes are doing: whether a program is busy, and which folders are being
written.

Whether programs are at work or wait for something, on Linux. Source: proc(5).

Tells which folders a process of ours is at work making (Linux, from /proc).

A process that was stopped, that waits for a password or for a slow server is as quiet as one that
has finished; only this tells them apart. About 1 ms for 100 processes, for however many folders.
Source: proc(5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator

_AT_WORK = (b"R", b"D")  # on a CPU or waiting for one, and waiting for a disk
_TOLD = re.compile(rb"^State:\t(.)|^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)
_STATUS_CAP = 1 << 16

_Threads = dict[bytes, list[tuple[bytes, bytes]]]


def is_busy(pid: int) -> bool:
    """Whether any thread of a process, or of those that it has started, runs or is about to.

    False where all of them sleep at one and the same moment, and where the system does not tell.
    """
    before = _threads(pid)
    if any(state in _AT_WORK for told in before.values() for state, _ in told):
        return True
    # One may have been woken after it was looked at, by one that slept when that was looked at:
    # then it has run, or runs still. How often each was given a CPU tells so.
    return _threads(pid) != before


def _threads(pid: int) -> _Threads:
    """Each thread's state, and how often it gave its CPU away."""
    found: _Threads = {}
    processes = [b"%d" % pid]
    for process in processes:
        folder = b"/proc/%s/task/" % process
        try:
            numbers = os.listdir(folder)
        except OSError:  # gone, or no Linux
            continue
        for number in numbers:
            found[number] = _TOLD.findall(_read_or_empty(folder + number + b"/status"))
            # Where the kernel keeps no such list, what it has started is not seen.
            processes += _read_or_empty(folder + number + b"/children").split()
    return found


def _read_or_empty(file: bytes) -> bytes:
    try:
        with open(file, "rb", buffering=0) as stream:
            return stream.read(_STATUS_CAP) or b""
    except OSError:
        return b""


FindFoldersInUse = Callable[[Collection[bytes]], frozenset[bytes]]

_TOOLS = (
    b"git",
    b"jj",
    b"hg",
    b"svn",
    b"gh",
    b"tar",
    b"bsdtar",
    b"unzip",
    b"rsync",
    b"cp",
    b"7z",
    b"cpio",
    b"mv",
    b"sl",
    b"fossil",
    b"bzr",
    b"brz",
    b"pijul",
    b"darcs",
    b"pax",
    b"scp",
    b"ditto",
)
_FLAGS = re.compile(rb"flags:\s+(\d+)")
_CMDLINE_CAP = 8192
_FDINFO_CAP = 256


def folders_in_use(folders: Collection[bytes]) -> frozenset[bytes]:
    """Those of `folders` that a process of our user is making, all from one look.

    That is: it names the folder among its arguments; or a VCS or copy tool stands inside it; or it
    clones what must become it; or it holds a file open for writing below it. Where there is no
    /proc the answer is none, and quiet times alone decide.
    """
    if not folders:
        return frozenset()
    wanted, taken = set(folders), set[bytes]()
    # Most files that are open lie elsewhere.
    shared = os.path.commonpath(wanted)
    for process in _our_processes():
        taken.update(_worked_on_by(process, wanted, shared))
    return frozenset(taken)


def _our_processes() -> Iterator[bytes]:
    me, own = os.getuid(), b"%d" % os.getpid()
    try:
        numbers = [name for name in os.listdir(b"/proc") if name.isdigit() and name != own]
    except OSError:
        return
    for number in numbers:
        process = b"/proc/" + number
        try:
            if os.stat(process).st_uid == me:
                yield process
        except OSError:
            continue


def _worked_on_by(process: bytes, folders: set[bytes], shared: bytes) -> Iterator[bytes]:
    try:
        arguments = _read(process + b"/cmdline", _CMDLINE_CAP).split(b"\0")[:-1]
        # Without any it is a kernel thread or a zombie.
        cwd = os.readlink(process + b"/cwd") if arguments else b""
    except OSError:
        # It ended, or may not be looked at.
        return
    if arguments:
        yield from _spoken_of(arguments, cwd, folders)
        yield from _written_to(process, folders, shared)


def _read(file: bytes, cap: int) -> bytes:
    """What the kernel tells by a file, as much as it gives at once."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, cap)
    finally:
        os.close(fd)


def _spoken_of(arguments: list[bytes], cwd: bytes, folders: set[bytes]) -> set[bytes]:
    named = (arg for arg in arguments[1:] if arg and not arg.startswith(b"-"))
    found = folders.intersection(os.path.normpath(os.path.join(cwd, arg)) for arg in named)
    clones = b"clone" in arguments
    if clones or os.path.basename(arguments[0]).startswith(_TOOLS):
        found |= folders.intersection(_with_those_above(cwd))
    if clones:
        found |= folders.intersection(_clones_of(arguments, cwd))
    return found


def _with_those_above(path: bytes) -> Iterator[bytes]:
    while path.rstrip(b"/"):
        yield path
        path = path.rpartition(b"/")[0]


def _clones_of(arguments: list[bytes], cwd: bytes) -> Iterator[bytes]:
    """The folders that `git clone` names after one of the arguments, if that is the source."""
    for argument in arguments:
        source = argument.rstrip(b"/").removesuffix(b".git")
        name = os.path.join(cwd, re.split(rb"[/:]", source)[-1])
        yield name
        yield name + b".git"


def _written_to(process: bytes, folders: set[bytes], shared: bytes) -> Iterator[bytes]:
    """Those of the folders, which all lie in `shared`, below which the process holds a file open
    for writing."""
    try:
        numbers = os.listdir(process + b"/fd")
    except OSError:
        return
    for number in numbers:
        try:
            file = os.readlink(process + b"/fd/" + number)
            if not file.startswith(shared):
                continue
            holders = folders.intersection(_with_those_above(os.path.dirname(file)))
            if holders and _is_for_writing(process + b"/fdinfo/" + number):
                yield from holders
        except OSError:
            # This one was closed meanwhile; the others still count.
            continue


def _is_for_writing(fdinfo: bytes) -> bool:
    """Whether a descriptor may be written to. Raises OSError if it was closed."""
    found = _FLAGS.search(_read(fdinfo, _FDINFO_CAP))
    return found is not None and bool(int(found[1], 8) & os.O_ACCMODE)
