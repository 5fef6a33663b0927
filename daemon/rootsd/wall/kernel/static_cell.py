"""Start a program behind a wall of Landlock and seccomp alone, without namespaces.

`enter` is called in a forked child, which becomes the waiter of `rootsd.wall.kernel.supervision`.
Without a pid namespace, the kernel does not end everything with init. So the waiter and init each
end everything below them: when the program ends, when the warden or the starter ends, and when
the other one of the two is killed.

    starter -> waiter -> init -> program
               domain 1  domain 2  domain 3

From version 6 on, Landlock limits signals to the processes of a domain and of the domains inside
it. The waiter makes domain 1 around itself, and init makes domain 2 inside it. So a program can
signal neither of them, and `kill(-1)` of the waiter or init reaches their programs and nothing
else. The kernel holds the list of processes for the whole call. So no process escapes by forking.

Below version 6, the waiter and init look for their descendants until none is left. Both are
subreapers, so descendants cannot leave them. Sources: landlock(7), kill(2), prctl(2).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from rootsd.disk.process_stat import process_stats
from rootsd.wall.kernel import landlock, seccomp
from rootsd.wall.kernel.supervision import (
    WARDEN_LOST,
    CellOptions,
    EndAll,
    Layer,
    Network,
    become_waiter,
    fork_program,
    open_terminal,
    wait,
)
from rootsd.wall.kernel.warden import Warden
from rootsd.wall.system_calls import ProcessOption, drop_capabilities, set_process_option

_TERMINALS = "/dev/ptmx"
_WAITER_ENDED = 30  # SIGPWR, which macOS lacks; nothing else sends it


def enter(warden: Warden, options: CellOptions, version: int) -> None:
    """Restrict this process. Return in the program's process only. Raises OSError.

    `version` is the one of Landlock to use.
    """
    (rules,) = warden.gates
    starter = os.getppid()
    # A fatal signal would leave the program without a waiter. It watches the starter instead.
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, 0)
    owner = os.pidfd_open(starter)
    if os.getppid() != starter:
        os._exit(1)
    scopes = version if Layer.LANDLOCK not in options.without else 0
    end_all = _become_supervisor(starter, scopes)
    os.setsid()
    become_waiter()
    waiter = os.getpid()
    init = os.fork()
    if init:
        drop_capabilities()
        wait(init, (warden.alive, owner), end_all)
    end_all = _become_supervisor(waiter, scopes)
    _end_with(waiter, end_all)
    os.setsid()
    slave = open_terminal(options.terminal, _TERMINALS)
    fork_program(slave, options, end_all)
    signal.signal(_WAITER_ENDED, signal.SIG_DFL)
    _give_up_privileges(rules, options)
    _change_folder(options.folder, warden.variables["HOME"])


def _become_supervisor(outside: int, version: int) -> EndAll:
    """Return the function that ends all processes below this one. `outside` is one above it."""
    set_process_option(ProcessOption.CHILD_SUBREAPER, 1)
    if version < landlock.SCOPES_SINCE:
        return _end_descendants
    landlock.restrict_signals(outside)
    return _end_domain


def _end_with(waiter: int, end_all: EndAll) -> None:
    """End everything if the waiter is killed."""

    def end(_number: int, _frame: object) -> None:
        end_all()
        os._exit(WARDEN_LOST)

    signal.signal(_WAITER_ENDED, end)
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, _WAITER_ENDED)
    if os.getppid() != waiter:  # it died before that call, so no signal comes
        os._exit(1)


def _end_domain() -> None:
    """Kill every process of this domain but this one, and wait until they are gone.

    `restrict_signals` has made sure that -1 does not mean all processes of the user.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _end_descendants() -> None:
    """Kill every descendant of this process, and wait until they are gone."""
    with suppress(ChildProcessError):
        while True:
            found = _descendants(os.getpid())
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            # A process whose parent ends while this looks can be missing, and never ends then.
            os.waitpid(-1, 0 if found else os.WNOHANG)


def _descendants(ancestor: int) -> set[int]:
    parents = {seen.pid: seen.parent for seen in process_stats()}
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


def _give_up_privileges(rules: int, options: CellOptions) -> None:
    if Layer.CAPABILITIES not in options.without:
        drop_capabilities()
    if Layer.LANDLOCK not in options.without:
        landlock.restrict_by(rules)
    if Layer.SECCOMP not in options.without:
        has_network = options.network is Network.SHARED
        seccomp.install(seccomp.WITHOUT_NAMESPACES if has_network else seccomp.WITHOUT_NETWORK)


def _change_folder(wanted: bytes | None, home: str) -> None:
    """Change to the working directory, or home. Landlock does not limit chdir(2), but open(2)."""
    for folder in (wanted, os.fsencode(home)):
        with suppress(OSError):
            if folder is not None:
                os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
                os.chdir(folder)
                return
    os.chdir("/")
