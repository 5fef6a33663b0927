"""Names and tags that a person gives to projects, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rootsd.wire.deciding import Effect
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Renaming(Request):
    """Call the one project that `ref` means `name`: answers with `Decided`."""

    method: ClassVar[str] = "rename"

    ref: str
    name: str
    cwd: str
    effect: Effect = Effect.APPLY


@dataclass(frozen=True, slots=True)
class Tagging(Request):
    """Tag the projects with the tags `on`, take the tags `off` from them: answers with
    `Decided`."""

    method: ClassVar[str] = "tag"

    refs: tuple[str, ...]
    cwd: str
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    effect: Effect = Effect.APPLY
