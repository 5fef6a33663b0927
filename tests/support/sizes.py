"""How large the sized tests are: `pytest --sizes=test|check|soak`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Size(StrEnum):
    """TEST fits `make test` (the suite in 5 minutes on 2 cores), CHECK CI, SOAK an evening."""

    TEST = "test"
    CHECK = "check"
    SOAK = "soak"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the fixture `sizes` gives: a test names its three sizes where it uses them.

    `repositories = sizes.pick(test=20, check=500, soak=5000)`
    """

    size: Size

    def pick(self, *, test: T, check: T, soak: T) -> T:
        """The value for this run."""
        match self.size:
            case Size.TEST:
                return test
            case Size.CHECK:
                return check
            case Size.SOAK:
                return soak
