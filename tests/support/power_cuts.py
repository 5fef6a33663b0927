"""Simulated power cuts at any moment of a real store's work, and a check of the result."""

from __future__ import annotations

import copy
import hashlib
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.state.store.backup import list_backups
from rootsd.state.store.database import StoreDamaged, connect_frozen, translate_errors
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.recovery import check
from rootsd.state.store.store import Store
from support.cached_parsing import cached_parsing
from support.copied_stores import (
    read_identities,
    simulated_identity,
    use_copied_stores,
    write_identities,
)
from support.sample_decisions import NOON, numbered
from support.simulated_disk import Folder, Found, cut, digest, now, read_in, write_out
from support.store_writer import STATE_NAME, WriteMode
from support.stores import back_up, make_unbound, outside, small_reserve
from support.syscall_recording import Call, CallReplay, record

TESTS = Path(__file__).parent.parent
_OLD_DECISIONS = 40
_STORES = 6
_STOPS = 3


class Verdict(Enum):
    """The effect of a power cut on a store."""

    HELD = auto()  # all that was acknowledged is there, and nothing was to be put right
    LOST = auto()
    DAMAGED = auto()


@dataclass(frozen=True, slots=True)
class Start:
    """A store that exists before a run: the real folder, and its copy on the simulated disk."""

    top: Path
    folder: Folder
    acknowledged: int
    was_damaged: bool  # so that a note about that is no fault


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment during a run: the simulated disk, and the number of acknowledged decisions."""

    start: Start
    folder: Folder
    acknowledged: int


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a folder in memory, where a sync costs nothing. Only the simulation cuts the power."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def python_environment() -> dict[str, str]:
    """Return the environment for a program that imports the support modules."""
    return {**os.environ, "PYTHONPATH": str(TESTS)}


def cut_power(seed: int, cuts: int, mode: WriteMode = WriteMode.OWN) -> Iterator[Verdict]:
    """Run stores, cut their power at `cuts` moments, and yield the effect of each cut.

    Half of the cuts are in runs of new stores, old ones, and a damaged one. The others are in runs
    that follow upon a cut or a kill in those.
    """
    chance = random.Random(seed)  # noqa: S311 - to be reproducible is its purpose
    with (
        memory_folder() as work,
        small_reserve(),
        cached_parsing(),
        use_copied_stores(simulated_identity),
    ):
        judge = Judge(work / "cut")
        first = _run(_made_starts(work, seed), mode)
        for moment in _moments(first, cuts - cuts // 2, chance):
            yield judge.judge(cut(moment.folder, chance), moment)
        second = _run(_stopped_starts(first, cuts, work, chance), mode)
        for moment in _moments(second, cuts // 2, chance):
            yield judge.judge(cut(moment.folder, chance), moment)


def _made_starts(work: Path, seed: int) -> list[Start]:
    """Create stores to start from: new ones, ones with a history, one whose second anchor is still
    to be written, and a damaged one.
    """
    starts: list[Start] = []
    for number in range(_STORES):
        top = work / f"{seed}-{number}"
        top.mkdir()
        old = number >= _STORES // 3
        damaged = number == _STORES - 1
        if number == _STORES - 2:
            changes = [numbered(seq) for seq in range(1, _OLD_DECISIONS + 1)]
            make_unbound(top / STATE_NAME, changes)
        elif old:
            _make_history(top / STATE_NAME)
        if damaged:
            damage(top / STATE_NAME, history(_OLD_DECISIONS)[_OLD_DECISIONS // 2])
        starts.append(Start(top, read_in(top, {}), _OLD_DECISIONS if old else 0, damaged))
    return starts


def _make_history(state: Path) -> None:
    with closing(Store.open(state, outside(state), lambda: NOON)) as store:
        store.append([numbered(seq) for seq in range(1, _OLD_DECISIONS + 1)], NOON)
        back_up(store, NOON)


def damage(state: Path, event: HistoryEvent) -> None:
    """Change one byte of `event` in the database below `state`, where SQLite cannot see it."""
    database = state / DATABASE_NAME
    content = bytearray(database.read_bytes())
    content[content.index(event.prev + event.hash)] ^= 1
    database.write_bytes(content)


def _stopped_starts(
    runs: Sequence[tuple[Start, list[Call]]], cuts: int, work: Path, chance: random.Random
) -> list[Start]:
    """Return stores of `runs` as power cuts and kills left them, enough for half of `cuts`.

    A kill loses no data.
    """
    starts: list[Start] = []
    for moment in _moments(runs, min(_STOPS * len(runs), cuts // 4), chance):
        top = work / f"{moment.start.top.name}-{len(starts)}"
        if chance.random() < 1 / 2:
            _write_out(now(moment.folder), top)
            folder = copy.deepcopy(moment.folder)
        else:
            _write_out(cut(moment.folder, chance), top)
            folder = read_in(top, read_identities(top))
        starts.append(Start(top, folder, moment.acknowledged, moment.start.was_damaged))
    return starts


def _write_out(found: Found, top: Path) -> None:
    write_identities(top, write_out(found, top))


def _run(starts: Sequence[Start], mode: WriteMode) -> list[tuple[Start, list[Call]]]:
    """Run a store on each start, and return its system calls."""
    tops = [start.top for start in starts]
    command = [sys.executable, "-m", "support.store_writer", mode, *map(str, tops)]
    calls = record(command, tops, tops[0].with_name("log"), python_environment())
    return list(zip(starts, calls, strict=True))


def _moments(
    runs: Sequence[tuple[Start, list[Call]]], count: int, chance: random.Random
) -> Iterator[Moment]:
    """Yield `count` random moments between the calls of all runs, in order."""
    lengths = [len(calls) for _, calls in runs]
    chosen = Counter(chance.choices(range(len(runs)), lengths, k=count))
    for number, (start, calls) in enumerate(runs):
        wanted = Counter(chance.choices(range(len(calls) + 1), k=chosen[number]))
        machine = CallReplay(start.top, copy.deepcopy(start.folder))
        acknowledged = start.acknowledged
        for at in range(len(calls) + 1):
            for _ in range(wanted[at]):
                yield Moment(start, machine.folder, acknowledged)
            if at < len(calls):
                mark = machine.play(calls[at])
                acknowledged = int(mark) if mark else acknowledged


class Judge:
    """Opens stores at `place`, and returns the effect of each cut."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._verdicts: dict[tuple[bytes, int, bool], Verdict] = {}
        self._whole_backups: set[bytes] = set()

    def judge(self, found: Found, moment: Moment) -> Verdict:
        """What the cut did, after which `found` was found."""
        known = digest(found), moment.acknowledged, moment.start.was_damaged
        if known not in self._verdicts:
            _write_out(found, self._place)
            self._verdicts[known] = self._judge(self._place / STATE_NAME, moment)
            shutil.rmtree(self._place)
        return self._verdicts[known]

    def _judge(self, state: Path, moment: Moment) -> Verdict:
        try:
            with closing(Store.open(state, outside(state), lambda: NOON)) as store:
                note, events = store.load().note, list(store.events())
            for backup in list_backups(state):
                self._check(backup)
        except (RootsdError, StoreDamaged):
            return Verdict.DAMAGED
        return _verdict(moment, note, events)

    def _check(self, backup: Path) -> None:
        content = hashlib.blake2b(backup.read_bytes()).digest()
        if content not in self._whole_backups:
            with translate_errors(backup), closing(connect_frozen(backup)) as db:
                check(db)
            self._whole_backups.add(content)


def _verdict(moment: Moment, note: str, events: list[HistoryEvent]) -> Verdict:
    if len(events) < moment.acknowledged:
        return Verdict.LOST
    expected_note = not note or (moment.start.was_damaged and "lapsed" not in note)
    if not expected_note or events != history(len(events)):
        return Verdict.DAMAGED
    return Verdict.HELD


@cache
def _all_history(length: int) -> list[HistoryEvent]:
    return events_for([numbered(seq) for seq in range(1, length + 1)], NOON, CHAIN_START)


def history(length: int) -> list[HistoryEvent]:
    """Return the first decisions of the store writer."""
    known = _all_history(1 << length.bit_length())
    return known[:length]
