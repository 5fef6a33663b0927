"""Where a path stands, and why, in control requests and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.projects import Item
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class CheckQuery(Request):
    """Where `path` (absolute, or a URI) stands: `Checked`."""

    method: ClassVar[str] = "check"

    path: str


@dataclass(frozen=True, slots=True)
class WhyQuery(Request):
    """What speaks for and against the project that holds `path` (absolute, or a URI): `Why`."""

    method: ClassVar[str] = "why"

    path: str


class Checked(TypedDict):
    """`verdict` is null where the path is not known; `published` tells whether it is in a root."""

    published: bool
    verdict: str | None
    root: str | None
    access: str | None


class Voice(TypedDict):
    """One thing that can speak about a project, in the order of precedence.

    `verdict` is null where it has nothing to say. `by` tells what spoke: a folder, or a rule's
    number and pattern; `decides` marks the one voice that is the verdict.
    """

    ground: str
    verdict: str | None
    by: str | None
    decides: bool


class Why(TypedDict):
    """`path` is the canonical path or the URI asked about, `items` the project there, if any.

    `published` is the judgement and the state of the disk taken together; `obstacles` say, a
    sentence each, what keeps an approved project from clients, or a path from being a project.
    """

    revision: int
    path: str
    published: bool
    items: list[Item]
    voices: list[Voice]
    obstacles: list[str]
    warnings: list[str]
