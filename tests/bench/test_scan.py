"""The scan of a forest of 500 repositories, against find and fd; `make bench` shows it.

Only gross losses fail here: other work on the machine must not.
"""

from __future__ import annotations

from bench.bench_scan import OURS, RESCAN, measure, show
from bench.forest import Plan


def test_our_scan_is_faster_than_find_and_a_rescan_than_a_scan() -> None:
    results = measure(Plan(repositories=500), rounds=7)
    show(results)
    ours, rescan = results[OURS], results[RESCAN]
    assert results["find"].wall_ms > 3 * ours.wall_ms
    assert ours.wall_ms > 1.5 * rescan.wall_ms
    assert "fd" not in results or results["fd"].cpu_ms > 3 * ours.cpu_ms
