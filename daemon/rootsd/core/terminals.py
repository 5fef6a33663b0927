"""The names of terminals, from their device numbers. Sources: proc(5), pts(4), Linux's
Documentation/admin-guide/devices.txt, and sys/types.h of macOS."""

from __future__ import annotations

_PTS_MAJORS = range(136, 144)
_PTS_EACH = 256
_CONSOLES_MAJOR = 4
_CONSOLES = 64
_MAC_MAJOR = 16


def terminal_name(device: int) -> str:
    """Return what people call the terminal `device`: `pts/1`, `tty1`, `ttyS0`, or `ttys001`.

    On Linux `device` is `tty_nr` of /proc/PID/stat, on macOS the terminal's `st_rdev`. A device
    of another kind is named by its numbers.
    """
    major, minor = device >> 8 & 0xFF, device & 0xFF | device >> 12 & 0xFFF00
    if major in _PTS_MAJORS:
        return f"pts/{(major - _PTS_MAJORS.start) * _PTS_EACH + minor}"
    if device >> 24 == _MAC_MAJOR:
        return f"ttys{device & 0xFFFFFF:03}"
    if major == _CONSOLES_MAJOR:
        return f"tty{minor}" if minor < _CONSOLES else f"ttyS{minor - _CONSOLES}"
    return f"terminal {major}:{minor}"
