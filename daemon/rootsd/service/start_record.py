"""Record how the daemon was started, and whether it may be started again.

`up` writes a recipe down; a bridge that finds no daemon follows it, since MCP clients strip the
environment from which the places would follow. So do cron, ssh and editors, and a command that is
started there takes the places from the recipe, too. `down` leaves a mark that forbids a start.
Both files lie in a folder that is derived from the home folder alone, or from ROOTSD_DIR.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.system import runtime_dir
from rootsd.system.private_files import (
    display_path,
    ensure_private_folder,
    open_private_file,
    unusable_error,
)

LOG_NAME = "daemon.log"
RECORD_NAME = "start.json"
STOPPED_NAME = "stopped"
_LONGEST = 256 * 1024

# What decides where configuration and decisions lie, and where each points when it is not set.
PLACE_VARIABLES = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}
# Beside these, how times and names are written; nothing else is passed on, neither secrets nor
# what marks an agent's session.
_KEPT_VARIABLES = frozenset(
    ("HOME", "LANG", "LOGNAME", "ROOTSD_DIR", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR",
     "DBUS_SESSION_BUS_ADDRESS")
)  # fmt: skip


class PlacesMismatch(RootsdError):
    """This shell names other folders than those that the daemon was started with."""

    code = ErrorCode.BAD_CONFIG


@dataclass(frozen=True, slots=True)
class StartRecord:
    """How to start the daemon. `log` takes its standard output and standard error."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: str


def start_folder() -> Path:
    """The folder of the recipe and the mark. Raises folders.NoPlace."""
    if override := runtime_dir.overriding_folder():
        return Path(os.fsdecode(override), "state")
    home = Path(os.fsdecode(runtime_dir.home_folder()))
    if sys.platform == "darwin":
        return home / "Library/Application Support/rootsd"
    return home / ".local/state/rootsd"


def make_start_record(log_folder: bytes) -> StartRecord:
    """The recipe that starts the daemon of this installation, with the places of this shell."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_VARIABLES or name.startswith("LC_")
    }
    return StartRecord(
        # -P: a folder `rootsd` in the working directory must not be taken for the package.
        command=(sys.executable, "-P", "-m", "rootsd", "daemon", "--detach"),
        environment={**kept, **place_variables()},
        log=os.path.join(os.fsdecode(log_folder), LOG_NAME),
    )


def save_start_record(recipe: StartRecord) -> None:
    """Write the recipe down for bridges, and allow them to follow it. One that is written already
    is not written anew: a full disk does not keep the daemon from starting. Raises RootsdError.
    """
    folder = start_folder()
    ensure_private_folder(folder)
    (folder / STOPPED_NAME).unlink(missing_ok=True)
    with suppress(DaemonUnreachable):
        if _read_start_record() == recipe:
            return
    fresh = folder / f"{RECORD_NAME}.{os.getpid()}"  # several may say `up` at once
    try:
        with open(open_private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
            json.dump(asdict(recipe), stream)
        fresh.replace(folder / RECORD_NAME)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise unusable_error(fresh, error) from error


def load_start_record() -> StartRecord:
    """The recipe that a bridge may follow.

    Raises DaemonUnreachable where the user stopped the daemon, or none was ever started.
    """
    ensure_start_allowed()
    return _read_start_record()


def ensure_start_allowed() -> None:
    """Raise DaemonUnreachable where the user stopped the daemon: only `up` may start it again."""
    if _is_stopped():
        raise DaemonUnreachable("the daemon was stopped by rootsd down", "rootsd up")


def place_variables() -> dict[str, str]:
    """The variables that decide where configuration and decisions lie: as they are set here, else
    as they were when the daemon was last started."""
    return {**recorded_places(), **_places_here()}


def recorded_places() -> dict[str, str]:
    """The same as they were when the daemon was last started, whatever this shell says."""
    if runtime_dir.overriding_folder():
        return {}
    try:
        return _places_in(_read_start_record().environment)
    except DaemonUnreachable:
        return {}


def ensure_same_places() -> None:
    """Raise OtherPlaces where this shell contradicts the last start: what it writes, the daemon
    does not read. After a `down` it may name others."""
    if not _is_stopped() and (told := describe_place_changes()):
        raise PlacesMismatch(told, "rootsd down, then rootsd up, to have it as here")


def describe_place_changes() -> str:
    """What this shell says otherwise than the last start did; empty where there is nothing."""
    if not (start_folder() / RECORD_NAME).exists():
        return ""
    home, before = Path(os.fsdecode(runtime_dir.home_folder())), recorded_places()
    return "; ".join(
        f"{name} is {safe_label(value, limit=None)} here, and the daemon was started with "
        + (safe_label(before[name], limit=None) if name in before else "none")
        for name, value in _places_here().items()
        if Path(value) != Path(before.get(name, home / PLACE_VARIABLES[name]))
    )


def mark_stopped() -> None:
    """Note that the user stopped the daemon, so that no bridge starts it again."""
    folder = start_folder()
    ensure_private_folder(folder)
    os.close(open_private_file(folder / STOPPED_NAME))


def _read_start_record() -> StartRecord:
    """Return the recipe. Raises DaemonUnreachable if there is none, or it is damaged."""
    file = start_folder() / RECORD_NAME
    try:
        fd = open_private_file(file, os.O_RDONLY)
    except RootsdError as error:
        raise DaemonUnreachable("the daemon is not running", "rootsd up") from error
    try:
        with open(fd, "rb") as stream:
            text = stream.read(_LONGEST)  # a longer one is cut off, and so no JSON
        return _parse_start_record(parse_json(text))
    except (OSError, Unparsable) as error:
        damage = safe_label(str(error), limit=200)  # may quote the damaged text
        message = f"the daemon is not running, and {display_path(file)} cannot be read: {damage}"
        raise DaemonUnreachable(message, "rootsd up") from error


def _parse_start_record(value: object) -> StartRecord:
    """Return the recipe that `value` is. Raises Unparsable if it cannot start a program."""
    match value:
        case {"command": [str(), *_] as command, "environment": dict(variables), "log": str(log)}:
            words = [*command, *variables, *variables.values(), log]
            if all(map(_is_word, words)) and all(map(_is_name, variables)):
                return StartRecord(tuple(command), variables, log)
        case _:
            pass
    raise Unparsable("it does not say how to start the daemon")


def _is_name(variable: str) -> bool:
    return variable != "" and "=" not in variable


def _is_word(value: object) -> bool:
    """Tell whether the system takes `value` as an argument, a variable or a path."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_stopped() -> bool:
    return (start_folder() / STOPPED_NAME).exists()


def _places_here() -> dict[str, str]:
    if runtime_dir.overriding_folder():
        return {}
    return _places_in(os.environ)


def _places_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The base directory specification has relative paths ignored, and so have we."""
    return {
        name: value
        for name in PLACE_VARIABLES
        if (value := environment.get(name, "")).startswith("/")
    }
