"""Find the service manager of this system, and the installed service."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rootsd.service.launchd import Launchd
from rootsd.service.manager import RunProgram, ServiceManager, run_program
from rootsd.service.systemd import Systemd
from rootsd.system import runtime_dir


def local_service_manager(
    environment: Mapping[str, str], run: RunProgram = run_program
) -> ServiceManager:
    """The supervisor of this system, with the files of this user.

    `environment` is that of the last `up`: an MCP client hides where the configuration lies.
    """
    home = Path(os.fsdecode(runtime_dir.home_folder()))
    if sys.platform == "darwin":
        return Launchd(home, run)
    return Systemd(home, environment.get("XDG_CONFIG_HOME", ""), run)


def installed_service(environment: Mapping[str, str]) -> ServiceManager | None:
    """The supervisor that is to run the daemon; None where it is not installed as a service, or
    cannot be told: in a container or from cron the daemon is started without it.

    With ROOTSD_DIR set there is none, since a service serves the usual places.
    """
    if runtime_dir.overriding_folder():
        return None
    supervisor = local_service_manager(environment)
    return supervisor if supervisor.is_installed() and supervisor.is_at_hand() else None


def start_service(environment: Mapping[str, str]) -> bool:
    """Start the installed service and return when it is ready; False where there is none.

    Raises StartFailed.
    """
    supervisor = installed_service(environment)
    if supervisor is None:
        return False
    supervisor.wake()
    return True
