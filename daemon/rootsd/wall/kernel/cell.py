"""Start a program inside a wall of namespaces: its own processes and terminals, no privileges.

`enter` is called in a forked child, which becomes the waiter of `supervision`. It
stays in the starter's pid namespace. Init is process 1 of a new pid namespace, and `enter` returns
in the program's process only, which then calls execve.

If the starter dies, the kernel kills the waiter, then init, and with init the whole namespace. The
waiter also watches the pipe that the warden holds: without a warden, no root could be taken away,
so the program ends.

The order of the steps matters. Capabilities go last but before Landlock and seccomp, which need
only no_new_privs. proc is mounted before the pivot, because the kernel refuses a new proc where
none is visible. Sources: namespaces(7), pid_namespaces(7), pivot_root(2), prctl(2).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from rootsd.wall.kernel import landlock, seccomp
from rootsd.wall.kernel.supervision import (
    CellOptions,
    Layer,
    Network,
    become_waiter,
    fork_program,
    is_readable,
    open_terminal,
    wait,
)
from rootsd.wall.kernel.warden import TREE, VIEW, Warden
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    MountFlag,
    Namespace,
    ProcessOption,
    attach_copy,
    bind,
    bring_up_loopback,
    closing,
    drop_capabilities,
    make_namespaces,
    mount,
    pivot_here,
    set_process_option,
)
from rootsd.wall.system_calls import (
    enter as enter_namespace,
)
from rootsd.wall.view.default_view import PROC_HIDDEN, PROC_READ_ONLY

_NO_PRIVILEGES = MountFlag.NO_SUID | MountFlag.NO_DEVICES | MountFlag.NO_EXEC
_TERMINALS = "/dev/pts/ptmx"


def enter(warden: Warden, options: CellOptions) -> None:
    """Move this process behind the wall. Return in the program's process only. Raises OSError."""
    starter = os.getppid()
    user, mounts = warden.gates
    enter_namespace(user, Namespace.USER)
    enter_namespace(mounts, Namespace.MOUNTS)
    namespaces = (
        Namespace.MOUNTS | Namespace.PROCESSES | Namespace.IPC | Namespace.HOST_NAME
        | Namespace.CGROUP
    )  # fmt: skip
    if options.network is Network.PRIVATE:
        namespaces |= Namespace.NETWORK
    make_namespaces(namespaces)
    # Not earlier: a change of the namespace clears it.
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != starter:
        os._exit(1)
    os.setsid()
    become_waiter()
    waiter = os.pidfd_open(os.getpid())
    init = os.fork()
    if init:
        drop_capabilities()
        wait(init, (warden.alive,), _ends_by_itself)
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if is_readable(waiter):  # it died before that call, so no signal comes
        os._exit(1)
    os.close(waiter)
    _build(warden.folder + TREE + VIEW)
    if options.network is Network.PRIVATE:
        bring_up_loopback()
    os.setsid()
    slave = open_terminal(options.terminal, _TERMINALS)
    _give_up_privileges(options.without)
    fork_program(slave, options, _ends_by_itself)
    _change_folder(options)


def _ends_by_itself() -> None:
    """Do nothing: with init, the kernel ends everything in the namespace."""


def _build(root: bytes) -> None:
    """Make the tree of the warden this process's root, with its own proc and terminals."""
    os.chdir(root)
    # A mount of our own to pivot to: those that came from the warden are locked in their places.
    bind(b".", root)
    os.chdir(root)
    mount(b"proc", b"proc", b"proc", _NO_PRIVILEGES)
    _limit_proc()
    terminals = b"newinstance,ptmxmode=0666,mode=0620"
    mount(b"devpts", b"dev/pts", b"devpts", MountFlag.NO_SUID | MountFlag.NO_EXEC, terminals)
    mount(b"mqueue", b"dev/mqueue", b"mqueue", _NO_PRIVILEGES)
    pivot_here()


def _limit_proc() -> None:
    """Make the settings in proc read-only, and hide the kernel's internals.

    The user root may write the settings of the whole system there without any capability.
    """
    for name in PROC_READ_ONLY:
        _cover(b"proc/" + name, b"proc/" + name)
    for name in PROC_HIDDEN:
        path = b"proc/" + name
        _cover(path, b"dev/mqueue" if os.path.isdir(path) else b"dev/null")


def _cover(path: bytes, source: bytes) -> None:
    flags = os.O_PATH | os.O_CLOEXEC
    if os.path.exists(path):
        with closing(os.open(path, flags)) as point, closing(os.open(source, flags)) as found:
            attach_copy(found, point, Attribute.READ_ONLY, Depth.ONE)


def _give_up_privileges(without: frozenset[Layer]) -> None:
    if Layer.CAPABILITIES not in without:
        drop_capabilities()
    if Layer.LANDLOCK not in without:
        landlock.restrict_to_attached()
    if Layer.SECCOMP not in without:
        is_nested = Layer.MOUNT_CALLS in without
        seccomp.install(seccomp.NESTED if is_nested else seccomp.IN_NAMESPACES)


def _change_folder(options: CellOptions) -> None:
    for folder in (options.folder, options.home, b"/"):
        with suppress(OSError):
            if folder is not None:
                os.chdir(folder)
                return
