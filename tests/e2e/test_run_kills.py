"""Server, relay and daemon are killed at random moments: nothing of the server is left over, and
the client gets an answer, an error, or the end of the stream, never silence."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import node
from support.kill_rounds import Outcome, Victim, a_round
from support.person import Person
from support.relays import SCRIPTED, command, hasty
from support.sizes import Sizes

# Starts the server as npx does: as a process of its own, below a shell. It minds neither the end
# of its input nor SIGTERM, nor does what it starts.
WRAPPED = hasty("/bin/sh", "-c", '"$@"; exit $?', "npx", *SCRIPTED, "--stubborn")
CONFIGURED = hasty(*SCRIPTED, "--deaf", "--stubborn", "{roots}")
# A relay whose servers have a keeper that keeps nothing.
CARELESS = (
    "import sys; from rootsd.proxy.run import main, process; process._KEEPER = 'exec cat';"
    " sys.exit(main.main(sys.argv[1:]))"
)
ONE_S = 1.0


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Has one root."""
    person = Person(tmp_path)
    person.clone("api")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    yield person
    person.run("down")


def check(person: Person, victim: Victim, outcome: Outcome, story: object) -> None:
    assert outcome.left == [], story
    assert victim is Victim.RELAY or not outcome.is_silent, story
    if victim is Victim.DAEMON:
        person.rootsd("up")


@pytest.mark.parametrize("victim", Victim)
def test_whoever_is_killed(victim: Victim, person: Person, sizes: Sizes) -> None:
    for seed in range(sizes.pick(test=2, check=12, soak=1000)):
        chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
        line = chance.choice([WRAPPED, CONFIGURED])
        check(person, victim, a_round(line, victim, chance), (seed, line))


@pytest.mark.needs("npm")
@pytest.mark.parametrize("victim", [Victim.SERVER, Victim.WORKER, Victim.RELAY])
def test_whoever_is_killed_around_npx(victim: Victim, person: Person, sizes: Sizes) -> None:
    folder = shlex.quote(str(node.packages()))
    line = command("sh", "-c", f"cd {folder} && exec npx --no -- mcp-server-everything")
    for seed in range(sizes.pick(test=1, check=3, soak=100)):
        chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
        check(person, victim, a_round(line, victim, chance), seed)


def test_without_the_keeper_something_would_be_left_over(person: Person) -> None:
    line = [sys.executable, "-c", CARELESS, *WRAPPED[3:]]
    outcome = a_round(line, Victim.RELAY, random.Random(1), ONE_S)  # noqa: S311
    for process in outcome.left:
        process.kill()
    assert outcome.left


def test_a_client_that_is_told_nothing_would_be_found() -> None:
    assert Outcome(answered=20, refused=9, left=[]).is_silent
