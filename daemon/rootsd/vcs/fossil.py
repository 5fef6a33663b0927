"""Fossil. Source: traces of fossil 2.21 at random moments of `fossil open`."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.vcs import sqlite_reader
from rootsd.vcs.base import MarkedVcs, TemporaryFiles
from rootsd.vcs.stages import Stage


class Fossil(MarkedVcs):
    """A Fossil checkout. Its marker is the checkout's SQLite database.

    `fossil open` creates the database with check-in 0. Then it writes all files and the real
    check-in in one transaction.
    """

    kind = ProjectKind.FOSSIL
    temporary_files = TemporaryFiles(suffixes=(b"-journal",))
    progress = (b"",)

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the database's journal and the recorded check-in."""
        databases = [path + b"/" + name for name in self.kind.markers]
        if any(map(sqlite_reader.has_hot_journal, databases)):
            return Stage.CHECKOUT_LOCKED
        query = "SELECT 1 FROM vvar WHERE name = 'checkout' AND CAST(value AS INTEGER) > 0"
        answers = [sqlite_reader.query_copy(each, ("vvar",), query) for each in databases]
        return None if any(answers) else Stage.STARTING
