"""However soon a call comes after `rootsd deny` has returned, the server behind `rootsd run` no
longer has what was denied.

Orders go straight to the daemon and calls straight into the pipe, so that nothing lies between an
answer and the next call but the time of a system call.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from rootsd.cli import control_client as control
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from support.person import Person
from support.relays import SCRIPTED, RelayClient, command, relay, started
from support.sizes import Sizes
from support.until import until

NAMES = tuple(f"p{number}" for number in range(5))
# A relay that goes on while it does not know which roots there are, as all did once.
RASH = (
    "import sys; from rootsd.proxy.run import main, session;"
    " session.RunSession.roots_outdated = lambda self: None; sys.exit(main.main(sys.argv[1:]))"
)
Start = Callable[[Person], AbstractContextManager[RelayClient]]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    for name in NAMES:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    yield person
    person.run("down")


def decide(verb: DecisionVerb, *names: str) -> None:
    control.call(DecideRequest(verb, "/", names))


def look(client: RelayClient, folder: Path) -> None:
    """Ask the server about a folder in both ways that it may have it: as a root that it was told
    of, and as a word of its command."""
    client.start_call("allowed", "allowed", f"{folder}/README")
    client.start_call("words", "started")


def is_open(client: RelayClient, folder: Path) -> bool:
    """What it says. Calls are refused that were under way when it was started again."""
    results = {(each := client.answer())["id"]: each.get("result") for _ in range(2)}
    words = (results["words"] or {"words": ()})["words"]
    return bool(results["allowed"]) or str(folder) in words


@contextmanager
def asking(person: Person) -> Iterator[RelayClient]:
    with relay(HOME=str(person.home)) as client:
        yield client


@contextmanager
def configured(person: Person) -> Iterator[RelayClient]:
    with relay("--deaf", "{roots}", HOME=str(person.home)) as client:
        yield client


@contextmanager
def rash(person: Person) -> Iterator[RelayClient]:
    words = [sys.executable, "-c", RASH, *command(*SCRIPTED)[4:]]
    with started(words, HOME=str(person.home)) as client:
        yield client


def open_after_denial(person: Person, client: RelayClient, times: int) -> int:
    """How many of so many denials left their folder open to the very next call.

    Every other time the relay stands still meanwhile, and finds news and call at once.
    """
    still_open = 0
    for number in range(times):
        folder = person.parent / NAMES[number % len(NAMES)]
        if folder.name == NAMES[0]:
            decide(DecisionVerb.APPROVE, *NAMES)
            for each in NAMES:
                until_open(client, person.parent / each)
        if number % 2:
            client.process.send_signal(signal.SIGSTOP)
        decide(DecisionVerb.DENY, folder.name)
        look(client, folder)
        client.process.send_signal(signal.SIGCONT)
        still_open += is_open(client, folder)
    return still_open


def until_open(client: RelayClient, folder: Path) -> None:
    """What is added may take a moment."""

    def opened() -> bool:
        look(client, folder)
        return is_open(client, folder)

    until(opened)


@pytest.mark.parametrize("started_as", [asking, configured])
def test_the_very_next_call_finds_it_closed(
    started_as: Start, person: Person, sizes: Sizes
) -> None:
    times = sizes.pick(test=10, check=100, soak=1000)
    with started_as(person) as client:
        client.shake_hands()
        assert open_after_denial(person, client, times) == 0


def test_without_the_doubt_the_next_call_would_come_through(person: Person) -> None:
    with rash(person) as client:
        client.shake_hands()
        assert until(lambda: open_after_denial(person, client, 10)) > 0
