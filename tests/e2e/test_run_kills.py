"""The server, the run proxy, or the daemon is killed at a random moment.

No process of the server remains, and the client gets an answer, an error, or the end of the
stream, never silence.
"""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Iterator

import pytest

from support import node_packages
from support.person import Person, Resident
from support.run_proxy import SCRIPTED, command, impatient_command
from support.run_proxy_kills import Outcome, Victim, a_round, remaining_after_an_answer
from support.sizes import Sizes

# Starts the server as npx does: in its own process, below a shell. Both ignore the end of input
# and SIGTERM.
WRAPPED = impatient_command("/bin/sh", "-c", '"$@"; exit $?', "npx", *SCRIPTED, "--stubborn")
CONFIGURED = impatient_command(*SCRIPTED, "--deaf", "--stubborn", "{roots}")
# A run proxy whose keeper does not end its server.
CARELESS = (
    "import sys; from rootsd.proxy.run import main, process; process._KEEPER = 'exec cat';"
    " sys.exit(main.main(sys.argv[1:]))"
)
ONE_S = 1.0


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person with one root, and one daemon until a test kills it."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    person.clone("api")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    monkeypatch.setenv(
        "ROOTSD_DIR", resident.environment()["ROOTSD_DIR"]
    )  # the proxies look there
    return resident


def check(person: Person, victim: Victim, outcome: Outcome, story: object) -> None:
    assert outcome.left == [], story
    assert victim is Victim.PROXY or not outcome.is_silent, story
    if victim is Victim.DAEMON:
        person.rootsd("up")


@pytest.mark.parametrize("victim", Victim)
def test_after_any_kill_nothing_remains_and_no_call_is_silent(
    victim: Victim, person: Person, sizes: Sizes
) -> None:
    few = 1 if victim is Victim.DAEMON else 2  # a new daemon takes a second
    for seed in range(sizes.pick(test=few, check=12, soak=36)):
        chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
        line = chance.choice([WRAPPED, CONFIGURED])
        check(person, victim, a_round(line, victim, chance), (seed, line))


@pytest.mark.needs("npm")
def test_after_any_kill_around_npx_nothing_remains(person: Person, sizes: Sizes) -> None:
    folder = shlex.quote(str(node_packages.packages()))
    line = command("sh", "-c", f"cd {folder} && exec npx --no -- mcp-server-everything")
    every = (Victim.PROXY, Victim.SERVER, Victim.WORKER)
    victims, rounds = sizes.pick(test=(every[:1], 1), check=(every, 3), soak=(every, 9))
    for victim in victims:
        for seed in range(rounds):
            chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
            check(person, victim, a_round(line, victim, chance), (victim, seed))


def test_control_without_the_keeper_a_process_remains(person: Person) -> None:
    # Deaf, because a server that writes to the killed proxy ends by itself.
    line = [sys.executable, "-c", CARELESS, *WRAPPED[3:], "--deaf"]
    left = remaining_after_an_answer(line, ONE_S)
    for process in left:
        process.kill()
    assert left


def test_control_a_silent_call_is_found() -> None:
    assert Outcome(answered=20, refused=9, left=[]).is_silent
