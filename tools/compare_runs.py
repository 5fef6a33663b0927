"""Fail if a test ran in none of several runs: compare_runs.py RECORD RECORD...

Each RECORD is a file that `pytest --record=FILE` wrote: one line `OUTCOME TAB TEST` per test. CI
runs the suite as root and as an ordinary user. A test may need one or the other, but not both.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path


def never_run(records: Iterable[Sequence[str]]) -> list[str]:
    """Return the tests that no record shows as passed, sorted. Each record is a list of lines."""
    outcomes = defaultdict(set)
    for lines in records:
        for line in lines:
            outcome, _, test = line.partition("\t")
            outcomes[test].add(outcome)
    return sorted(test for test, seen in outcomes.items() if "passed" not in seen)


def main(paths: Sequence[str]) -> int:
    """Print the tests that never ran. Return 1 if there are any, or if a record is empty."""
    records = [Path(path).read_text().splitlines() for path in paths]
    if not records or not all(records):
        print("a record is missing or empty", file=sys.stderr)
        return 1
    missing = never_run(records)
    for test in missing:
        print(f"ran in none of {len(records)} runs: {test}", file=sys.stderr)
    tests = {line.partition("\t")[2] for lines in records for line in lines}
    print(f"{len(tests)} tests in {len(records)} runs, {len(missing)} of them ran in none")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
