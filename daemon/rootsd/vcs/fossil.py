"""Fossil. Source: traces of fossil 2.21 at random moments of `fossil open`."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.vcs import sqlite_reader
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder
from rootsd.vcs.stages import Stage


class Fossil(MarkedVcs):
    """A Fossil checkout. Its marker is the checkout's SQLite database.

    `fossil open` creates the database with check-in 0. Then it writes all files and the real
    check-in in one transaction. `fossil open --empty` leaves it at check-in 0.
    """

    kind = ProjectKind.FOSSIL
    temporary_files = TemporaryFiles(suffixes=(b"-journal",))
    progress = (b"",)

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the database's journal and the recorded check-in."""
        databases = [data_folder(path + b"/" + name) for name in self.kind.markers]
        if any(map(sqlite_reader.has_hot_journal, databases)):
            return Stage.CHECKOUT_LOCKED
        query = "SELECT CAST(value AS INTEGER) > 0 FROM vvar WHERE name = 'checkout'"
        answers = [sqlite_reader.query_copy(each, ("vvar",), query) for each in databases]
        found = [bool(rows[0][0]) for rows in answers if rows]
        if not found:
            return Stage.STARTING
        return None if any(found) else Stage.OTHER
