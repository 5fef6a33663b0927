"""The rate limit for reports about dropped lines."""

from __future__ import annotations

from rootsd.proxy.run.outbox import DroppedLineReports


def test_the_first_reports_are_printed_and_the_others_counted() -> None:
    complaints = DroppedLineReports("rootsd run")
    said = [line for now in range(50) for line in complaints.lines_to_print(["bad"], float(now))]
    assert said == ["rootsd run: bad\n"] * 3
    assert list(complaints.lines_to_print(["bad", "worse"], 70.0)) == [
        "rootsd run: bad (and 47 more)\n"
    ]
    assert list(complaints.lines_to_print([], 200.0)) == []
    assert list(complaints.lines_to_print(["again"], 200.0)) == [
        "rootsd run: again (and 1 more)\n"
    ]
