"""Control the service through the user's systemd: `systemctl --user`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from rootsd.service import manager
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import (
    LOG_LINES,
    NOT_RUN,
    ProgramResult,
    RunProgram,
    ServiceManagerUnavailable,
    ServiceState,
    run_checked,
)

UNIT = "rootsd.service"
SOCKETS = ("rootsd.socket", "rootsd-control.socket")
SYNC_UNIT = "rootsd-sync.service"
# systemd.unit(5), "User Unit Search Path": `systemctl set-property` writes to user.control, which
# lies beside the user's own folder. The runtime folder has another user.control.
CONTROL = "user.control"
_SHOW_UNIT_PATH = ("systemctl", "--user", "show", "--property=UnitPath", "--value")


class Systemd:
    """The service manager of most Linux systems, for this user."""

    def __init__(self, home: Path, config: str, run: RunProgram) -> None:
        self._home = home
        self._config = config
        self._run = run

    @cached_property
    def folder(self) -> Path:
        """The folder where systemd looks for the user's units.

        Ask systemd, because its XDG_CONFIG_HOME may differ from the shell's. If it does not
        answer, use the folder that already has our unit.
        """
        answer = self._run(_SHOW_UNIT_PATH) if self.is_available() else ProgramResult(NOT_RUN)
        for entry in map(Path, re.split(r" (?=/)", answer.out.strip())):
            if entry.name == CONTROL and not entry.is_relative_to(self._runtime):
                return entry.with_name("user")
        candidates = [
            Path(folder, "systemd/user")
            for folder in (self._config, self._home / ".config")
            if folder
        ]
        return next((c for c in candidates if (c / UNIT).exists()), candidates[-1])

    @property
    def _runtime(self) -> Path:
        return manager.USER_RUNTIME / str(os.getuid())

    def is_installed(self) -> bool:
        return (self.folder / UNIT).exists()

    def is_available(self) -> bool:
        return (self._runtime / "systemd").exists()

    def ensure_reachable(self) -> None:
        runtime = self._runtime
        if not self.is_available() and not manager.BOOTED.is_dir():
            raise ServiceManagerUnavailable(
                "systemd does not run here, as in most containers, so it cannot start rootsd\n"
                "rootsd up runs the daemon without a service, until the machine stops.",
                "rootsd up",
            )
        if not self.is_available():
            raise ServiceManagerUnavailable(
                f"systemd runs no services for you: {runtime}/systemd is missing\n"
                "It is missing in cron and after su. Log in as yourself, with\n"
                f"XDG_RUNTIME_DIR={runtime}. To have it without a login, too:\n"
                '  loginctl enable-linger "$USER"\n'
                "rootsd service print shows the files. To start without a service: rootsd up",
                'loginctl enable-linger "$USER"',
            )
        answer = self._run(["systemctl", "--user", "show", "--property=Version"])
        if answer.status:
            raise ServiceManagerUnavailable(
                f"systemctl --user cannot reach your service manager: {answer.err}\n"
                f"Its bus should be at {runtime}/bus (dbus-user-session on Debian).\n"
                "rootsd service print shows the files. To start without a service: rootsd up",
                "systemctl --user status",
            )

    def load(self) -> None:
        self._systemctl("daemon-reload")
        self._systemctl("enable", UNIT, *self._sockets())

    def unload(self) -> None:
        self.stop()
        self._systemctl("disable", UNIT, *self._sockets())

    def forget(self) -> None:
        self._systemctl("daemon-reload")
        self._forget_failures()

    def start(self) -> None:
        self._forget_failures()
        self._run_start("start", UNIT, *self._sockets())

    def wake(self) -> None:
        self._run_start("start", UNIT)

    def restart(self) -> None:
        self._forget_failures()
        self._run_start("restart", UNIT)

    def restart_sync(self) -> bool:
        if not (self.folder / SYNC_UNIT).exists():
            return False
        self._run_start("restart", SYNC_UNIT)
        return True

    def stop(self) -> None:
        # Stop the sockets, too. Otherwise the next client would start the daemon again.
        self._systemctl("stop", *self._sockets(), UNIT)

    def state(self) -> ServiceState:
        wanted = "ActiveState,UnitFileState,MainPID,NRestarts,StatusText,Result"
        shown = self._systemctl("show", UNIT, f"--property={wanted}").out
        values = dict(line.partition("=")[::2] for line in shown.splitlines())
        sockets = self._run(["systemctl", "--user", "is-active", "--quiet", *SOCKETS])
        pid, restarts = values.get("MainPID", "0"), values.get("NRestarts", "0")
        failure = "" if values.get("Result") in ("success", "") else values.get("Result", "")
        return ServiceState(
            active=values.get("ActiveState", "unknown"),
            enabled=values.get("UnitFileState") == "enabled",
            sockets=sockets.status == 0,
            pid=int(pid) or None,
            restarts=int(restarts),
            said=": ".join(part for part in (failure, values.get("StatusText", "")) if part),
        )

    def log_command(self, *, follow: bool) -> Sequence[str]:
        more = ["--follow"] if follow else ["--no-pager"]
        return ["journalctl", f"--user-unit={UNIT}", f"--lines={LOG_LINES}", *more]

    def _sockets(self) -> list[str]:
        """Return the installed socket units, or all of them before the service is installed."""
        return [n for n in SOCKETS if not self.is_installed() or (self.folder / n).exists()]

    def _forget_failures(self) -> None:
        self._run(["systemctl", "--user", "reset-failed", UNIT, *self._sockets()])

    def _systemctl(self, *words: str) -> ProgramResult:
        return run_checked(self._run, ["systemctl", "--user", *words])

    def _run_start(self, *words: str) -> None:
        command = ["systemctl", "--user", *words]
        started = self._run(command)
        if started.status == NOT_RUN:
            raise StartFailed(f"the service does not start: {started.err}", " ".join(command))
        if started.status:
            reason = self.state()["said"] or started.err
            raise StartFailed(f"the service does not start: {reason}", "rootsd service logs")
