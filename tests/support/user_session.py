"""The usual places in a test's own home. The service managers are fakes that record commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rootsd import __version__
from rootsd.places import runtime_dir
from rootsd.places.runtime_dir import RuntimeDir
from rootsd.service import detect, manager
from rootsd.service.launchd import Launchd
from rootsd.service.manager import ProgramResult, RunProgram, ServiceManager
from rootsd.service.systemd import Systemd
from support.fake_daemon import FakeDaemon, a_status
from support.fake_service_manager import FakeServiceManager

PID = 4121


class UserSession:
    """One user's session: a home, a fake of systemctl or launchctl, and optionally a daemon."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.units = home / ".config/systemd/user"
        self.agents = home / "Library/LaunchAgents"
        self.state = home / ".local/state/rootsd"
        self.recorder = FakeServiceManager()
        self.recorder.answers["systemctl --user is-active"] = ProgramResult(3)
        monkeypatch.delenv("ROOTSD_DIR")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setattr(manager, "USER_RUNTIME", home / "user")
        monkeypatch.setattr(manager, "run_program", self.recorder)
        (home / "user" / str(os.getuid()) / "systemd").mkdir(parents=True)
        run = RuntimeDir(bytes(home / "run"))
        monkeypatch.setattr(runtime_dir, "find_runtime_dirs", lambda: (run,))
        self._managing: ServiceManager = Systemd(home, "", self.recorder)
        self.stopped: list[object] = []
        monkeypatch.setattr("rootsd.cli.answers.lifecycle.stop", self.stopped.append)
        monkeypatch.setattr(detect, "local_service_manager", self._here)

    def _here(self, environment: object, run: RunProgram | None = None) -> ServiceManager:
        if run is not None:  # a rehearsal
            return Systemd(self.home, "", run)
        return self._managing

    def is_a_mac(self) -> None:
        """Have launchd instead of systemd."""
        self._managing = Launchd(self.home, self.recorder)

    def service_runs(self, active: str = "active", pid: int = PID) -> None:
        """What systemctl tells of the service from now on."""
        self.recorder.answers["systemctl --user is-active"] = ProgramResult(0)
        shown = f"ActiveState={active}\nUnitFileState=enabled\nMainPID={pid}\nResult=success\n"
        self.recorder.answers["systemctl --user show rootsd.service"] = ProgramResult(0, shown)

    @contextmanager
    def daemon(self, version: str = __version__, pid: int = PID) -> Iterator[FakeDaemon]:
        """A daemon that answers, whoever started it."""
        with FakeDaemon(self.home) as daemon:
            since, confined = "2026-11-20T08:11:02Z", "landlock"
            about = {"version": version, "pid": pid, "since": since, "confined": confined}
            daemon.answers |= {"status": a_status(daemon=about), "reload": a_status(daemon=about)}
            yield daemon
