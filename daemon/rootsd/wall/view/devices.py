"""Decide which devices a person may open to confined programs with `--device`.

A device is known by its driver, which /proc/devices and /proc/misc name. Refused are those through
which a program would reach more than the device: memory, disks, what others type or see, and
interfaces that change the system. This looks at the disk and changes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import contains

_DISKS = "it leads to whole disks"
_TERMINALS = "a program could read and write the terminals of others"
_KEYS = "a program could read what you type, or type for you"
_MEMORY = "it leads to the memory of the machine"
_USB = "it leads to every USB device, disks and keyboards, too"
_SYSTEM = "it changes the system"
_REFUSED = {
    "mem": _MEMORY, "cpu/msr": _MEMORY, "dax": _MEMORY, "mei": _SYSTEM, "watchdog": _SYSTEM,
    "/dev/vc/0": _TERMINALS, "tty": _TERMINALS, "/dev/tty": _TERMINALS, "vcs": _TERMINALS,
    "/dev/console": _TERMINALS, "/dev/ptmx": _TERMINALS, "ptm": _TERMINALS, "pts": _TERMINALS,
    "input": _KEYS, "hidraw": _KEYS, "usb_device": _USB, "tpm": _SYSTEM,
    "sg": _DISKS, "bsg": _DISKS, "raw": _DISKS, "mtd": _DISKS, "nvme": _DISKS,
    "nvme-generic": _DISKS, "st": _DISKS,
}  # fmt: skip
# Of the devices in /proc/misc, most control the system.
_MISC = frozenset(("kvm", "tun", "hw_random", "udmabuf", "ntsync"))
_MISC_MAJOR, _FIRST_SERIAL_LINE = 10, 64


class RefusedDevice(RootsdError):
    """A path that is no device which a person may open to programs."""

    code = ErrorCode.REFUSED


def device_entries(paths: Iterable[bytes], reason: str) -> Iterator[ViewEntry]:
    """Yield the entries for real paths of devices. Raises RefusedDevice."""
    for path in paths:
        if why := _refusal(path):
            shown = safe_label(path, limit=None)
            raise RefusedDevice(f"{reason}: {shown}: {why}", f"ls -lL {shown}")
        yield ViewEntry(path, ViewEntryKind.DEVICE, reason)


def _refusal(path: bytes) -> str:
    """Return why a path is refused, or an empty text."""
    if not contains(b"/dev", path):
        return "it is not in /dev"
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return error.strerror or "it cannot be read"
    if not stat.S_ISCHR(found.st_mode):
        return _DISKS if stat.S_ISBLK(found.st_mode) else "it is no device"
    if not (os.access(path, os.R_OK) or os.access(path, os.W_OK)):
        return "you may not open it yourself"
    return _driver_refusal(found.st_rdev)


def _driver_refusal(number: int) -> str:
    major, minor = os.major(number), os.minor(number)
    if any(number == standard for standard in _own_terminals()):
        return _TERMINALS
    if major == _MISC_MAJOR:
        return "" if _MISC & _names(b"/proc/misc", minor) else _SYSTEM
    drivers = _names(b"/proc/devices", major)
    if "ttyS" in drivers and minor >= _FIRST_SERIAL_LINE:
        return ""  # its major number is that of the consoles
    if not drivers:
        return "its driver is not known"
    return next((_REFUSED[name] for name in sorted(drivers & _REFUSED.keys())), "")


def _own_terminals() -> Iterator[int]:
    for fd in (0, 1, 2):
        with suppress(OSError):
            yield os.fstat(fd).st_rdev


def _names(file: bytes, number: int) -> frozenset[str]:
    """Return the names of the character devices with a number in a table of the kernel."""
    with open(file, encoding="ascii", errors="replace") as table:
        text = table.read().partition("Block devices:")[0]
    lines = (line.split() for line in text.splitlines())
    return frozenset(line[1] for line in lines if line[:1] == [str(number)])
