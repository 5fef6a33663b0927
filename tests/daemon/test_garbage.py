"""Full collections are rare, and garbage still goes."""

from __future__ import annotations

import gc

from support.subprocesses import run_python

# Python 3.14 has no full collections, and says so by a threshold of 0.
HAS_FULL_COLLECTIONS = gc.get_threshold()[2] > 0
PROGRAM = """
import gc, weakref
from rootsd.daemon.garbage import collect_rarely

class Session:
    def __init__(self):
        self.itself = self

full = 0
def count(phase, info):
    global full
    full += phase == "start" and info["generation"] == 2

{first}
session = Session()
gc.collect()  # it is old now
ended = weakref.ref(session)
del session
gc.callbacks.append(count)
kept = [[] for _ in range({youngest} * gc.get_threshold()[0])]
print(full, ended() is None)
"""


def _full_collections(first: str, youngest: int) -> tuple[int, bool]:
    """Return how many there are in so many of the youngest, and whether old garbage went."""
    output, errors = run_python((), PROGRAM.format(first=first, youngest=youngest))
    assert errors == ""
    full, went = output.split()
    return int(full), went == "True"


def test_four_hundred_collections_of_the_youngest_cause_no_full_one() -> None:
    full, _ = _full_collections("collect_rarely()", 400)
    assert full == 0


def test_old_garbage_goes_in_the_end() -> None:
    _, went = _full_collections("collect_rarely()", 800)
    assert went


def test_control_with_the_default_threshold_there_are_full_collections() -> None:
    full, _ = _full_collections("", 400)
    assert (full > 0) == HAS_FULL_COLLECTIONS
