"""A rate-limited log that counts the lines it omits."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from rootsd.net.rate_limited_log import LogThrottle, RateLimitedFilter


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Kept(logging.Handler):
    """Keeps what would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class World:
    """A logger, what it would write, and a clock that stands still."""

    def __init__(self, name: str) -> None:
        self.clock = Clock()
        self.kept = Kept()
        self.kept.addFilter(RateLimitedFilter(self.clock))
        self.log = logging.getLogger(name)
        self.log.addHandler(self.kept)
        self.log.propagate = False


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(request.node.name)
    yield world
    world.log.removeHandler(world.kept)


def test_a_few_lines_pass_at_once_and_then_one_a_minute() -> None:
    clock = Clock()
    bucket = LogThrottle(clock)
    assert [bucket.take() for _ in range(100)] == [1] * 20 + [0] * 80
    clock.seconds += 60
    assert [bucket.take() for _ in range(3)] == [81, 0, 0]


def test_a_flood_from_one_place_suppresses_no_others_and_is_counted(world: World) -> None:
    clock, log, kept = world.clock, world.log, world.kept
    for number in range(30):
        if number == 29:
            log.warning("something else")
            clock.seconds += 60
        log.warning("refused %s: 100%%", number)
    assert kept.lines[:2] == ["refused 0: 100%", "refused 1: 100%"]
    assert kept.lines[20:] == ["something else", "refused 29: 100% (9 more like it)"]
    for _ in range(100):
        log.critical("the end")
    assert len(kept.lines) == 122, "critical lines always pass"
