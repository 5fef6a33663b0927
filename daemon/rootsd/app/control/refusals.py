"""Commands of agents since a person looked, kept beyond the end of the daemon.

An account for people: the history tells of the same, and nothing is decided by this. So it is
neither synced nor guarded, and one that cannot be read counts for none.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import parse_json
from rootsd.host.private import open_private_file, unusable
from rootsd.wire import forms
from rootsd.wire.guarding import RefusedStatus

log = logging.getLogger(__name__)

REFUSED_NAME = "refused.json"
AGENT_COMMANDS_NAME = "agent-commands.json"
_LONGEST = 1 << 16


class Refusals:
    """Kept in the file `name` of the folder `state`, which the caller has locked."""

    def __init__(self, state: Path, name: str = REFUSED_NAME) -> None:
        self._file = state / name
        self.seen_by_nobody = self._read()
        """The sum of them; None where there was none."""

    def add(self, *, at: str, what: str, by: str, why: str) -> None:
        """One more, at a time in RFC 3339; the words are safe to show."""
        count = self.seen_by_nobody["count"] if self.seen_by_nobody else 0
        self.seen_by_nobody = RefusedStatus(count=count + 1, at=at, what=what, by=by, why=why)
        self._write(json.dumps(self.seen_by_nobody).encode("ascii"))

    def looked(self) -> None:
        """Somebody has been shown them."""
        if self.seen_by_nobody is not None:
            self.seen_by_nobody = None
            self._write(b"")

    def _write(self, content: bytes) -> None:
        try:
            fd = open_private_file(self._file)
            try:
                os.pwrite(fd, content, 0)
                os.ftruncate(fd, len(content))
            except OSError as error:
                raise unusable(self._file, error) from error
            finally:
                os.close(fd)
        except RootsdError as error:
            log.warning("what was refused is not written down: %s", error)

    def _read(self) -> RefusedStatus | None:
        with suppress(RootsdError, OSError, ValueError, TypeError, KeyError):
            fd = open_private_file(self._file, os.O_RDONLY)
            try:
                kept = parse_json(os.pread(fd, _LONGEST, 0))
            finally:
                os.close(fd)
            return RefusedStatus(
                count=forms.number(kept["count"]),
                at=_words(kept["at"]),
                what=_words(kept["what"]),
                by=_words(kept["by"]),
                why=_words(kept["why"]),
            )
        return None


@dataclass(frozen=True, slots=True)
class Records:
    """The commands that were refused, and those that an agent ran and that decide nothing."""

    refusals: Refusals
    agent_commands: Refusals

    @classmethod
    def kept_in(cls, state: Path) -> Records:
        """Return the records in the folder `state`, which the caller has locked."""
        return cls(Refusals(state), Refusals(state, AGENT_COMMANDS_NAME))


def _words(raw: object) -> str:
    return safe_label(forms.text(raw), limit=None)
