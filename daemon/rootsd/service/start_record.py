"""Plan the start of the daemon, and record its folders and whether it may be started again.

A `StartPlan` is what a start in the background, the start record, and the service files share.

`rootsd up` writes the start record. A bridge that finds no daemon starts one with it, because MCP
clients strip the environment variables that locate the folders. cron, ssh, and editors strip them,
too, so commands started there also take the folders from the record. `rootsd down` leaves a mark
that forbids a start. The folder of both files depends only on the home folder or on ROOTSD_DIR.

The record says nothing about what to run. A bridge starts the module of its own installation, with
its own interpreter, because whoever could write the record could otherwise run any program. For
the same reason, it takes only variables with known names and harmless values from the record. It
computes the others, and the place of the log, as `up` does.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable
from rootsd.files.private_files import (
    display_path,
    ensure_private_folder,
    open_private_file,
    unusable_error,
)
from rootsd.places import runtime_dir
from rootsd.places.base_folders import (
    PLACE_VARIABLES,
    RECORD_NAME,
    base_folder,
    default_folder,
    named_folder,
    recorded_variables,
)
from rootsd.processes.own_program import own_command

STOPPED_NAME = "stopped"

# The record keeps these besides the variables that locate configuration and state. It keeps no
# others, because they could hold secrets, the variables that mark an agent's session, or a program
# to load.
_KEPT_VARIABLES = frozenset(
    ("LANG", "TMPDIR", "TZ", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
)
_FOLDER_VARIABLES = frozenset((*PLACE_VARIABLES, "TMPDIR", "XDG_RUNTIME_DIR"))
_BUS = "DBUS_SESSION_BUS_ADDRESS"
# An address of the kind `unixexec:` names a program for systemctl to run (dbus-daemon(1)).
_BUS_ADDRESS = re.compile(r"unix:(?:path|abstract)=[^;,]*(?:,guid=[0-9a-f]*)?")
_LOCALE = re.compile(r"LC_[A-Z]+")


class PlacesMismatch(RootsdError):
    """This shell sets other folders than those that the running daemon uses."""

    code = ErrorCode.BAD_CONFIG


class StartPlan(NamedTuple):
    """How this installation starts the daemon and `rootsd sync`.

    `daemon` and `sync` are the commands of a start in the background, and `environment` has all
    their variables. `folder` has the record and the mark of `rootsd down`. `logs` is the folder of
    the files that receive standard output and standard error.
    """

    daemon: tuple[str, ...]
    sync: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    logs: Path

    @property
    def places(self) -> dict[str, str]:
        """The variables that locate configuration and state, if they are set."""
        return _places_in(self.environment)

    @property
    def stopped(self) -> Path:
        """The mark of `rootsd down`."""
        return self.folder / STOPPED_NAME

    @property
    def log(self) -> Path:
        """The log of the daemon."""
        return self.logs / "daemon.log"

    @property
    def sync_log(self) -> Path:
        """The log of `rootsd sync`."""
        return self.logs / "sync.log"


def start_folder() -> Path:
    """Return the folder of the record and the mark. Raises FolderUnavailable."""
    if override := runtime_dir.overriding_folder():
        return Path(os.fsdecode(override), "state")
    return Path(default_folder("XDG_STATE_HOME"), "rootsd")


def plan_start() -> StartPlan:
    """Return how to start the daemon with the folders that this shell sets."""
    return _plan({**os.environ, **recorded_places(), **_places_here()})


def _plan(variables: Mapping[str, str]) -> StartPlan:
    """Return how to start the daemon. Only some of `variables` reach it."""
    kept = {name: value for name, value in variables.items() if _is_kept(name, value)}
    if runtime_dir.overriding_folder():  # then these have no effect
        kept = {name: value for name, value in kept.items() if name not in PLACE_VARIABLES}
    environment = {**kept, **_own_variables()}
    # Isolated: Python must not import a folder `rootsd` in the working directory, or what a
    # variable names.
    own = own_command()
    return StartPlan(
        daemon=(*own, "daemon", "--detach"),
        sync=(*own, "sync", "run"),
        environment=environment,
        folder=start_folder(),
        logs=_log_folder(environment),
    )


def _is_kept(name: str, value: str) -> bool:
    if name in _FOLDER_VARIABLES:  # the XDG base directory specification ignores relative paths
        return value.startswith("/")
    if name == _BUS:
        return _BUS_ADDRESS.fullmatch(value) is not None
    return name in _KEPT_VARIABLES or _LOCALE.fullmatch(name) is not None


def _own_variables() -> dict[str, str]:
    """Return the variables that no record may set."""
    own = {"HOME": os.fsdecode(runtime_dir.home_folder())}
    if override := runtime_dir.overriding_folder():
        own[runtime_dir.OVERRIDE] = os.fsdecode(override)
    with suppress(KeyError):  # a container may have no entry for the user
        own["USER"] = own["LOGNAME"] = pwd.getpwuid(os.getuid()).pw_name
    return own


def _log_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of `Places.log` for a daemon with this environment.

    `places.daemon_folders` implements the same rule for programs that may load platformdirs.
    """
    if override := runtime_dir.overriding_folder():
        return Path(os.fsdecode(override), "state/log")
    if sys.platform == "darwin" and "XDG_STATE_HOME" not in environment:
        return Path(environment["HOME"], "Library/Logs/rootsd")
    return Path(base_folder("XDG_STATE_HOME", environment), "rootsd/log")


