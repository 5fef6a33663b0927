"""Define what a service manager offers, and run its programs.

They are told through their own programs, systemctl and launchctl. `run_program` is the one door to
these; tests put a recorder in its place, and so does a rehearsal.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rootsd.core.errors import RootsdError
from rootsd.service.launcher import START_TIMEOUT_S

USER_RUNTIME = Path("/run/user")
LOG_LINES = 100
NOT_RUN = 127
QUERY_VERBS = frozenset(("show", "is-active", "print", "print-disabled"))
"""The words by which a service manager is asked, and changes nothing."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, and what it said."""

    status: int
    out: str = ""
    err: str = ""


RunProgram = Callable[[Sequence[str]], ProgramResult]


class ServiceManagerUnavailable(RootsdError):
    """No service manager can be reached for this user."""


class ServiceCommandFailed(RootsdError):
    """The service manager did not do what it was told."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How the service stands. `active` and `said` are in the supervisor's own words; `sockets` is
    whether it holds the sockets too."""

    active: str
    enabled: bool
    sockets: bool
    pid: int | None
    restarts: int
    said: str

    @property
    def is_running(self) -> bool:
        """Whether there is a daemon, or is about to be one."""
        return self.active in ("active", "activating", "reloading", "running")


class ServiceManager(Protocol):
    """What the command line and bridges ask of either."""

    @property
    def folder(self) -> Path:
        """Where its files for this user lie."""

    def is_installed(self) -> bool:
        """Whether our file is among them."""

    def is_at_hand(self) -> bool:
        """Whether there seems to be one; a look that costs nothing."""

    def ensure_reachable(self) -> None:
        """Raise NoSupervisor where it cannot be told anything."""

    def load(self) -> None:
        """Read the files again, and start the daemon at each login from now on."""

    def unload(self) -> None:
        """Stop the daemon, and start it at no login any more; the files may go afterwards."""

    def forget(self) -> None:
        """The files are gone: read again what there is."""

    def start(self) -> None:
        """Have the daemon run, also where it failed too often before. Raises StartFailed."""

    def wake(self) -> None:
        """The same for a bridge: one that failed too often stays as it is. Raises StartFailed."""

    def restart(self) -> None:
        """A new daemon instead of the one that runs. Raises StartFailed."""

    def stop(self) -> None:
        """End the daemon, and hold no sockets for it."""

    def state(self) -> ServiceState:
        """How it stands."""

    def log_command(self, *, follow: bool) -> Sequence[str]:
        """The program that shows the log."""


def run_program(command: Sequence[str]) -> ProgramResult:
    """Run one of the service managers' programs, with their runtime folder in the environment;
    127 where it cannot be run, as shells have it."""
    runtime = {"XDG_RUNTIME_DIR": str(USER_RUNTIME / str(os.getuid()))}
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **runtime, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"},
            timeout=2 * START_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProgramResult(NOT_RUN, "", str(error))
    return ProgramResult(done.returncode, done.stdout, done.stderr.strip())


def run_checked(run: RunProgram, command: Sequence[str]) -> ProgramResult:
    """What came of `command`. Raises SupervisorRefused where it failed."""
    finished = run(command)
    if finished.status:
        line = " ".join(command)
        raise ServiceCommandFailed(f"{line}: {finished.err}", line)
    return finished
