"""Which service manager runs the daemon for its user, if one does."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rootsd.host import folders
from rootsd.host.service.launchd import Launchd
from rootsd.host.service.manager import Run, Supervisor, run_program
from rootsd.host.service.systemd import Systemd


def here(environment: Mapping[str, str], run: Run = run_program) -> Supervisor:
    """The supervisor of this system, with the files of this user.

    `environment` is that of the last `up`: an MCP client hides where the configuration lies.
    """
    home = Path(os.fsdecode(folders.home_folder()))
    if sys.platform == "darwin":
        return Launchd(home, run)
    return Systemd(home, environment.get("XDG_CONFIG_HOME", ""), run)


def installed(environment: Mapping[str, str]) -> Supervisor | None:
    """The supervisor that is to run the daemon; None where it is not installed as a service, or
    cannot be told: in a container or from cron the daemon is started without it.

    With ROOTSD_DIR set there is none, since a service serves the usual places.
    """
    if folders.overriding_folder():
        return None
    supervisor = here(environment)
    return supervisor if supervisor.is_installed() and supervisor.is_at_hand() else None


def start_service(environment: Mapping[str, str]) -> bool:
    """Start the installed service and return when it is ready; False where there is none.

    Raises StartFailed.
    """
    supervisor = installed(environment)
    if supervisor is None:
        return False
    supervisor.wake()
    return True
