"""Read from `config.toml` what starts behind the wall by itself: servers, and typed agents.

MCP clients start `rootsd run` once for each server, and each shell starts `rootsd shell-init`. So
this module imports little of the standard library. It does not ask the daemon: a server must not
start outside the wall because no daemon runs yet. It reads two keys of the file that the daemon
reads. A client may have stripped the variables that locate this file. So the record of the last
`rootsd up` takes precedence, as for the daemon.

If the file mentions the wall and is not valid, the answer is an error. A typing mistake must never
make a server run outside the wall.
"""

from __future__ import annotations

import os
import stat

from rootsd.core.errors import BadConfig
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.places.base_folders import folder_of_daemon

_MAX_BYTES = 1 << 20
_TABLE = "confine"
_SERVER = "cannot tell whether to confine the server"
_AGENTS = "cannot tell which agents start behind the wall"
_REMEDY = "rootsd config check"


def confines_by_default() -> bool:
    """Return the value of `default` in the table `[confine]`, or False if it is missing.

    Raises BadConfig if the value cannot be read, and FolderUnavailable.
    """
    try:
        return _is_true(_table().get("default", False))
    except _Unknown as error:
        raise _bad_config(_SERVER, error, f"{_REMEDY}, or rootsd run --no-confine") from error


def typed_agents() -> list[str]:
    """Return `agents` in the table `[confine]`: what starts behind the wall when it is typed.

    Each name can be a word in a shell script. Raises BadConfig and FolderUnavailable.
    """
    try:
        return _programs(_table().get("agents", []))
    except _Unknown as error:
        raise _bad_config(_AGENTS, error, _REMEDY) from error


def config_file() -> bytes:
    """Return the file that the daemon reads. Raises FolderUnavailable."""
    return folder_of_daemon("XDG_CONFIG_HOME") + b"/config.toml"


class _Unknown(Exception):
    """The reason why a value is not known, as a clause."""


def _is_true(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Unknown("[confine] default is neither true nor false")
    return value


def _programs(value: object) -> list[str]:
    """Return names of programs, each in the form of PROGRAM_PATTERN in `rootsd.core.wall`."""
    names = value if isinstance(value, list) else [""]
    for name in names:
        is_plain = isinstance(name, str) and name.isascii() and name[:1].isalnum()
        if not (is_plain and name.translate(dict.fromkeys(map(ord, "._+-"))).isalnum()):
            raise _Unknown("[confine] agents is no list of names of programs")
    return names


def _table() -> dict[str, object]:
    """Return the table `[confine]`. Raises _Unknown and FolderUnavailable."""
    content = _read(config_file())
    # A key may be written with escapes, such as "c\u006fnfine".
    if _TABLE.encode() not in content and b"\\" not in content:
        return {}
    try:
        table = parse_toml(content.decode()).get(_TABLE, {})
    except (Unparsable, UnicodeDecodeError) as error:
        raise _Unknown("it is not valid") from error
    if not isinstance(table, dict):
        raise _Unknown("[confine] is no table")
    return table


def _read(file: bytes) -> bytes:
    try:
        # O_NONBLOCK: a FIFO at this path must not hang the server.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _Unknown("it is not a regular file")
            content = stream.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise _Unknown(error.strerror or str(error)) from error
    if len(content) > _MAX_BYTES:
        raise _Unknown(f"it is larger than {_MAX_BYTES} bytes")
    return content


def _bad_config(what: str, why: _Unknown, remedy: str) -> BadConfig:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for the message

    return BadConfig(f"{what}: {safe_label(config_file(), limit=None)}: {why}", remedy)
