"""Find the service manager of this system, and the installed service."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rootsd.places import runtime_dir
from rootsd.places.base_folders import named_folder
from rootsd.service.launchd import Launchd
from rootsd.service.manager import RunProgram, ServiceManager, run_program
from rootsd.service.systemd import Systemd


def local_service_manager(
    environment: Mapping[str, str], run: RunProgram = run_program
) -> ServiceManager:
    """Return the service manager of this system, for this user.

    `environment` is the one that the last `rootsd up` recorded. The environment of this process
    may lack the variables that locate the configuration: an MCP client passes on only a few.
    """
    home = Path(os.fsdecode(runtime_dir.home_folder()))
    if sys.platform == "darwin":
        return Launchd(home, run)
    return Systemd(home, named_folder("XDG_CONFIG_HOME", environment), run)


def installed_service(environment: Mapping[str, str]) -> ServiceManager | None:
    """Return the service manager if the daemon is installed as its service, or None.

    Also return None if the service manager is out of reach, as in a container or in cron. The
    daemon then starts without it. With ROOTSD_DIR set, return None, because a service uses the
    default folders.
    """
    if runtime_dir.overriding_folder():
        return None
    service_manager = local_service_manager(environment)
    return (
        service_manager
        if service_manager.is_installed() and service_manager.is_available()
        else None
    )


def start_service(environment: Mapping[str, str]) -> bool:
    """Start the installed service and wait until it is ready. Return False if none is installed.

    Raises StartFailed.
    """
    service_manager = installed_service(environment)
    if service_manager is None:
        return False
    service_manager.wake()
    return True
