"""The user's settings for the wall. `rootsd.core.wall_view` computes the views."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from rootsd.core.quick_tuple import NamedTuple

WAITER_NAME = b"rootsd-wall"
"""The name of each wall's process outside that waits for its programs.

No program behind the wall can change it. So whoever looks at a process from outside can tell that
it is behind a wall.
"""


PROGRAM_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
"""The names of programs that a shell function can have, without quotes."""


class RevokePolicy(StrEnum):
    """What a warden does to a process that still has a file open in a removed root."""

    TELL = "tell"
    KILL = "kill"


class ProtectionPolicy(StrEnum):
    """Which files in a root are read-only inside, because something outside runs or obeys them."""

    ALL = "all"
    """Those of `UNTRACKED`, and those that git tracks. Then `git switch` cannot change them."""
    UNTRACKED = "untracked"
    """Git's own hooks and settings, and files of other tools that git does not track."""
    NONE = "none"


class PushPolicy(StrEnum):
    """Whether git inside may use the person's keys and passwords for the origins of the roots."""

    ASK = "ask"
    """Over ssh yes; each password and token only after a question on the terminal."""
    ALLOW = "allow"
    """Also passwords and tokens, without a question."""
    OFF = "off"


class WallEngine(StrEnum):
    """The mechanism that enforces a wall.

    NAMESPACES can change the view of a running program. STATIC uses only Landlock, so a change
    restarts the program.
    """

    NAMESPACES = "namespaces"
    STATIC = "static"


class WallUse(StrEnum):
    """What runs behind a wall.

    SERVER is the MCP server of a `rootsd run`, which is listed as a session, too.
    """

    PROGRAM = "program"
    SERVER = "server"


class WallSettings(NamedTuple):
    """The table `[confine]` of the configuration, also as the daemon sends it to a wall.

    Its paths are absolute there, and they may contain symlinks.
    """

    read: Annotated[tuple[bytes, ...], "Files and folders that programs may read."] = ()
    write: Annotated[
        tuple[bytes, ...], "Files and folders that programs may read and change."
    ] = ()
    keep: Annotated[
        tuple[bytes, ...],
        "Files and folders, such as the settings of an agent. Programs get a copy, one for each "
        "name, and keep their changes there.",
    ] = ()
    hide: Annotated[
        tuple[bytes, ...], "Files and folders to hide, even inside an approved root."
    ] = ()
    device: Annotated[
        tuple[bytes, ...],
        "Devices that programs may use, such as `/dev/kvm`. Disks, memory, keyboards, and "
        "terminals are refused.",
    ] = ()
    protect: Annotated[
        ProtectionPolicy,
        "Which files in a root are read-only, because they run later outside the wall: Git hooks, "
        "and such files of other tools that git does not track (`untracked`), also those that it "
        "tracks (`all`), or `none`.",
    ] = ProtectionPolicy.UNTRACKED
    network: Annotated[bool, "Whether programs may use the network."] = True
    push: Annotated[
        PushPolicy,
        "How Git inside reaches the origins of the roots. With `ask`, your ssh runs outside for "
        "these places only, and rootsd asks on the terminal before it gives a password or token "
        "for https. `allow` gives it without asking, and `off` does neither.",
    ] = PushPolicy.ASK
    on_revoke: Annotated[
        RevokePolicy,
        "What happens to a process that still has a file open in a folder that was taken away: "
        "`rootsd status` names it (`tell`), or it is ended (`kill`).",
    ] = RevokePolicy.TELL
    default: Annotated[
        bool,
        "Whether `rootsd run` confines its server without `--confine`. `--no-confine` turns it "
        "off for one call. Where the wall cannot work, the server does not start.",
    ] = False
    agents: Annotated[
        tuple[str, ...],
        "Programs that start behind the wall whenever you type their name, in shells with the "
        "line of `rootsd shell-init`. `rootsd connect --confine` adds one.",
    ] = ()


WALL_DEFAULTS = WallSettings()
