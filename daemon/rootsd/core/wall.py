"""The user's settings of the wall, and the words that they use.

This module is small and has no dataclasses, because every command imports it.
`rootsd.core.wall_view` computes the views.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class RevokePolicy(StrEnum):
    """What a warden does to a process that still has a file open in a removed root."""

    TELL = "tell"
    KILL = "kill"


class WallEngine(StrEnum):
    """The mechanism that enforces a wall.

    NAMESPACES changes the view of a running program. STATIC uses Landlock alone, and a change
    restarts the program.
    """

    NAMESPACES = "namespaces"
    STATIC = "static"


class WallSettings(NamedTuple):
    """The user's settings of the wall. All paths are absolute; they may contain symlinks.

    * `read`, `write`: more files that programs may read, or also change.
    * `keep`: files of which each program gets a lasting copy of its own.
    * `hide`: files that no program sees, even inside a root.
    * `protect`: whether the files of a root that run later outside the wall are read-only.
    * `default`: whether `rootsd run` confines its server without being asked.
    """

    read: tuple[bytes, ...] = ()
    write: tuple[bytes, ...] = ()
    keep: tuple[bytes, ...] = ()
    hide: tuple[bytes, ...] = ()
    protect: bool = True
    network: bool = True
    on_revoke: RevokePolicy = RevokePolicy.TELL
    default: bool = False


WALL_DEFAULTS = WallSettings()
