"""Writers that are killed at random moments, and a check of their store afterwards."""

from __future__ import annotations

import os
import random
import select
import signal
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rootsd.state.store.store import Store
from support.cached_parsing import cached_parsing
from support.fault_target import Diligence
from support.power_cuts import history, memory_folder
from support.sample_decisions import NOON, numbered
from support.stores import outside

HANG_GUARD = 60
_MOST_DECISIONS = 20
_LONGEST_SPIN = 20_000  # rounds of a loop, up to some ms, to hit the middle of a decision
_FRESH_AFTER = 200  # decisions; a longer history makes each check slower
_NUMBER = 8


@dataclass(frozen=True, slots=True)
class Tally:
    """The results of the kills."""

    kills: int
    lost: int
    decisions: int


def kill(seed: int, kills: int, diligence: Diligence = Diligence.OWN) -> Tally:
    """Kill fast writers `kills` times. Raises AssertionError if a store differs from their
    decisions.

    It forks, so it needs a process with one thread.
    """
    chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
    lost = decisions = 0
    with memory_folder() as work, cached_parsing():
        state, stored = work / "0", 0
        for number in range(kills):
            if stored > _FRESH_AFTER:
                decisions += stored
                state, stored = work / str(number), 0
            acknowledged = _killed_writer(state, chance, diligence)
            stored = _stored(state)
            lost += stored < acknowledged
        decisions += stored
    return Tally(kills, lost, decisions)


def _killed_writer(state: Path, chance: random.Random, diligence: Diligence) -> int:
    """Let a writer decide, kill it, and return the last number that it reported."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _write(state, writing, diligence)
    os.close(writing)
    try:
        told = b""
        for _ in range(chance.randint(1, _MOST_DECISIONS)):
            ready, _, _ = select.select([reading], [], [], HANG_GUARD)
            assert ready, "the writer hangs"
            told += os.read(reading, _NUMBER)
        for _ in range(chance.randrange(_LONGEST_SPIN)):
            pass
        os.kill(pid, signal.SIGKILL)
        while rest := os.read(reading, 1 << 16):
            told += rest
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
    assert told, "the writer died before it was killed"
    return int.from_bytes(told[-_NUMBER:])


def _write(state: Path, writing: int, diligence: Diligence) -> NoReturn:
    try:
        store = Store.open(state, outside(state), lambda: NOON)
        seq = len(store.events())
        while True:
            seq += 1
            if diligence is Diligence.HASTY:
                os.write(writing, seq.to_bytes(_NUMBER))
            assert store.append([numbered(seq)], NOON) == seq
            if diligence is Diligence.OWN:
                os.write(writing, seq.to_bytes(_NUMBER))
    finally:
        os._exit(1)


def _stored(state: Path) -> int:
    """Return the number of stored decisions, after comparing each with the one that was made."""
    with closing(Store.open(state, outside(state), lambda: NOON)) as store:
        events = store.events()
        assert store.load().note == "", store.load().note
    assert list(events) == history(len(events))
    return len(events)
