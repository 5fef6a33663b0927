"""Raising the limit of open files."""

from __future__ import annotations

import resource

import pytest

from rootsd.daemon import rlimits
from rootsd.daemon.rlimits import raise_descriptor_limit
from support.subprocesses import run_python

PROGRAM = """
import resource
from rootsd.daemon.rlimits import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
print(raise_descriptor_limit(256), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_the_limit_of_a_real_process_is_raised() -> None:
    output, errors = run_python((), PROGRAM)
    assert (output.split(), errors) == (["256", "256"], "")


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
        (Limits(64, 128, 128), 128),
        (Limits(5_300, 6_000, 6_000), 5_300),
        (Limits(256, INFINITE, 10_240), 5_000),
        (Limits(256, INFINITE, 4_096), 256),
        (Limits(INFINITE, INFINITE, 0), 5_000),
    ],
)
def test_it_is_raised_to_its_maximum_even_if_that_is_a_false_one_and_never_lowered(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, allowed: int
) -> None:
    monkeypatch.setattr(rlimits, "resource", limits)
    assert raise_descriptor_limit(5_000) == allowed
