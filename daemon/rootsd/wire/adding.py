"""A folder or a URI that a person adds by hand, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.deciding import Effect
from rootsd.wire.projects import Item
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Addition(Request):
    """Propose `what`, a path (relative ones are to `cwd`) or a URI, under `name` if that is given:
    `Added`. It waits for a decision like all that is found."""

    method: ClassVar[str] = "add"

    what: str
    cwd: str
    name: str | None = None
    effect: Effect = Effect.APPLY


class Added(TypedDict):
    """The one project; `is_new` tells whether it was not known before."""

    revision: int
    items: list[Item]
    is_new: bool
    warnings: list[str]
