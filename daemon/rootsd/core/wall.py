"""The user's settings for the wall.

This module is small and has no dataclasses, because every command imports it.
`rootsd.core.wall_view` computes the views.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

WAITER_NAME = b"rootsd-wall"
"""The name of each wall's process outside that waits for its programs.

No program behind the wall can change it. So whoever looks at a process from outside can tell that
it is behind a wall.
"""


class RevokePolicy(StrEnum):
    """What a warden does to a process that still has a file open in a removed root."""

    TELL = "tell"
    KILL = "kill"


class WallEngine(StrEnum):
    """The mechanism that enforces a wall.

    NAMESPACES can change the view of a running program. STATIC uses only Landlock, so a change
    restarts the program.
    """

    NAMESPACES = "namespaces"
    STATIC = "static"


class WallSettings(NamedTuple):
    """The user's settings for the wall. All paths are absolute; they may contain symlinks.

    * `read`, `write`: additional files that programs may read, or read and change.
    * `keep`: files of which each program has its own copy, which is kept.
    * `hide`: files that no program sees, even inside a root.
    * `protect`: whether files in a root that run later, outside the wall, are read-only.
    * `network`: whether programs may use the network.
    * `on_revoke`: what to do with programs that still use a removed root.
    * `default`: whether `rootsd run` confines every server.
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
