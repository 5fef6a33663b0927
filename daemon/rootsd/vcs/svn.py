"""Subversion. Source: traces of svn 1.14 at random moments of a checkout.

Before svn 1.7, each folder had its own `.svn` with a file of entries and no database. Source:
subversion/libsvn_wc/README of svn 1.6.
"""

from __future__ import annotations

import os

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import REF_CAP, list_names, read_small
from rootsd.vcs import sqlite_reader
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder
from rootsd.vcs.stages import Stage

_FORMATS_BEFORE_1_7 = (b"8", b"9", b"10")  # svn 1.4 to 1.6
# The positions in an entry; see `read_entry` in subversion/libsvn_wc/entries.c of svn 1.6.
_URL, _INCOMPLETE = 3, 24


class Subversion(MarkedVcs):
    """A Subversion checkout. Its locks are rows of the SQLite database `.svn/wc.db`."""

    kind = ProjectKind.SVN
    temporary_files = TemporaryFiles(suffixes=(b"-journal",))
    progress = (b"/.svn",)

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the database's journal and its lock rows."""
        data = data_folder(path + b"/.svn")
        names = list_names(data)
        if b"wc.db" not in names:
            return _stage_before_1_7(data, names)
        database = data + b"/wc.db"
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
        if isinstance(address, str):
            return os.fsencode(address)
        fields = _entry_before_1_7(path + b"/.svn")
        return fields[_URL] if len(fields) > _URL else None


def _stage_before_1_7(data: bytes, names: frozenset[bytes]) -> Stage | None:
    if not names.isdisjoint((b"lock", b"log")):  # a log has steps that are not done yet
        return Stage.CHECKOUT_LOCKED
    fields = _entry_before_1_7(data)
    if not fields:
        return Stage.STARTING
    is_cut_off = len(fields) > _INCOMPLETE and fields[_INCOMPLETE] == b"incomplete"
    return Stage.CHECKOUT_LOCKED if is_cut_off else None


def _entry_before_1_7(data: bytes) -> list[bytes]:
    """Return the fields of the folder itself, or none if this is not the layout before 1.7."""
    number, _, rest = (read_small(data + b"/entries", REF_CAP) or b"").partition(b"\n")
    if number not in _FORMATS_BEFORE_1_7:
        return []
    return rest.partition(b"\x0c")[0].split(b"\n")
