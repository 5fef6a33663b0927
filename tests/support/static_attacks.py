"""The attacks on a wall of the static engine, as data. To add one, add an entry.

The lines are those of `support.confine_attacks` that mean something without namespaces, and more.
Here, another layer may refuse them. `OPEN` names the attacks of that table that succeed: the
documentation lists them, and the start of each program says so.

No control runs with capabilities, because it would change the system of the tests.
"""

# ruff: noqa: E501 - one line for each attack

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from support.confine_attacks import ATTACKS, Attack, Layer


class StaticLayer(Enum):
    """What refuses an attack, and so what its control goes without."""

    LANDLOCK = "Landlock"
    SECCOMP = "seccomp"
    NETWORK = "--no-network"
    SEVERAL = "Landlock, seccomp, and no capabilities"
    """The control runs outside."""
    LEFT_OUT = "a root that holds a denied project is left out"
    """The control has the root."""


class StaticAttack(NamedTuple):
    """One attack. `only_root` says that the control succeeds for the user root only."""

    name: str
    layer: StaticLayer
    line: str
    only_root: bool = False


OPEN = frozenset(
    {
        "stat a pending project", "enter a pending project", "list a process's descriptors",
        "open a process as a pidfd", "read a process's scheduling",
        "change a mode in a read-only root", "change times in a read-only root",
        "change an attribute in a read-only root",
        "find a process's group", "find a process's session", "read a process's policy",
        "read a process's I/O priority", "read a process's command line",
        "read a process's mounts", "change a mode in a pending project",
        "change times in a pending project", "hold a place in a pending project",
        "read an attribute in a pending project", "watch a pending project",
        "find a handle of a pending project", "list the processes of others",
        "list the machine's connections", "list the sockets of programs outside",
    }
)  # fmt: skip
"""These, and all attacks on protected files in a root."""
_DENIED = frozenset(
    {
        "read the denied project", "write into the denied project", "move the denied project away",
        "exchange the denied project",
    }
)  # fmt: skip
_SEVERAL = frozenset(
    {
        "read through the root of process 1's parent", "read through a process's working directory",
        "read a process's environment", "write a process's memory", "trace a process",
        "open the kernel's log", "change a process's priority", "bind a socket in a pending project",
        "read a process's memory", "change a process's memory", "read a process's mappings",
        "find a process's program", "open a process's namespace",
        "enter a process's user namespace", "signal a process by a descriptor from outside",
        "take a descriptor of a process", "open a message queue", "open a semaphore",
        "connect to a display", "connect to rootsd's control socket", "connect to an ssh agent",
        "connect to a gpg agent", "connect to docker", "send to a datagram socket",
        "make a device in a root",
    }
)  # fmt: skip
_BY_SECCOMP = frozenset(
    {"connect to a socket in a pending project", "attach a shared memory segment"}
)
# Entering needs no right. Whether a priority can be changed depends on the user.
_UNCOMPARABLE = frozenset(
    {
        "enter a folder of the denied project", "watch a folder of the denied project",
        "link a file of the denied project", "change a process's priority",
    }
)  # fmt: skip

_MORE_LANDLOCK = {
    "list the folder above a root": "os.listdir('{base}')",
    "list rootsd's state": "os.listdir('{base}/state')",
    "truncate a file of a pending project": "os.truncate('{pending}/key', os.stat('{pending}/key').st_size)",
    "read through a link in the own home": "os.symlink('{pending}/key', os.environ['HOME'] + '/l')\ntry: read(os.environ['HOME'] + '/l')\nfinally: os.unlink(os.environ['HOME'] + '/l')",
    "move a file out of a read-only root": "there_and_back('{read_only}/file', '{root}/stolen')",
    "make a file for all in /tmp": "make('/tmp/rootsd-attack')",
    "make shared memory": "make('/dev/shm/rootsd-attack')",
    "make a terminal": "os.close(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))",
    "signal init": "os.kill(os.getppid(), 0)",
}  # fmt: skip
_MORE_OUTSIDE = {
    "mount in namespaces of its own": "in_child(lambda: (checked(libc.unshare(0x10020000)), checked(libc.mount(b't', b'{home}', b'tmpfs', 0, None))))",
    "change a process's scheduler": "os.sched_setscheduler({victim}, os.SCHED_BATCH, os.sched_param(0))",
}  # fmt: skip
_MORE_SECCOMP = {
    "send to a socket from a pair": "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', '{pending}/datagrams')",
    "read a process's limits": "import resource; resource.prlimit({victim}, resource.RLIMIT_NOFILE)",
    "use a POSIX message queue": "call(241, b'rootsd-none')",
    "get a semaphore": "call(64, 0x52440001, 1, 0)",
    "get a message queue": "call(68, 0x52440001, 0)",
}  # fmt: skip


def _layer_of(attack: Attack) -> StaticLayer | None:
    """Return the layer that refuses an attack of the common table, or None if none does."""
    if attack.name in OPEN | _UNCOMPARABLE or "terminal_call" in attack.line:
        return None
    if attack.name in _DENIED:
        return StaticLayer.LEFT_OUT
    if attack.name in _SEVERAL:
        return StaticLayer.SEVERAL
    if attack.name in _BY_SECCOMP:
        return StaticLayer.SECCOMP
    return {
        Layer.VIEW: StaticLayer.LANDLOCK,
        Layer.SECCOMP: StaticLayer.SECCOMP,
        Layer.NETWORK: StaticLayer.NETWORK,
    }.get(attack.layer)


STATIC_ATTACKS = (
    *(
        StaticAttack(attack.name, layer, attack.line, attack.only_root)
        for attack in ATTACKS
        if (layer := _layer_of(attack)) is not None
    ),
    *(StaticAttack(name, StaticLayer.LANDLOCK, line) for name, line in _MORE_LANDLOCK.items()),
    *(StaticAttack(name, StaticLayer.SEVERAL, line) for name, line in _MORE_OUTSIDE.items()),
    *(StaticAttack(name, StaticLayer.SECCOMP, line) for name, line in _MORE_SECCOMP.items()),
)
PUBLISHED = tuple(
    attack for attack in ATTACKS if attack.name in OPEN or attack.layer is Layer.PROTECTION
)
"""The attacks that succeed."""
