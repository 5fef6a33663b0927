"""One line of progress on a terminal's standard error, redrawn in place and gone at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rootsd.cli.columns import home_short
from rootsd.cli.manner import Flags
from rootsd.core.labels import safe_label
from rootsd.wire.scans import Progress

REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows each notice it is given, but not more often than a person can read.

    With `stream` None nothing is shown: no terminal, a dumb one, or -q or --json.
    """

    def __init__(
        self, stream: TextIO | None, width: int = 80, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._width = width
        self._clock = clock
        self._drawn_at: float | None = None

    @classmethod
    def for_flags(cls, flags: Flags) -> ProgressLine:
        """A line on stderr where a person looks at it and did not ask for quiet."""
        wanted = not flags.quiet and not flags.json and os.environ.get("TERM") != "dumb"
        if not wanted or not sys.stderr.isatty():
            return cls(None)
        return cls(sys.stderr, os.get_terminal_size(sys.stderr.fileno()).columns or 80)

    def show(self, notice: Progress) -> None:
        """Draw the notice, unless the line was drawn a moment ago."""
        now = self._clock()
        if self._stream is None or (
            self._drawn_at is not None and now - self._drawn_at < REDRAW_SECONDS
        ):
            return
        self._drawn_at = now
        counts = f"scanning: {notice['projects']:,} projects in {notice['folders']:,} folders"
        room = self._width - len(counts) - 3
        parent = safe_label(home_short(notice["parent"]), limit=max(room, 2))
        text = f"{counts}  {parent}" if room > len(parent) // 2 else counts
        self._stream.write(_CLEAR + text[: self._width - 1])
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._stream is not None and self._drawn_at is not None:
            self._stream.write(_CLEAR)
            self._stream.flush()
