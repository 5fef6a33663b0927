"""The sizes of the sized tests: `pytest --sizes=test|check|soak`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Size(StrEnum):
    """TEST fits `make test`, CHECK fits CI, and SOAK fits an evening."""

    TEST = "test"
    CHECK = "check"
    SOAK = "soak"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The value of the fixture `sizes`. A test names its three sizes where it uses them."""

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
