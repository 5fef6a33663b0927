"""The focus in control requests: which tag sessions without a scope of their own see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypedDict

from rootsd.wire.deciding import Effect
from rootsd.wire.request import Request


class Reach(StrEnum):
    """Which sessions a change of the focus is for."""

    LATER = "later"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class FocusQuery(Request):
    """The focus: `Focusing`."""

    method: ClassVar[str] = "focus"


@dataclass(frozen=True, slots=True)
class SetFocus(Request):
    """Narrow sessions to `tag`, or to nothing where it is null; an order: `Focusing`."""

    method: ClassVar[str] = "set-focus"

    tag: str | None = None
    reach: Reach = Reach.LATER
    effect: Effect = Effect.APPLY


class Focusing(TypedDict):
    """`tag` is null where nothing is focused; `roots` are the names that a session sees of the
    published set which begins now."""

    revision: int
    tag: str | None
    roots: list[str]
    warnings: list[str]
