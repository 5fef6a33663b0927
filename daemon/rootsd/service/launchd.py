"""Control the service through launchd: `launchctl`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rootsd.service.launcher import StartFailed
from rootsd.service.manager import (
    LOG_LINES,
    RunProgram,
    ServiceManagerUnavailable,
    ServiceState,
    run_checked,
)

AGENT = "org.rootsd.daemon"
SYNC_AGENT = "org.rootsd.sync"


class Launchd:
    """The service manager of macOS, in the domain of the user's login session."""

    def __init__(self, home: Path, run: RunProgram) -> None:
        self.folder = home / "Library/LaunchAgents"
        self._run = run
        self._domain = f"gui/{os.getuid()}"
        self._agent = f"{self._domain}/{AGENT}"

    def is_installed(self) -> bool:
        return self._has(AGENT)

    def is_available(self) -> bool:
        return True

    def ensure_reachable(self) -> None:
        printed = self._run(["launchctl", "print", self._domain])
        if printed.status:
            raise ServiceManagerUnavailable(
                f"launchctl cannot reach your login session: {printed.err}\n"
                "There is one only while you are logged in at the machine itself.\n"
                "rootsd service print shows the file. To start without a service: rootsd up",
                "rootsd up",
            )

    def load(self) -> None:
        self._bootout(SYNC_AGENT)
        self._bootout(AGENT)  # otherwise launchd keeps using the old contents of the file
        run_checked(self._run, ["launchctl", "enable", self._agent])

    def unload(self) -> None:
        self._bootout(SYNC_AGENT)
        self._bootout(AGENT)
        # Remove the mark that `stop` may have left.
        run_checked(self._run, ["launchctl", "enable", self._agent])

    def forget(self) -> None:
        pass  # launchd rereads its folder at each login

    def start(self) -> None:
        self._run_start(["launchctl", "enable", self._agent])
        self.wake()
        if self._has(SYNC_AGENT):
            self._kickstart(SYNC_AGENT)

    def wake(self) -> None:
        self._kickstart(AGENT)

    def restart(self) -> None:
        self._kickstart(AGENT, "-k")

    def restart_sync(self) -> bool:
        if not self._has(SYNC_AGENT):
            return False
        self._kickstart(SYNC_AGENT, "-k")
        return True

    def stop(self) -> None:
        # Disable it, too. Otherwise the next login would start it again. `rootsd sync` ends by
        # itself where the daemon was stopped.
        run_checked(self._run, ["launchctl", "disable", self._agent])
        self._bootout(SYNC_AGENT)
        self._bootout(AGENT)

    def state(self) -> ServiceState:
        shown = self._run(["launchctl", "print", self._agent])
        values = dict(line.strip().partition(" = ")[::2] for line in shown.out.splitlines())
        disabled = self._run(["launchctl", "print-disabled", self._domain]).out
        is_loaded = shown.status == 0
        return ServiceState(
            active=values.get("state", "unknown") if is_loaded else "not loaded",
            enabled=is_loaded and f'"{AGENT}" => disabled' not in disabled,
            sockets=False,
            pid=int(values["pid"]) if values.get("pid", "").isdecimal() else None,
            restarts=max(0, int(runs) - 1) if (runs := values.get("runs", "")).isdecimal() else 0,
            said="",
        )

    def log_command(self, *, follow: bool) -> Sequence[str]:
        log = self.folder.parent / "Logs/rootsd/daemon.log"
        return ["tail", "-n", str(LOG_LINES), *(["-F"] if follow else []), str(log)]

    def _file(self, agent: str) -> Path:
        return self.folder / f"{agent}.plist"

    def _has(self, agent: str) -> bool:
        return self._file(agent).exists()

    def _is_loaded(self, agent: str) -> bool:
        return self._run(["launchctl", "print", f"{self._domain}/{agent}"]).status == 0

    def _bootout(self, agent: str) -> None:
        if self._is_loaded(agent):
            run_checked(self._run, ["launchctl", "bootout", f"{self._domain}/{agent}"])

    def _kickstart(self, agent: str, *flags: str) -> None:
        if not self._is_loaded(agent):
            file = str(self._file(agent))
            self._run_start(["launchctl", "bootstrap", self._domain, file])
        self._run_start(["launchctl", "kickstart", *flags, f"{self._domain}/{agent}"])

    def _run_start(self, command: Sequence[str]) -> None:
        started = self._run(command)
        if started.status:
            raise StartFailed(f"the service does not start: {started.err}", " ".join(command))
