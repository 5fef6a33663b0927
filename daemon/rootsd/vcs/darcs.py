"""Darcs. Source: traces of darcs 2.16 at random moments of a clone."""

from __future__ import annotations

import re

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import REF_CAP, list_names, read_small, stat_no_follow
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder, first_match
from rootsd.vcs.stages import Stage

_PRISTINE = re.compile(rb"pristine:((?:\d{10}-)?[0-9a-f]{64})\s")
# The name of an empty tree ends with the SHA-256 of empty text. It may start with a size.
_EMPTY_TREE = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


class Darcs(MarkedVcs):
    """A darcs repository.

    `darcs clone` first does the same as `darcs init`. Then it records the source, and at last it
    copies the inventory of the source. It holds no lock. So a clone that was killed while writing
    files looks complete after a quiet period.
    """

    kind = ProjectKind.DARCS
    # darcs writes a file as `NAME-0` and renames it to `NAME`.
    temporary_files = TemporaryFiles(frozenset((b"lock",)), suffixes=(b"-0",))
    progress = (b"/_darcs",)

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the lock and the inventory."""
        data = data_folder(path + b"/_darcs")
        names = list_names(data)
        if b"format" not in names:
            return Stage.OTHER if b"inventory" in names else Stage.STARTING
        if b"lock" in names:
            return Stage.IN_USE
        inventory = data + b"/hashed_inventory"
        head = _PRISTINE.match(read_small(inventory, REF_CAP) or b"")
        if head is None:
            return Stage.OTHER
        if head[1].endswith(_EMPTY_TREE) and _is_newer(data + b"/prefs/defaultrepo", inventory):
            empty = list_names(path) <= {b"_darcs"}
            return Stage.CONNECTING if empty else Stage.REMOTE_ALONE
        return None

    def origin(self, path: bytes) -> bytes | None:
        """Return the repository that darcs uses by default."""
        return first_match(path + b"/_darcs/prefs/defaultrepo", rb"(.+)")


def _is_newer(file: bytes, other: bytes) -> bool:
    """Return whether `file` was written after `other`; False if either is absent."""
    try:
        return stat_no_follow(file).st_mtime_ns > stat_no_follow(other).st_mtime_ns
    except OSError:
        return False
