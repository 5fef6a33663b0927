"""After `rootsd deny` returns, the very next call to a server behind `rootsd run` no longer
reaches the folder.

Orders go directly to the daemon and calls directly into the pipe, so only the time of a system
call lies between an answer and the next call.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from rootsd.wire.decisions import DecideRequest, DecisionVerb
from support.confirmed_orders import call_confirmed
from support.person import Person, Resident
from support.polling import until
from support.run_proxy import SCRIPTED, RunProxyClient, command, run_proxy, started
from support.sizes import Sizes

NAMES = tuple(f"p{number}" for number in range(5))
# A run proxy that continues while it does not know the current roots, as all did once.
RASH = (
    "import sys; from rootsd.proxy.run import main, session;"
    " session.RunSession.roots_outdated = lambda self: None; sys.exit(main.main(sys.argv[1:]))"
)
Start = Callable[[Person], AbstractContextManager[RunProxyClient]]


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person with one daemon for all tests of this file."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    for name in NAMES:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    """Return a person who has decided nothing."""
    monkeypatch.setenv("ROOTSD_DIR", resident.environment()["ROOTSD_DIR"])  # `decide` looks there
    decide(DecisionVerb.FORGET, *NAMES)
    return resident


def decide(verb: DecisionVerb, *names: str) -> None:
    call_confirmed(DecideRequest(verb, "/", names))


def look(client: RunProxyClient, folder: Path) -> None:
    """Ask the server about a folder in both ways that it may have it: as a root, and as an
    argument.
    """
    client.start_call("allowed", "allowed", f"{folder}/README")
    client.start_call("words", "started")


def is_open(client: RunProxyClient, folder: Path) -> bool:
    """Return the server's answer. A call during a restart is refused."""
    results = {(each := client.answer())["id"]: each.get("result") for _ in range(2)}
    words = (results["words"] or {"words": ()})["words"]
    return bool(results["allowed"]) or str(folder) in words


@contextmanager
def asking(person: Person) -> Iterator[RunProxyClient]:
    with run_proxy(HOME=str(person.home)) as client:
        yield client


@contextmanager
def configured(person: Person) -> Iterator[RunProxyClient]:
    with run_proxy("--deaf", "{roots}", HOME=str(person.home)) as client:
        yield client


@contextmanager
def rash(person: Person) -> Iterator[RunProxyClient]:
    words = [sys.executable, "-c", RASH, *command(*SCRIPTED)[4:]]
    with started(words, HOME=str(person.home)) as client:
        yield client


def open_after_denial(person: Person, client: RunProxyClient, times: int) -> int:
    """Count the denials that left their folder open to the very next call.

    Every other time the proxy is stopped meanwhile, and finds the update and the call at once.
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


def until_open(client: RunProxyClient, folder: Path) -> None:
    """Wait until the folder is open. An addition may take a moment."""

    def opened() -> bool:
        look(client, folder)
        return is_open(client, folder)

    until(opened)


@pytest.mark.parametrize("started_as", [asking, configured])
def test_the_very_next_call_after_a_denial_is_refused(
    started_as: Start, person: Person, sizes: Sizes
) -> None:
    times = sizes.pick(test=10, check=100, soak=300)
    with started_as(person) as client:
        client.shake_hands()
        assert open_after_denial(person, client, times) == 0


def test_control_without_the_readiness_gate_the_next_call_succeeds(person: Person) -> None:
    with rash(person) as client:
        client.shake_hands()
        assert until(lambda: open_after_denial(person, client, 10)) > 0
