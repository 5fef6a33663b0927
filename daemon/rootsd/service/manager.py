"""The interface to a service manager: systemd or launchd.

rootsd controls a service manager only through its command: systemctl or launchctl. `run_program`
is the only function that runs these. Tests and `--dry-run` replace it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict

from rootsd.core.errors import RootsdError
from rootsd.service.launcher import START_TIMEOUT_S

USER_RUNTIME = Path("/run/user")
BOOTED = Path("/run/systemd/system")
"""This folder exists where systemd started the machine: sd_booted(3)."""
LOG_LINES = 100
NOT_RUN = 127
QUERY_VERBS = frozenset(("show", "is-active", "print", "print-disabled"))
"""The subcommands that only query the service manager."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The exit status and the output of a program."""

    status: int
    out: str = ""
    err: str = ""


RunProgram = Callable[[Sequence[str]], ProgramResult]


class ServiceManagerUnavailable(RootsdError):
    """No service manager can be reached for this user."""


class ServiceCommandFailed(RootsdError):
    """The service manager rejected a command, or the command failed."""


class ServiceState(TypedDict):
    """The state of the service, as the service manager sees it."""

    active: str
    """The word of the service manager, such as `active`."""
    enabled: bool
    """Whether it starts at login."""
    sockets: bool
    """Whether the service manager listens on the sockets, and starts the daemon at need."""
    pid: int | None
    """The process id of the daemon, or null."""
    restarts: int
    """How often the service manager restarted the daemon."""
    said: str
    """What the daemon reported to the service manager, or empty."""


def is_running(state: ServiceState) -> bool:
    """Return whether a daemon is running or starting."""
    return state["active"] in ("active", "activating", "reloading", "running")


class ServiceManager(Protocol):
    """The operations on a service that the command line and the bridges use."""

    @property
    def folder(self) -> Path:
        """The folder with the unit files of this user."""

    def is_installed(self) -> bool:
        """Return whether our unit file is installed."""

    def is_available(self) -> bool:
        """Return whether the service manager seems to run. Runs no command."""

    def ensure_reachable(self) -> None:
        """Raise ServiceManagerUnavailable if the service manager accepts no commands."""

    def load(self) -> None:
        """Read the files again, and start the daemon at each login from now on."""

    def unload(self) -> None:
        """Stop the daemon, and do not start it at login. Call this before removing the files."""

    def forget(self) -> None:
        """Tell the service manager that the files were removed."""

    def start(self) -> None:
        """Start the daemon for a person, even if it failed too often. Raises StartFailed."""

    def wake(self) -> None:
        """Start the daemon for a client, unless it failed too often. Raises StartFailed."""

    def restart(self) -> None:
        """Replace the running daemon with a new one. Raises StartFailed."""

    def restart_sync(self) -> bool:
        """Restart `rootsd sync`, and return whether it is installed. Raises StartFailed."""

    def stop(self) -> None:
        """Stop the daemon, and close the sockets that the service manager holds for it."""

    def state(self) -> ServiceState:
        """Return the state of the service."""

    def log_command(self, *, follow: bool) -> Sequence[str]:
        """Return the command that shows the log."""


def run_program(command: Sequence[str]) -> ProgramResult:
    """Run a command of a service manager, with the runtime folder in its environment.

    As in a shell, the status is 127 if the program cannot run.
    """
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
    """Run `command` and return its result. Raises ServiceCommandFailed if it fails."""
    finished = run(command)
    if finished.status:
        line = " ".join(command)
        raise ServiceCommandFailed(f"{line}: {finished.err}", line)
    return finished
