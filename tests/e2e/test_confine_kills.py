"""The front, the warden, the program, or the daemon is killed at a random moment.

No process and no mount remains, and the program never reads a folder that is not approved.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.wall import WallEngine
from support.person import Person
from support.sizes import Sizes
from support.wall_kills import Leak, Moment, Part, flags, live, prepare

pytestmark = [pytest.mark.needs("wall"), pytest.mark.needs("static-wall")]

SOON_S = 1.0
LONGEST_S = 0.3


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    prepare(person)
    yield person
    person.run("down")


def remaining_folders(state: Path) -> list[str]:
    """Return what walls left in their folders. The next start removes `run-*`."""
    left = []
    for slot in (state / "confine").glob("*/[0-9]*"):
        left += [os.fspath(each) for each in slot.glob("run-*")]
        left += [os.fspath(each) for each in slot.glob("tree/*")]
        assert slot.name == "0", "a warden still has the lock of its folder"
    return left


@pytest.mark.parametrize("engine", WallEngine)
def test_after_any_kill_nothing_remains_and_nothing_else_is_read(
    engine: WallEngine, person: Person, rootsd_dir: Path, sizes: Sizes
) -> None:
    hits = 0
    few, many = (2, 60) if engine is WallEngine.STATIC else (len(Part), 90)  # the former is slow
    kills = sizes.pick(test=few, check=30, soak=many)
    for seed in range(kills):
        chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
        start = chance.choice([Part.FRONT, Part.WARDEN, Part.PROGRAM])
        moment = Moment([*Part][seed % len(Part)], start, chance.uniform(0, LONGEST_S))
        outcome = live(person, engine, moment)
        assert (outcome.has_remains, outcome.faults) == (False, ()), (seed, moment)
        assert len(remaining_folders(rootsd_dir / "state")) <= 1, (seed, moment)
        hits += outcome.hit
    with open("/proc/self/mountinfo", "rb") as mounts:  # other mounts need not be UTF-8
        assert os.fsencode(rootsd_dir) not in mounts.read()
    assert hits >= kills // 4  # a denial may have ended a static wall before
    person.rootsd("confine", *flags(engine), "--", "true")
    assert remaining_folders(rootsd_dir / "state") == []


def test_control_a_wall_that_leaks_is_found(person: Person) -> None:
    for victim, leak, fault in (
        (Part.FRONT, Leak.ORPHANS, "the program still runs"),
        (Part.WARDEN, Leak.NO_WARDEN, "the program still runs"),
        (Part.DAEMON, Leak.ENDLESS_GRACE, "without a daemon, the program goes on"),
    ):
        moment = Moment(victim, Part.PROGRAM, LONGEST_S)
        outcome = live(person, WallEngine.NAMESPACES, moment, leak, SOON_S)
        assert fault in outcome.faults, victim
        assert outcome.has_remains is (victim is not Part.DAEMON), victim
