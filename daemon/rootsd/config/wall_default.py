"""Read from `config.toml` whether `rootsd run` confines its server by itself.

MCP clients start `rootsd run` once for each server, so this module imports little of the standard
library. It does not ask the daemon: a server must not start outside the wall because no daemon
runs yet. It reads one key of the file that the daemon reads. A client may have stripped the
variables that locate this file. So the record of the last `rootsd up` takes precedence, as for the
daemon.

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
_REMEDY = "rootsd config check, or rootsd run --no-confine"


def confines_by_default() -> bool:
    """Return the value of `default` in the table `[confine]`, or False if it is missing.

    Raises BadConfig if the value cannot be read, and FolderUnavailable.
    """
    file = config_file()
    content = _read(file)
    # A key may be written with escapes, such as "c\u006fnfine".
    if _TABLE.encode() not in content and b"\\" not in content:
        return False
    try:
        table = parse_toml(content.decode()).get(_TABLE, {})
    except (Unparsable, UnicodeDecodeError) as error:
        raise _unknown(file, "it is not valid") from error
    value = table.get("default", False) if isinstance(table, dict) else None
    if not isinstance(value, bool):
        raise _unknown(file, "[confine] default is neither true nor false")
    return value


def config_file() -> bytes:
    """Return the file that the daemon reads. Raises FolderUnavailable."""
    return folder_of_daemon("XDG_CONFIG_HOME") + b"/config.toml"


def _read(file: bytes) -> bytes:
    try:
        # O_NONBLOCK: a FIFO at this path must not hang the server.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _unknown(file, "it is not a regular file")
            content = stream.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise _unknown(file, error.strerror or str(error)) from error
    if len(content) > _MAX_BYTES:
        raise _unknown(file, f"it is larger than {_MAX_BYTES} bytes")
    return content


def _unknown(file: bytes, reason: str) -> BadConfig:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for the message

    shown = safe_label(file, limit=None)
    return BadConfig(f"cannot tell whether to confine the server: {shown}: {reason}", _REMEDY)
