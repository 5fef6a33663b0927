"""Name the reasons why discovery leaves a folder out."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ExclusionReason(StrEnum):
    """Why discovery does not see a folder, or does not propose it.

    * `HIDDEN`, `SKIPPED_NAME`: the name alone. A repository of such a name is found nevertheless.
    * `DISCARDED`: the name of a recycle bin, or of a folder that a file system or a NAS keeps.
    * `SKIP_SETTING`: the parent's `skip`.
    * `PARENT`: the folder is another parent, which has its own settings.
    """

    HIDDEN = "hidden"
    SKIPPED_NAME = "skipped name"
    DISCARDED = "recycle bin or snapshots"
    SKIP_SETTING = "skip setting"
    CACHE = "cache"
    MOUNT = "mount"
    REMOTE_MOUNT = "mount of another machine"
    PARENT = "another parent"
    DEPTH = "too deep"
    LINK = "symbolic link"
    IN_PROJECT = "in a project"
    UNREADABLE = "unreadable"
    UNRESPONSIVE = "file system does not respond"
    NO_FOLDER = "no folder"
    NO_MARKER = "no marker"
    OUTSIDE = "outside of the parents"

    @property
    def yields_to_a_repository(self) -> bool:
        """Whether a repository at this very folder is found nevertheless."""
        return self in (ExclusionReason.HIDDEN, ExclusionReason.SKIPPED_NAME)


class Exclusion(Struct, frozen=True):
    """Why discovery does not see a folder: `reason` applies to `at`, which contains the folder.

    * `other`: the target of a link, the parent with the setting that leaves `at` out, or the
      project that `at` is in. It is empty if there is none.
    * `levels`: the levels below the parent, for `ExclusionReason.DEPTH`.
    """

    reason: ExclusionReason
    at: bytes
    other: bytes = b""
    levels: int = 0
