"""Pijul. Source: its documented layout."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import exists_no_follow
from rootsd.vcs.base import MarkedVcs, data_folder, first_match
from rootsd.vcs.stages import Stage


class Pijul(MarkedVcs):
    """A Pijul repository. No file shows whether a clone is complete, so a quiet period decides."""

    kind = ProjectKind.PIJUL
    progress = (b"/.pijul", b"/.pijul/pristine")

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage: whether the database exists."""
        exists = exists_no_follow(data_folder(path + b"/.pijul") + b"/pristine/db")
        return Stage.OTHER if exists else Stage.STARTING

    def origin(self, path: bytes) -> bytes | None:
        """Return the default remote."""
        return first_match(path + b"/.pijul/config", rb'default_remote[ \t]*=[ \t]*"([^"]+)"')
