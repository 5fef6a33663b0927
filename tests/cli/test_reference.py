"""What is told of all verbs fits what they do."""

from __future__ import annotations

from rootsd.cli import reference
from rootsd.core.exits import Exit


def test_every_exit_status_is_explained_and_every_explained_one_exists() -> None:
    assert set(reference.STATUSES) == set(Exit)


def test_the_line_of_the_help_tells_all_statuses_but_those_of_signals() -> None:
    line = reference.statuses_in_a_line()
    assert line.startswith("Exit status: 0 ok, 1 failed, ")
    assert line.endswith(", 78 bad configuration.")
