"""Devices that a person opens to programs, and those that nobody may open to them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.mount_plan import ViewEntryKind
from rootsd.wall.view import devices
from rootsd.wall.view.devices import RefusedDevice, device_entries

# Tables as Linux 6.18 prints them, with the drivers that this machine may lack.
DEVICES = """\
Character devices:
  1 mem
  4 /dev/vc/0
  4 tty
  4 ttyS
  5 /dev/tty
  5 /dev/console
  5 /dev/ptmx
  7 vcs
 10 misc
 13 input
 21 sg
136 pts
166 ttyACM
188 ttyUSB
189 usb_device
195 nvidia
202 cpu/msr
226 drm
241 nvme-generic
245 hidraw
248 bsg

Block devices:
  8 sd
188 not-a-serial-line
"""
MISC = "223 uinput\n239 uhid\n232 kvm\n237 loop-control\n231 snapshot\n257 userfaultfd\n200 tun\n"
OPEN = {"kvm": (10, 232), "drm": (226, 128), "ttyUSB": (188, 0), "ttyACM": (166, 3),
        "a serial line": (4, 64), "nvidia": (195, 255), "tun": (10, 200)}  # fmt: skip
CLOSED = {
    "mem": (1, 1), "kmsg": (1, 11), "a console": (4, 1), "tty": (5, 0), "ptmx": (5, 2),
    "vcs": (7, 1), "an input event": (13, 64), "a joystick": (13, 0), "sg": (21, 0),
    "pts": (136, 7), "usb": (189, 1), "msr": (202, 0), "nvme": (241, 0), "hidraw": (245, 0),
    "bsg": (248, 0), "uinput": (10, 223), "uhid": (10, 239), "loop-control": (10, 237),
    "the image of a hibernation": (10, 231), "userfaultfd": (10, 257),
    "an unknown control device": (10, 99), "an unknown driver": (300, 1),
}  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = devices._names
    for name, text in (("devices", DEVICES), ("misc", MISC)):
        (tmp_path / name).write_text(text)

    def names(file: bytes, number: int) -> frozenset[str]:
        return real(os.fsencode(tmp_path) + b"/" + os.path.basename(file), number)

    monkeypatch.setattr(devices, "_names", names)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", OPEN)
def test_a_device_of_its_own_may_be_opened(name: str) -> None:
    assert devices._driver_refusal(os.makedev(*OPEN[name])) == ""


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", CLOSED)
def test_a_device_that_leads_further_is_refused(name: str) -> None:
    assert devices._driver_refusal(os.makedev(*CLOSED[name])) != ""


def test_the_terminal_of_the_person_is_refused_whatever_it_is(
    monkeypatch: pytest.MonkeyPatch, tables: None
) -> None:
    serial = os.makedev(4, 64)
    assert devices._driver_refusal(serial) == ""
    monkeypatch.setattr(devices, "_own_terminals", lambda: iter([serial]))
    assert devices._driver_refusal(serial) != ""


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/dev", "/dev/shm", "/dev/no-such", "/proc/self/mem", "/dev/tty",
             "/dev/ptmx", "/dev/pts/ptmx", "/dev/kmsg", "/dev/loop0", "/dev/console", "/dev/null"],
)  # fmt: skip
def test_what_is_no_device_of_its_own_is_refused_with_a_command(path: str) -> None:
    with pytest.raises(RefusedDevice) as refused:
        list(device_entries([os.fsencode(os.path.realpath(path))], "--device"))
    assert refused.value.message.startswith("--device: /")
    assert refused.value.remedy.startswith("ls -lL ")


def test_a_name_cannot_control_the_terminal() -> None:
    with pytest.raises(RefusedDevice) as refused:
        list(device_entries([b"/dev/\x1b[2J\n"], "--device"))
    assert refused.value.message.isprintable()


def test_a_device_that_a_person_may_open_is_a_device_of_the_view() -> None:
    known = [name for name in ("/dev/kvm", "/dev/hwrng") if os.access(name, os.R_OK)]
    for name in known:
        [entry] = device_entries([name.encode()], "--device")
        assert (entry.path, entry.kind) == (name.encode(), ViewEntryKind.DEVICE)
