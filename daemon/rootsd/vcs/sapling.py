"""Sapling. It has the same files as Mercurial, in `.sl`. Source: its documented layout."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.vcs.base import MarkedVcs, data_folder, first_match
from rootsd.vcs.hg import HG_TEMPORARY_FILES, hg_stage
from rootsd.vcs.stages import Stage


class Sapling(MarkedVcs):
    """A Sapling checkout."""

    kind = ProjectKind.SAPLING
    temporary_files = HG_TEMPORARY_FILES
    progress = (b"/.sl", b"/.sl/store")

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage as for Mercurial."""
        return hg_stage(data_folder(path + b"/.sl"))

    def origin(self, path: bytes) -> bytes | None:
        """Return the default path in `.sl/config`."""
        return first_match(path + b"/.sl/config", rb"default[ \t]*=[ \t]*(.+)")