def record_start() -> StartPlan:
    """Plan a start with the folders that this shell sets, save it, and return it."""
    plan = plan_start()
    save_start_record(plan)
    return plan


def save_start_record(plan: StartPlan) -> None:
    """Save the record for bridges, and remove the mark of `rootsd down`. Raises RootsdError.

    An unchanged record is not written again, so that a full disk does not prevent a start.
    """
    folder = start_folder()
    ensure_private_folder(folder)
    (folder / STOPPED_NAME).unlink(missing_ok=True)
    with suppress(DaemonUnreachable):
        if _read_start_record() == plan:
            return
    fresh = folder / f"{RECORD_NAME}.{os.getpid()}"  # several `rootsd up` may run at once
    try:
        with open(open_private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
            json.dump({"environment": dict(plan.environment)}, stream)
        fresh.replace(folder / RECORD_NAME)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise unusable_error(fresh, error) from error


def load_start_record() -> StartPlan:
    """Return how a bridge may start a daemon: with the variables of the last `up`.

    Raises DaemonUnreachable if the user stopped the daemon or never started one.
    """
    ensure_start_allowed()
    return _read_start_record()


def ensure_start_allowed() -> None:
    """Raise DaemonUnreachable after `rootsd down`: then only `rootsd up` may start the daemon."""
    if is_stopped():
        raise DaemonUnreachable("the daemon was stopped by rootsd down", "rootsd up")


def recorded_places() -> dict[str, str]:
    """Return the variables that locate the folders, as last recorded. Ignore this shell."""
    if runtime_dir.overriding_folder():
        return {}
    try:
        return _read_start_record().places
    except DaemonUnreachable:
        return {}


def ensure_same_places() -> None:
    """Raise PlacesMismatch if this shell sets other folders than the last start recorded.

    The daemon would not read files that a command writes there. After `rootsd down`, other folders
    are allowed.
    """
    if not is_stopped():
        refuse_place_changes("rootsd down, then rootsd up, to use the values of this shell")


def refuse_place_changes(remedy: str) -> None:
    """Raise PlacesMismatch if this shell differs from the last start."""
    if changes := describe_place_changes():
        raise PlacesMismatch(changes, remedy)


def describe_place_changes() -> str:
    """Describe how this shell differs from the last start. Return "" if it does not."""
    if not (start_folder() / RECORD_NAME).exists():
        return ""
    before = recorded_places()
    return "; ".join(
        f"{name} is {safe_label(value, limit=None)} here, and the daemon was started with "
        + (safe_label(before[name], limit=None) if name in before else "none")
        for name, value in _places_here().items()
        if Path(value) != Path(before.get(name) or default_folder(name))
    )


def mark_stopped() -> None:
    """Leave the mark that keeps bridges from starting the daemon again."""
    folder = start_folder()
    ensure_private_folder(folder)
    os.close(open_private_file(folder / STOPPED_NAME))


def _read_start_record() -> StartPlan:
    """Return the record. Raises DaemonUnreachable if it is missing or damaged."""
    file = start_folder() / RECORD_NAME
    try:
        variables = recorded_variables(file)
    except RootsdError as error:
        raise DaemonUnreachable("the daemon is not running", "rootsd up") from error
    except (OSError, Unparsable) as error:
        damage = safe_label(str(error), limit=200)  # may quote the damaged text
        message = f"the daemon is not running, and {display_path(file)} cannot be read: {damage}"
        raise DaemonUnreachable(message, "rootsd up") from error
    return _plan(variables)


def is_stopped() -> bool:
    """Return whether `rootsd down` was the last of `rootsd up` and `rootsd down`."""
    return (start_folder() / STOPPED_NAME).exists()


def _places_here() -> dict[str, str]:
    if runtime_dir.overriding_folder():
        return {}
    return _places_in(os.environ)


def _places_in(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in PLACE_VARIABLES if (value := named_folder(name, environment))}
