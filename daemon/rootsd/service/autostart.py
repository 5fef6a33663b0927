"""Start the daemon for a client that found none: `python -m rootsd.service.autostart`.

If a service is installed, start it through the service manager. Otherwise start the daemon the way
the last `rootsd up` recorded. After `rootsd down`, start nothing.

Print `ready`, or `error` and a JSON object with code, message, and remedy. The daemon reports to
its launcher in the same format. Bridges of other versions rely on this format and on the name of
this module.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rootsd.core.errors import RootsdError
from rootsd.link.connect import NotRunning, connect_to_daemon
from rootsd.service import detect, launcher, start_record


def main() -> None:
    """Start a daemon if none runs, and print the result."""
    try:
        start_daemon()
    except RootsdError as error:
        failure = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
        sys.stdout.write(f"error {json.dumps(failure)}\n")
    else:
        sys.stdout.write("ready\n")


def start_daemon() -> None:
    """Start a daemon if none runs, and return once it accepts connections.

    Raises DaemonUnreachable if the user stopped the daemon or never started one, and StartFailed
    if the start fails.
    """
    start_record.ensure_start_allowed()
    if detect.start_service(_environment()):
        return
    # Load the record before taking the lock, which creates files: if no daemon ever ran here, this
    # raises first.
    start_record.load_start_record()
    launcher.start_unless_running(start_record.load_start_record, _is_running)


def _environment() -> Mapping[str, str]:
    try:
        return start_record.load_start_record().environment
    except RootsdError:
        return {}


def _is_running() -> bool:
    try:
        connect_to_daemon().close()
    except NotRunning:
        return False
    return True


if __name__ == "__main__":
    main()
