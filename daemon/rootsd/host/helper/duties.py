"""What the helper can be asked: a module for each question, and the terms a worker answers on.

To add one: a member of `Duty`, its `Terms`, and a module with a function `answer(bytes) -> bytes`.
It runs in a process of its own that ends with the answer, so it may be killed at any instruction,
may leak, and need not be safe in threads. Whatever it raises is an answer that does not come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class Duty(IntEnum):
    """The questions; the numbers go over the channel."""

    AT_WORK = 1
    FACTS = 2
    HISTORY = 3
    LINEAGES = 4
    SHOWING = 5


class Reach(Enum):
    """What a worker may get at."""

    PROCESSES = auto()
    """What other processes are and do, and their terminals. Landlock would take both."""
    FILES = auto()
    """Files, to read them, and nothing else: confined as the daemon is, where the kernel can."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a question is answered. `module` is loaded by the helper alone, at its start.

    `at_once` workers at most, the other questions wait; `memory` in bytes of address space beyond
    what the helper itself has, where the system can limit it (Linux). Where the answer is
    `awaited`, a worker stands ready for the next question: to make one takes 4 ms.
    """

    module: str
    reach: Reach
    at_once: int
    memory: int = 256 << 20
    awaited: bool = False


TERMS: Mapping[Duty, Terms] = {
    Duty.AT_WORK: Terms("rootsd.host.helper.at_work", Reach.PROCESSES, at_once=1, awaited=True),
    Duty.FACTS: Terms("rootsd.host.helper.facts", Reach.FILES, at_once=2),
    Duty.HISTORY: Terms("rootsd.host.helper.history", Reach.FILES, at_once=2, memory=96 << 20),
    Duty.LINEAGES: Terms("rootsd.host.helper.callers", Reach.PROCESSES, at_once=2, awaited=True),
    Duty.SHOWING: Terms("rootsd.host.helper.showing", Reach.PROCESSES, at_once=2),
}
