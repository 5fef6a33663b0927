"""The checks of `rootsd doctor`, one function for each part of the system.

Both the daemon and the command line run them, because the environment of a service differs from
that of a terminal: the daemon may lack a permission, a variable, or a file system.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import datetime, timedelta

from rootsd.core.doctor import DoctorFinding, error, ok, warning
from rootsd.core.labels import safe_label
from rootsd.wall.kernel.probe import LANDLOCK_FOR_STATIC, Probe, problem_of
from rootsd.watch.inotify_limits import InotifyLimit, sysctl_to_raise

LOW_DISK_SPACE = 64 << 20
CRITICAL_DISK_SPACE = 4 << 20
# The daemon takes at most a quarter of the watches; see rootsd.watch.inotify.
_SHARE = 4
_NEARLY = 0.8
_SKEW = timedelta(minutes=1)
_MIB = 1 << 20
_ALL_OF_OURS = 0o700

LstatFunction = Callable[[bytes], os.stat_result]


def check_private_folder(
    topic: str, folder: bytes, look: LstatFunction = os.lstat
) -> DoctorFinding:
    """Check that a folder of rootsd exists, belongs to the user, and is closed to others."""
    shown = safe_label(folder, limit=None)
    try:
        found = look(folder)
    except FileNotFoundError:
        return warning(topic, f"{shown} does not exist", "rootsd up")
    except OSError as failure:
        return error(topic, f"{shown} cannot be used: {failure.strerror}", f"ls -ld {shown}")
    if not stat.S_ISDIR(found.st_mode):
        return error(topic, f"{shown} is not a folder", f"mv {shown} {shown}.old")
    if found.st_uid != os.geteuid():
        return error(
            topic,
            f"{shown} belongs to user {found.st_uid}, not to you",
            f"sudo chown {os.geteuid()} {shown}",
        )
    if found.st_mode & 0o077:
        return error(topic, f"{shown} is open to other users", f"chmod 700 {shown}")
    if found.st_mode & _ALL_OF_OURS != _ALL_OF_OURS:
        return error(topic, f"{shown} cannot be written by you", f"chmod 700 {shown}")
    return ok(topic, f"{shown} is private")


def check_disk_space(
    topic: str, folder: bytes, look: Callable[[bytes], os.statvfs_result] = os.statvfs
) -> DoctorFinding:
    """Check that the disk has room for decisions, which the daemon cannot save on a full disk."""
    shown = safe_label(folder, limit=None)
    try:
        found = look(folder)
    except OSError as failure:
        return error(topic, f"{shown} cannot be used: {failure.strerror}", f"ls -ld {shown}")
    room = found.f_bavail * found.f_frsize
    message = f"{room // _MIB:,} MiB are free below {shown}"
    remedy = f"df -h {shown}"
    if room < CRITICAL_DISK_SPACE or (found.f_files and not found.f_favail):
        return error(topic, f"{message}, so that decisions may be lost", remedy)
    return ok(topic, message) if room >= LOW_DISK_SPACE else warning(topic, message, remedy)


def check_watch_limit(in_use: int, limit: int | None) -> DoctorFinding:
    """Check that the system grants enough watches.

    `in_use` is the number of watches of the daemon. `limit` is the result of
    `rootsd.watch.inotify_limits.read_inotify_limit`.
    """
    topic = "watches"
    if limit is None:
        return ok(topic, f"{in_use:,} in use")
    ours = limit // _SHARE
    message = f"{in_use:,} in use, of {ours:,} that rootsd takes at most ({limit:,} per user)"
    if in_use < ours * _NEARLY:
        return ok(topic, message)
    line = sysctl_to_raise(InotifyLimit.WATCHES, limit)
    remedy = f"echo {line} | sudo tee /etc/sysctl.d/60-rootsd.conf && sudo sysctl --system"
    return warning(topic, message, remedy)


def check_clock(now: datetime, newest: datetime | None) -> DoctorFinding:
    """Check that the clock was not set back. `newest` is the latest time in the catalog."""
    if newest is not None and newest - now > _SKEW:
        ahead = newest.strftime("%Y-%m-%d %H:%M:%SZ")
        return warning(
            "clock",
            f"it shows a time before {ahead}, when a project was found: it was set back",
            "timedatectl status",
        )
    return ok("clock", f"{now.strftime('%Y-%m-%d %H:%M:%SZ')}")


def check_wall(found: Probe, requirement: str | None = None) -> DoctorFinding:
    """Check that programs can be confined. `found` says what this system allows.

    `requirement` says that the machine's policy requires the wall, or is None.
    """
    topic = "wall"
    if (problem := problem_of(found)) is not None:
        works = found.landlock >= LANDLOCK_FOR_STATIC and not found.seccomp
        static = (
            f"; with --static, Landlock {found.landlock} can confine programs" if works else ""
        )
        if requirement is not None:
            finding = f"{problem.reason}{static}; {requirement}, so no server starts"
            return error(topic, finding, problem.remedy)
        return warning(topic, problem.reason + static, problem.remedy)
    caches = (
        "" if found.overlay else "; toolchains and caches are read-only, as there is no overlayfs"
    )
    return ok(topic, f"namespaces and Landlock {found.landlock} can confine programs{caches}")


def check_confinement(word: str, offered: Callable[[], int]) -> DoctorFinding:
    """Check that the daemon is confined.

    `word` is the confinement that `status` shows. `offered` returns the version of Landlock in the
    kernel, or 0 if it has none.
    """
    topic = "confinement"
    if word != "none":
        return ok(topic, f"by {word}")
    if offered():
        return warning(topic, "none, though the kernel offers Landlock", "rootsd service restart")
    return warning(
        topic, "none: this kernel offers no Landlock", "cat /sys/kernel/security/lsm, and see lsm="
    )
