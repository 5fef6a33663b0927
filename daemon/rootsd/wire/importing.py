"""Projects from a file that `rootsd export` wrote, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rootsd.wire.deciding import Effect
from rootsd.wire.request import Request

EXPORT_FORMAT = 1
"""Of the file; another number is another form."""
MOST_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Import(Request):
    """Propose these projects under the names and tags that they had: answers with `Decided`.

    The three go together: `whats[n]` is a path or a URI, `names[n]` its name or empty, `tags[n]`
    its tags with a newline between them. At most `MOST_AT_ONCE`. Nothing is approved; what was
    decided about already stays as it is.
    """

    method: ClassVar[str] = "import"

    whats: tuple[str, ...]
    names: tuple[str, ...]
    tags: tuple[str, ...]
    effect: Effect = Effect.APPLY
