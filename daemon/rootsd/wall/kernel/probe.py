"""Find out what this system allows for the wall, and the one command that would help.

Each feature is tried in a child process, so that this process stays as it is. Standard library
only: the start of every confined program uses this module for its error messages.

Sources: user_namespaces(7), landlock(7), seccomp(2), Documentation/filesystems/overlayfs.rst.
Ubuntu 23.10 and later let a program make a user namespace, and then refuse it every capability
there unless an AppArmor profile allows it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from rootsd.wall.kernel import landlock
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    MountFlag,
    Namespace,
    ProcessOption,
    attach_copy,
    change_propagation,
    closing,
    make_namespaces,
    mount,
    open_path,
    set_process_option,
)

LANDLOCK_FOR_REVOCATION = 2
"""The first version of Landlock that does not forbid renames between folders."""
LANDLOCK_FOR_STATIC = 3
"""The first version that keeps programs from truncating files that they may only read."""
_PACKAGE = "/usr/lib/rootsd"
_PROFILE = "/etc/apparmor.d/rootsd"
"""The profile that the Debian package installs, which is for the launcher in `_PACKAGE`."""

_APPARMOR_SWITCH = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


class Probe(NamedTuple):
    """What the system allows.

    `namespaces`, `mounts`, and `seccomp` are 0 or the errno of the refusal. `mounts` are the calls
    for mounts of Linux 5.12. `landlock` is its version, or 0. `restricts` says whether
    AppArmor restricts user namespaces.
    """

    namespaces: int
    mounts: int
    landlock: int
    seccomp: int
    overlay: bool
    restricts: bool


class WallProblem(NamedTuple):
    """Why the wall does not work, and the one command that would help."""

    reason: str
    remedy: str


def probe() -> Probe:
    """Return what this system allows now."""
    if sys.platform != "linux":
        missing = errno.ENOSYS
        return Probe(missing, missing, 0, missing, overlay=False, restricts=False)
    return Probe(
        _errno_in_child(_enter_namespaces),
        _errno_in_child(_copy_mounts),
        landlock.version(),
        _errno_in_child(_ask_seccomp),
        not _errno_in_child(_mount_overlay),
        apparmor_restricts(),
    )


def apparmor_restricts() -> bool:
    """Return whether AppArmor allows user namespaces only to programs with a profile."""
    return _read(_APPARMOR_SWITCH).strip() == "1"


def problem_of(found: Probe) -> WallProblem | None:
    """Return the most important problem, or None if the wall works."""
    if found.namespaces:
        return _namespace_problem(found)
    if found.mounts:
        return WallProblem("this kernel is too old for the wall: Linux 5.12 or newer", "uname -r")
    if found.seccomp:
        return WallProblem("this kernel has no seccomp filters", "uname -r")
    if found.landlock < LANDLOCK_FOR_REVOCATION:
        return WallProblem(
            "this kernel has no Landlock 2, so a program keeps folders that it has open",
            "rootsd confine --on-revoke kill",
        )
    return None


def _namespace_problem(found: Probe) -> WallProblem:
    if found.namespaces == errno.ENOSYS:
        return WallProblem(f"{os.uname().sysname} has no user namespaces", "rootsd run")
    if found.restricts and sys.prefix == _PACKAGE and os.path.exists(_PROFILE):
        return WallProblem(
            "AppArmor does not apply the profile of rootsd", f"sudo apparmor_parser -r {_PROFILE}"
        )
    if found.namespaces == errno.ENOSPC:
        return WallProblem(
            "the limit on user namespaces is 0 or reached",
            "sudo sysctl user.max_user_namespaces=15000",
        )
    why = os.strerror(found.namespaces)
    if found.restricts:
        why = "AppArmor allows them only to programs with a profile, as the Debian package has one"
    static = found.landlock >= LANDLOCK_FOR_STATIC
    remedy = "rootsd confine --static -- PROGRAM" if static else "rootsd run"
    return WallProblem(f"user namespaces are forbidden here: {why}", remedy)


def _errno_in_child(attempt: Callable[[], None]) -> int:
    """Return 0 if `attempt` succeeds in a child process, or the errno of its OSError."""
    child = os.fork()
    if child == 0:
        status = errno.EIO
        try:
            attempt()
            status = 0
        except OSError as error:
            status = error.errno or errno.EIO
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF


def _enter_namespaces() -> None:
    """Make a user and a mount namespace, and use a capability there."""
    make_namespaces(Namespace.MOUNTS)
    change_propagation(b"/", MountFlag.RECURSIVE | MountFlag.PRIVATE)


def _copy_mounts() -> None:
    """Use openat2, open_tree, mount_setattr, and move_mount, as the wall does."""
    _enter_namespaces()
    with closing(open_path(b"/")) as root:
        attach_copy(root, root, Attribute.NO_DEVICES, Depth.ALL)


def _mount_overlay() -> None:
    """Mount an overlay, which loads the module of the kernel if there is one."""
    _enter_namespaces()
    mount(b"none", b"/proc", b"tmpfs", MountFlag(0))
    for name in ("lower", "upper", "work"):
        os.mkdir(f"/proc/{name}")
    data = b"lowerdir=/proc/lower,upperdir=/proc/upper,workdir=/proc/work,userxattr"
    mount(b"none", b"/proc/lower", b"overlay", MountFlag(0), data)


def _ask_seccomp() -> None:
    set_process_option(ProcessOption.GET_SECCOMP, 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
