from __future__ import annotations

import click
import pytest

from rootsd.cli.commands.approve import Duration


def _seconds(typed: str) -> int:
    return Duration().convert(typed, None, None)


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("8h", 28_800), ("90m", 5_400), ("1h30m", 5_400), ("2d", 172_800), ("1w", 604_800),
     ("1s", 1), (" 8H ", 28_800), ("3650d", 315_360_000)],
)  # fmt: skip
def test_a_duration_is_parsed(typed: str, seconds: int) -> None:
    assert _seconds(typed) == seconds


@pytest.mark.parametrize(
    "typed",
    ["", "8", "h", "8 hours", "-8h", "0h", "1.5h", "8h!", "3651d", "999999999w", "8h\n8", "٨h"],
)
def test_an_invalid_duration_is_a_usage_error(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        _seconds(typed)
