"""Batches, which MCP 2025-03-26 alone has: each member is dealt with like a message. Pure."""

from __future__ import annotations

from collections.abc import Callable

from rootsd.wire import splice
from rootsd.wire.jsonrpc import Batch, Malformed, Message

PassOn = Callable[[bytes, Message | Malformed, float], bytes | None]


def passed(line: bytes, batch: Batch, now: float, pass_on: PassOn) -> bytes | None:
    """What goes on of the line of a batch: of each member what `pass_on` says.

    What stands between the members stays, unless one of them is gone.
    """
    text = line.decode()
    places = splice.elements(text)
    parts = [text[start:end].encode() for start, end in places]
    outcome = [pass_on(*each, now) for each in zip(parts, batch.members, strict=True)]
    kept = [part for part in outcome if part is not None]
    if len(kept) < len(parts):
        return b"[" + b",".join(kept) + b"]" if kept else None
    gaps = [0, *(end for _, end in places)]
    before = [text[gap:start].encode() for gap, (start, _) in zip(gaps, places, strict=False)]
    return b"".join(map(bytes.__add__, before, kept)) + text[gaps[-1] :].encode()
