"""Bazaar and Breezy. Source: traces of brz 3.3 at random moments of a branch or checkout."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.disk.reader import exists_no_follow, list_names
from rootsd.vcs.base import MarkedVcs, TemporaryFiles, data_folder, first_match
from rootsd.vcs.stages import Stage


class Bazaar(MarkedVcs):
    """A Bazaar branch or checkout.

    bzr writes history to `upload` and files to `limbo`, and holds a lock meanwhile.
    """

    kind = ProjectKind.BZR
    temporary_files = TemporaryFiles(frozenset((b"held", b"limbo", b"lock")))
    progress = (b"/.bzr", b"/.bzr/checkout", b"/.bzr/repository/upload")

    def stage(self, path: bytes) -> Stage | None:
        """Return the stage, from the locks and the two folders for unfinished work."""
        data = data_folder(path + b"/.bzr")
        names = list_names(data)
        if b"branch-format" not in names:
            return Stage.STARTING
        checkout = list_names(data + b"/checkout")
        if b"dirstate" in checkout and b"limbo" not in checkout:
            return Stage.CHECKOUT_LOCKED if list_names(data + b"/checkout/lock") else None
        if b"checkout" in names:
            return Stage.CHECKOUT_LOCKED
        if list_names(data + b"/repository/upload"):
            return Stage.FETCHING
        if b"branch" not in names and not exists_no_follow(data + b"/repository/shared-storage"):
            return Stage.STARTING
        # A shared repository, or a branch without files.
        return Stage.OTHER

    def origin(self, path: bytes) -> bytes | None:
        """Return the parent branch."""
        return first_match(
            path + b"/.bzr/branch/branch.conf", rb"parent_location[ \t]*=[ \t]*(.+)"
        )
