"""The help text that all verbs share fits their behavior."""

from __future__ import annotations

from rootsd.cli import help_text
from rootsd.core.errors import Exit


def test_every_exit_status_is_explained_and_every_explained_one_exists() -> None:
    assert set(help_text.EXIT_STATUSES) == set(Exit)


def test_the_help_lists_all_statuses_except_those_of_signals() -> None:
    line = help_text.exit_status_summary()
    assert line.startswith("Exit status: 0 ok, 1 failed, ")
    assert line.endswith(", 78 bad configuration.")
