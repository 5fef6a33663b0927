"""Raising the limit of open files."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from rootsd.daemon import rlimits
from rootsd.daemon.rlimits import raise_descriptor_limit

PROGRAM = """
import resource, sys
from rootsd.daemon.rlimits import raise_descriptor_limit
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(raise_descriptor_limit(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "allowed"),
    [(64, 512, 256, 256), (64, 128, 256, 128), (300, 512, 256, 300)],
)
def test_it_is_raised_to_its_maximum_and_never_lowered(
    soft: int, hard: int, wanted: int, allowed: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(soft), str(hard), str(wanted)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(allowed)] * 2


class Limits:
    """A system with these limits, which refuses to go beyond `real`."""

    RLIMIT_NOFILE = resource.RLIMIT_NOFILE
    RLIM_INFINITY = resource.RLIM_INFINITY

    def __init__(self, soft: int, hard: int, real: int) -> None:
        self.now = (soft, hard)
        self._real = real

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, _: int, limits: tuple[int, int]) -> None:
        if limits[0] > self._real:
            raise ValueError("not allowed to exceed maximum limit")
        self.now = limits


INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (Limits(256, INFINITE, 10_240), 5_000),
        (Limits(256, INFINITE, 4_096), 256),
        (Limits(INFINITE, INFINITE, 0), 5_000),
    ],
)
def test_a_false_infinite_limit_is_handled(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, allowed: int
) -> None:
    monkeypatch.setattr(rlimits, "resource", limits)
    assert raise_descriptor_limit(5_000) == allowed
