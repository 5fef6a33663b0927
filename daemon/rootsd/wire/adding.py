"""A folder or a URI that a person adds by hand, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from rootsd.wire.control import Item


@dataclass(frozen=True, slots=True)
class Addition:
    """Propose `what`, a path (relative ones are to `cwd`) or a URI, under `name` if that is given:
    `Added`. It waits for a decision like all that is found."""

    what: str
    cwd: str
    name: str | None = None


class Added(TypedDict):
    """The one project; `is_new` tells whether it was not known before."""

    revision: int
    items: list[Item]
    is_new: bool
    warnings: list[str]
