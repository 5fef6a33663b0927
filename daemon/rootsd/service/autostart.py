"""Start the daemon for a client that found none: `python -m rootsd.service.autostart`.

Through the supervisor where a service is installed, else as the last `up` wrote down; not after
a `down`. Says `ready`, or `error` and a JSON object with code, message and remedy, as the daemon
does to whoever started it. Bridges of other versions rely on these words and on the module's name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rootsd.core.errors import RootsdError
from rootsd.service import detect, launcher, start_record
from rootsd.system import runtime_dir
from rootsd.system.ipc import connect


def main() -> None:
    """Have a daemon run, and print what came of it."""
    try:
        start_daemon()
    except RootsdError as error:
        told = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
        sys.stdout.write(f"error {json.dumps(told)}\n")
    else:
        sys.stdout.write("ready\n")


def start_daemon() -> None:
    """Return when a daemon takes connections. Raises DaemonUnreachable where none may be started,
    and StartFailed where none can."""
    start_record.ensure_start_allowed()
    if detect.start_service(_environment()):
        return
    # before the lock: where nothing was ever started nothing shall be made
    start_record.load_start_record()
    launcher.start_unless_running(start_record.load_start_record, _somebody_listens)


def _environment() -> Mapping[str, str]:
    try:
        return start_record.load_start_record().environment
    except RootsdError:
        return {}


def _somebody_listens() -> bool:
    for folder in runtime_dir.find_runtime_dirs():
        try:
            connect.connect(folder.mcp_socket).close()
        except connect.NotRunning:
            continue
        return True
    return False


if __name__ == "__main__":
    main()
