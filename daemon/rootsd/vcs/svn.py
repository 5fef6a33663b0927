"""Subversion. Source: traces of svn 1.14 at random moments of a checkout."""

from __future__ import annotations

import os

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import list_names
from rootsd.vcs import sqlite_reader
from rootsd.vcs.base import MarkedVcs, TemporaryFiles
from rootsd.vcs.stages import Stage


class Subversion(MarkedVcs):
    """A Subversion checkout. Its locks are rows of the SQLite database `.svn/wc.db`."""

    kind = ProjectKind.SVN
    temporary_files = TemporaryFiles(suffixes=(b"-journal",))
    progress = (b"/.svn",)

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the database's journal and its lock rows."""
        if b"wc.db" not in list_names(path + b"/.svn"):
            return Stage.STARTING
        database = path + b"/.svn/wc.db"
        if sqlite_reader.has_hot_journal(database):
            return Stage.CHECKOUT_LOCKED
        rows = sqlite_reader.query_copy(
            database,
            ("nodes", "wc_lock", "work_queue"),
            "SELECT (SELECT count(*) FROM nodes), EXISTS (SELECT 1 FROM wc_lock)"
            " OR EXISTS (SELECT 1 FROM work_queue)"
            " OR EXISTS (SELECT 1 FROM nodes WHERE presence = 'incomplete')",
        )
        if rows is None:
            return Stage.OTHER
        if rows == [(0, 0)]:
            return Stage.STARTING
        return Stage.CHECKOUT_LOCKED if rows[0][1] else None

    def origin(self, path: bytes) -> bytes | None:
        """Return the URL of the checked-out folder."""
        rows = sqlite_reader.query_copy(
            path + b"/.svn/wc.db",
            ("nodes", "repository"),
            "SELECT r.root || '/' || n.repos_path FROM nodes n"
            " JOIN repository r ON r.id = n.repos_id WHERE n.local_relpath = '' LIMIT 1",
        )
        address = rows[0][0] if rows else None
        return os.fsencode(address) if isinstance(address, str) else None
