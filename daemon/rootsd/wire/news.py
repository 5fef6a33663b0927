"""What is new since a person looked, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class NewsQuery(Request):
    """What came since a person looked or was told: `News`; it is no news afterwards."""

    method: ClassVar[str] = "news"


class Wanted(TypedDict):
    """A folder that a client asks for; `note` says who and why."""

    id: str
    name: str
    note: str


class News(TypedDict):
    """`new` proposals wait that nobody was told of, beside those that clients asked for."""

    revision: int
    new: int
    wanted: list[Wanted]
    warnings: list[str]
