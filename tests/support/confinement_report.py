"""A program that reports what its process can do and see, as one JSON object.

Tests copy it to a user and run it there within a unit, so it imports nothing of rootsd. Each
finding is `ok` or the name of the error.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path

# The kernel calls it invalid; the filter refuses all but the ordinary ones before that, and so it
# can be told from a user who may not have real time anyway.
NO_POLICY = 99
CAPABILITIES = {"CAP_SYS_MODULE": 16, "CAP_SYS_TIME": 25, "CAP_SYSLOG": 34}
CLONE_NEWUSER = 0x10000000
READ_IMPLIES_EXEC = 0x0400000
LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1

libc = ctypes.CDLL(None, use_errno=True)


def attempt(action: Callable[[], object]) -> str:
    """Return `ok`, or the name of the error of `action`."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return "ok"


def system_call(number: int, *arguments: int | None) -> int:
    """Make a system call and return its result. Raises OSError."""
    result = int(libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def written(folder: str) -> Callable[[], object]:
    """Return an action that creates and removes a file in `folder`."""

    def write() -> None:
        name = Path(folder, f"written by {os.getpid()}")
        name.write_text("x")
        name.unlink()

    return write


def set_user_id() -> None:
    """Create a program that would run as its owner."""
    name = Path(os.environ["HOME"], f".local/state/rootsd/set-user-id by {os.getpid()}")
    name.touch()
    try:
        name.chmod(0o4755)
    finally:
        name.unlink()


def new_user_namespace() -> None:
    """Create a user namespace, in a child."""
    child = os.fork()
    if not child:
        os._exit(ctypes.get_errno() if libc.unshare(CLONE_NEWUSER) else 0)
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number:
        raise OSError(number, "")


def personality() -> None:
    """Set another execution domain, and reset it."""
    if libc.personality(READ_IMPLIES_EXEC) < 0:
        raise OSError(ctypes.get_errno(), "")
    libc.personality(0)


def keep_priority() -> None:
    """Set the priority that this process already has. Below nice(1), others may be refused."""
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))


def is_read_only(path: str) -> str:
    """Say whether the mount at `path` is read-only."""
    return "read-only" if os.statvfs(path).f_flag & os.ST_RDONLY else "writable"


def main() -> None:
    """Print all findings. The arguments are the folders to write to, and their names."""
    status = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    bounds = int(status["CapBnd"], 16)
    home = os.environ["HOME"]
    found = {
        "no new privileges": status["NoNewPrivs"].strip(),
        "filters": status.get("Seccomp_filters", "?").strip(),
        "capabilities": "some" if bounds else "none",
        **{name: "yes" if bounds >> bit & 1 else "no" for name, bit in CAPABILITIES.items()},
        "umask": status["Umask"].strip(),
        "core": str(resource.getrlimit(resource.RLIMIT_CORE)[1]),
        "files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        "inet socket": attempt(lambda: socket.socket(socket.AF_INET).close()),
        "unix socket": attempt(lambda: socket.socket(socket.AF_UNIX).close()),
        "user namespace": attempt(new_user_namespace),
        "real time": attempt(lambda: os.sched_setscheduler(0, NO_POLICY, os.sched_param(1))),
        "set-user-id": attempt(set_user_id),
        "personality": attempt(personality),
        "writable code": attempt(lambda: mmap.mmap(-1, 4096, prot=7).close()),
        "priority": attempt(keep_priority),
        "landlock": attempt(
            lambda: system_call(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION)
        ),
        "owner of /etc": str(os.stat("/etc").st_uid),
        "list ~/.ssh": attempt(lambda: os.listdir(f"{home}/.ssh")),
        "devices": "all" if os.path.exists("/dev/kmsg") else "few",
        "/proc/sys": is_read_only("/proc/sys"),
        "/sys/fs/cgroup": is_read_only("/sys/fs/cgroup"),
        **{f"write {name}": attempt(written(folder)) for name, folder in
           (word.split("=", 1) for word in sys.argv[1:])},
        **{f"{name} namespace id": os.readlink(f"/proc/self/ns/{name}")
           for name in ("user", "net", "uts")},
    }  # fmt: skip
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
