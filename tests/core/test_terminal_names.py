"""The names of terminals."""

from __future__ import annotations

import pytest

from rootsd.core.processes import terminal_name


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (136 << 8 | 1, "pts/1"),
        (137 << 8 | 0, "pts/256"),
        (136 << 8 | 0x2C | 0x1 << 20, "pts/300"),
        (4 << 8 | 1, "tty1"),
        (4 << 8 | 64, "ttyS0"),
        (16 << 24 | 1, "ttys001"),
        (16 << 24 | 0x400, "ttys1024"),
        (5 << 8 | 1, "terminal 5:1"),
    ],
)
def test_each_device_has_its_usual_name(device: int, name: str) -> None:
    assert terminal_name(device) == name
