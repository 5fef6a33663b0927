"""`python -m rootsd.host.service.awaken`: have a daemon run for a bridge that found none.

Through the supervisor where a service is installed, else as the last `up` wrote down; not after
a `down`. Says `ready`, or `error` and a JSON object with code, message and remedy, as the daemon
does to whoever started it. Bridges of other versions rely on these words and on the module's name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rootsd.core.errors import RootsdError
from rootsd.host import folders
from rootsd.host.ipc import connect
from rootsd.host.service import record, starter, supervisor


def main() -> None:
    """Have a daemon run, and print what came of it."""
    try:
        awaken()
    except RootsdError as error:
        told = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
        sys.stdout.write(f"error {json.dumps(told)}\n")
    else:
        sys.stdout.write("ready\n")


def awaken() -> None:
    """Return when a daemon takes connections. Raises DaemonUnreachable where none may be started,
    and StartFailed where none can."""
    record.ensure_allowed()
    if supervisor.start_service(_environment()):
        return
    record.recall()  # before the lock: where nothing was ever started nothing shall be made
    starter.have_run(record.recall, _somebody_listens)


def _environment() -> Mapping[str, str]:
    try:
        return record.recall().environment
    except RootsdError:
        return {}


def _somebody_listens() -> bool:
    for folder in folders.run_folders():
        try:
            connect.connect(folder.mcp_socket).close()
        except connect.NotRunning:
            continue
        return True
    return False


if __name__ == "__main__":
    main()
