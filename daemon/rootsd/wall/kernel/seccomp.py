"""Refuse a short list of system calls that lead out of a wall. The rest stays allowed.

`filter_program` builds the program for the kernel and is pure. `install` applies it. Mounts,
namespaces, and Landlock do most of the work. This filter closes what they do not cover: keyrings,
io_uring (which Landlock and audit rules have often missed), sockets of other families (vsock leads
out of a virtual machine), and injecting keys into a terminal. It also shrinks the kernel's attack
surface.

Mounts are refused, too, because Landlock has no hook for mount_setattr(2), and older kernels have
no Landlock. In a user namespace of its own, a program could cut its mounts off from those of the
warden, or mount a root elsewhere. It would then miss each later unmount and each renewed
protection. The calls of the new API do not exist (ENOSYS), so programs fall back to mount(2), and
that one fails as it does under Landlock (EPERM). `NESTED` allows all of them.

`WITHOUT_NAMESPACES` closes more. Landlock lets a program connect to every socket whose path it
knows, such as the one of the user's service manager. So there are no Unix sockets but connected
pairs. A pair of datagram sockets is refused, too, because it can send to any path. System V and
POSIX message queues, shared memory, and the limits and priorities of other processes would be
those of the user.

The program compares only the lower half of an ioctl's number, because the kernel ignores the upper
half. Calls of a foreign architecture (32-bit programs, x32) are refused as a whole: their numbers
mean other calls. Source: seccomp(2), linux/filter.h, linux/seccomp.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import NamedTuple

from rootsd.wall.system_calls import ProcessOption, set_process_option

# Classic BPF: load a word, jump if equal, jump if greater or equal, return.
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ARGUMENT_BYTES = 8
_X32_BIT = 0x40000000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_REFUSED_IOCTLS = (_TIOCSTI, _TIOCLINUX)
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETWORK_FAMILIES = (_AF_INET, _AF_INET6, _AF_NETLINK)
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5
_SOCKET_TYPE_MASK = 0xF  # the other bits are flags, such as SOCK_CLOEXEC
_EVERY_BIT = 0xFFFFFFFF

_NEW_MOUNT_CALLS = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
}  # fmt: skip
"""The new mount API. The numbers are the same on every architecture."""


class _Allowed(NamedTuple):
    """The values of one argument of a call that pass. Only the bits of `mask` are compared."""

    argument: int
    values: tuple[int, ...]
    mask: int = _EVERY_BIT


class FilterRules(NamedTuple):
    """What the filter allows: the families of sockets, pairs of sockets, and groups of calls.

    The `user_wide` calls reach other processes of the user, and objects that they share. Without
    them, the calls of `_OWN_PROCESS` reach the own process only. The `mount_calls` change mounts.
    """

    families: tuple[int, ...]
    pairs: tuple[_Allowed, ...]
    user_wide: bool
    mount_calls: bool = False


_ALL_FAMILIES = (_AF_UNIX, *_NETWORK_FAMILIES)
_CONNECTED_PAIRS = (
    _Allowed(0, (_AF_UNIX,)),
    _Allowed(1, (_SOCK_STREAM, _SOCK_SEQPACKET), _SOCKET_TYPE_MASK),
)
IN_NAMESPACES = FilterRules(_ALL_FAMILIES, (_Allowed(0, _ALL_FAMILIES),), user_wide=True)
"""For a program with namespaces of its own."""
NESTED = IN_NAMESPACES._replace(mount_calls=True)
"""The same, for a program that mounts its own sandbox."""
WITHOUT_NAMESPACES = FilterRules(_NETWORK_FAMILIES, _CONNECTED_PAIRS, user_wide=False)
"""For a program that has only Landlock."""
WITHOUT_NETWORK = WITHOUT_NAMESPACES._replace(families=())
"""The same, without any socket but pairs."""


_SELF = (_Allowed(0, (0,)),)
# A program that could slow its warden down would delay the end of an approval.
_OWN_PROCESS = {
    "ioprio_set": (_Allowed(0, (1, 2)), _Allowed(1, (0,))),
    "prlimit64": _SELF,
    "sched_setattr": _SELF,
    "sched_setparam": _SELF,
    "sched_setscheduler": _SELF,
    "setpriority": (_Allowed(0, (0, 1)), _Allowed(1, (0,))),
}
"""The arguments with which these calls reach the own process or its group, and no user."""


class Architecture(NamedTuple):
    """The numbers of one processor architecture. `own_process` are those of `_OWN_PROCESS`.

    `mount_calls` are those of the old API.
    """

    audit_number: int
    ioctl: int
    socket: int
    socketpair: int
    refused: dict[str, int]
    mount_calls: dict[str, int]
    user_wide: dict[str, int]
    own_process: dict[str, int]


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        ioctl=16,
        socket=41,
        socketpair=53,
        refused={
            "acct": 163, "add_key": 248, "bpf": 321, "io_uring_enter": 426,
            "io_uring_register": 427, "io_uring_setup": 425, "kexec_file_load": 320,
            "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "move_pages": 279,
            "open_by_handle_at": 304, "perf_event_open": 298, "quotactl": 179,
            "request_key": 249, "swapon": 167, "syslog": 103, "userfaultfd": 323,
        },
        mount_calls={"mount": 165, "pivot_root": 155, "umount2": 166},
        user_wide={
            "mq_open": 240, "mq_unlink": 241, "msgctl": 71, "msgget": 68, "msgrcv": 70,
            "msgsnd": 69, "semctl": 66, "semget": 64, "semop": 65, "semtimedop": 220, "shmat": 30,
            "shmctl": 31, "shmget": 29,
        },
        own_process={
            "ioprio_set": 251, "prlimit64": 302, "sched_setattr": 314, "sched_setparam": 142,
            "sched_setscheduler": 144, "setpriority": 141,
        },
    ),
    "aarch64": Architecture(
        0xC00000B7,
        ioctl=29,
        socket=198,
        socketpair=199,
        refused={
            "acct": 89, "add_key": 217, "bpf": 280, "io_uring_enter": 426,
            "io_uring_register": 427, "io_uring_setup": 425, "kexec_file_load": 294,
            "kexec_load": 104, "keyctl": 219, "lookup_dcookie": 18, "move_pages": 239,
            "open_by_handle_at": 265, "perf_event_open": 241, "quotactl": 60,
            "request_key": 218, "swapon": 224, "syslog": 116, "userfaultfd": 282,
        },
        mount_calls={"mount": 40, "pivot_root": 41, "umount2": 39},
        user_wide={
            "mq_open": 180, "mq_unlink": 181, "msgctl": 187, "msgget": 186, "msgrcv": 188,
            "msgsnd": 189, "semctl": 191, "semget": 190, "semop": 193, "semtimedop": 192,
            "shmat": 196, "shmctl": 195, "shmget": 194,
        },
        own_process={
            "ioprio_set": 30, "prlimit64": 261, "sched_setattr": 274, "sched_setparam": 118,
            "sched_setscheduler": 119, "setpriority": 140,
        },
    ),
}  # fmt: skip


def filter_program(machine: str, rules: FilterRules = IN_NAMESPACES) -> bytes:
    """Return the filter for a processor architecture. Raises KeyError if it is not known."""
    architecture = ARCHITECTURES[machine]
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, architecture.audit_number, 1, 0),
        _fail(errno.ENOSYS),
        _step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [_step(_IF_AT_LEAST, _X32_BIT, 0, 1), _fail(errno.ENOSYS)]
    refused = [*architecture.refused.values()]
    if not rules.user_wide:
        refused += architecture.user_wide.values()
    if not rules.mount_calls:
        refused += architecture.mount_calls.values()
        for number in _NEW_MOUNT_CALLS.values():
            code += [_step(_IF_EQUAL, number, 0, 1), _fail(errno.ENOSYS)]
    for number in refused:
        code += [_step(_IF_EQUAL, number, 0, 1), _fail(errno.EPERM)]
    code += _refuse_if_listed(architecture.ioctl, 1, _REFUSED_IOCTLS)
    families = (_Allowed(0, rules.families),)
    code += _refuse_unless(architecture.socket, families, errno.EAFNOSUPPORT)
    code += _refuse_unless(architecture.socketpair, rules.pairs, errno.EAFNOSUPPORT)
    if not rules.user_wide:
        for name, number in architecture.own_process.items():
            code += _refuse_unless(number, _OWN_PROCESS[name], errno.EPERM)
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def install(rules: FilterRules = IN_NAMESPACES) -> None:
    """Apply the filter to this process and all that it starts. Raises OSError."""
    program = filter_program(os.uname().machine, rules)
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and a pointer to them.
    described = struct.pack("@HP", len(program) // struct.calcsize("=HBBI"), _address(buffer))
    set_process_option(ProcessOption.NO_NEW_PRIVILEGES, 1)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), described, 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


def _refuse_if_listed(call: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse `call` if its argument is one of `values`, and end; skip this for other calls."""
    tests = [_step(_IF_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)]
    body = [
        _step(_LOAD, _ARGUMENTS + argument * _ARGUMENT_BYTES),
        *tests,
        _step(_RETURN, _ALLOW),
        _fail(errno.EPERM),
    ]
    return [_step(_IF_EQUAL, call, 0, len(body)), *body]


def _refuse_unless(call: int, allowed: tuple[_Allowed, ...], error: int) -> list[bytes]:
    """Allow `call` only if its arguments have these values, and end; skip this for others."""
    body = []
    for each in allowed:
        count = len(each.values)
        body += [
            _step(_LOAD, _ARGUMENTS + each.argument * _ARGUMENT_BYTES),
            _step(_AND, each.mask),
            *(_step(_IF_EQUAL, value, count - at) for at, value in enumerate(each.values)),
            _fail(error),
        ]
    body.append(_step(_RETURN, _ALLOW))
    return [_step(_IF_EQUAL, call, 0, len(body)), *body]


def _fail(error: int) -> bytes:
    return _step(_RETURN, _FAIL | error)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _address(buffer: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(buffer)
