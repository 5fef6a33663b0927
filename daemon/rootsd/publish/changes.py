"""What changed between two tool answers of one session, in words for a model.

No client that we know tells its model that a resource or a list changed. So the next answer of any
tool says it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rootsd.core.model import Published, Root
from rootsd.publish.memo import shared
from rootsd.publish.shapes import label_of, quoted

_MOST_NAMES = 10


@shared(size=8)
def changes(before: Published, after: Published) -> str:
    """Return one sentence about the roots that differ; empty if none does.

    Names are in the order of the sets, and at most ten of a kind are spelled out.
    """
    old = {root.name: root for root in before.roots}
    new = {root.name: root for root in after.roots}
    added = [root for root in after.roots if root.name not in old]
    removed = [root for root in before.roots if root.name not in new]
    changed = [root for root in after.roots if root.name in old and old[root.name] != root]
    parts = [
        f"{verb} {_names(roots)}"
        for verb, roots in (("added", added), ("removed", removed), ("changed", changed))
        if roots
    ]
    return f"Since your last call: {'; '.join(parts)}." if parts else ""


def _names(roots: list[Root]) -> str:
    shown: Iterable[str] = (quoted(label_of(root)) for root in roots[:_MOST_NAMES])
    more = len(roots) - _MOST_NAMES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
