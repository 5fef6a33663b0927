"""The service manager of the user, where the daemon is installed as its service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rootsd.core.errors import ErrorCode
from rootsd.host import folders
from rootsd.host.starter import PATIENCE, StartFailed

UNIT = "rootsd.service"
AGENT = "org.rootsd.daemon"
USER_RUNTIME = Path("/run/user")


def start_service(environment: Mapping[str, str]) -> bool:
    """Start the installed service and return when it is ready; False where there is none.

    `environment` is that of the last `up`: an MCP client hides where the configuration lies.
    With ROOTSD_DIR set there is none, since a service serves the usual places. Raises StartFailed.
    """
    if folders.overriding_folder():
        return False
    if sys.platform == "darwin":
        return _start_agent()
    return _start_unit(environment)


def _start_unit(environment: Mapping[str, str]) -> bool:
    home = os.fsdecode(folders.home_folder())
    config = Path(environment.get("XDG_CONFIG_HOME") or Path(home, ".config"))
    runtime = USER_RUNTIME / str(os.getuid())
    # Without a user manager (a container, cron) nobody could start it; the recipe still can.
    if not (config / "systemd/user" / UNIT).exists() or not (runtime / "systemd").exists():
        return False
    _run(["systemctl", "--user", "start", UNIT], {"XDG_RUNTIME_DIR": str(runtime)})
    return True


def _start_agent() -> bool:
    home = os.fsdecode(folders.home_folder())
    if not Path(home, "Library/LaunchAgents", f"{AGENT}.plist").exists():
        return False
    _run(["launchctl", "kickstart", f"gui/{os.getuid()}/{AGENT}"], {})
    return True


def _run(command: list[str], more: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **more},
            timeout=PATIENCE,
            check=False,
        )
        said = done.stderr.strip() if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said is not None:
        raise StartFailed(
            f"the service does not start: {said}", " ".join(command), ErrorCode.UNREACHABLE
        )
