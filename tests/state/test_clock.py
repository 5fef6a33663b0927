"""The clock that cannot be set, and the identifier of the machine's boot."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rootsd.state import clock


def test_the_clock_advances_and_the_boot_keeps_its_id() -> None:
    first, second = clock.read_clocks(), clock.read_clocks()
    assert first.since_boot_ns <= second.since_boot_ns
    assert first.boot == second.boot
    assert first.boot
    assert first.wall.utcoffset() is not None


@pytest.mark.needs("linux")
def test_the_clock_counts_sleep_and_the_boot_id_is_the_kernels() -> None:
    assert clock.BOOT_CLOCK == time.CLOCK_BOOTTIME
    name = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert clock.read_clocks().boot == name


@pytest.mark.needs("time-namespaces")
@pytest.mark.parametrize(("asleep", "is_over"), [(7_000, False), (7_300, True)])
def test_an_approval_for_two_hours_ends_during_a_longer_sleep(
    asleep: int, *, is_over: bool
) -> None:
    ends = clock.read_clocks().after(7_200)
    look = "from rootsd.state.clock import read_clocks; now = read_clocks(); "
    look += "print(now.boot, now.since_boot_ns)"
    awake = subprocess.run(
        ["unshare", "--time", "--boottime", str(asleep), sys.executable, "-c", look],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    boot, since_boot_ns = awake.stdout.split()
    assert boot == ends.boot
    assert (int(since_boot_ns) >= ends.since_boot_ns) is is_over


def test_an_unknown_boot_has_no_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clock, "_BOOT_ID_FILE", str(tmp_path / "none"))
    assert clock._boot_from_file() == ""
    (tmp_path / "odd").write_bytes(b"\xff\n")
    monkeypatch.setattr(clock, "_BOOT_ID_FILE", str(tmp_path / "odd"))
    assert clock._boot_from_file() == ""


class FakeLibc:
    """macOS as far as it is asked: one sysctl."""

    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def sysctlbyname(self, name: bytes, value: object, size: object, *_: object) -> int:
        assert name == b"kern.bootsessionuuid"
        if self._value is None:
            return -1
        value.value = self._value  # type: ignore[attr-defined]
        return 0


@pytest.mark.parametrize("value", [b"7E0D-2A", None])
def test_macos_is_asked_by_sysctl(monkeypatch: pytest.MonkeyPatch, value: bytes | None) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: FakeLibc(value))
    assert clock._boot_from_sysctl() == (value or b"").decode()


def test_every_supported_system_has_a_clock_that_counts_from_its_start() -> None:
    expected = "CLOCK_BOOTTIME" if sys.platform == "linux" else "CLOCK_MONOTONIC"
    assert getattr(time, expected) == clock.BOOT_CLOCK
