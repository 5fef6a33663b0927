"""Locate the runtime folder and its two sockets.

A rule of our own, from uid and home: MCP clients start servers with `HOME LOGNAME PATH SHELL TERM
USER` and nothing more, so a rule that reads an XDG variable finds two places for one daemon. HOME
comes before the password database, as in every program that a person points at another home.
Standard library only, and little of it: the lean programs import this at every start.
"""

from __future__ import annotations

import os
import stat
import sys

from rootsd.core.errors import ErrorCode, RootsdError

OVERRIDE = "ROOTSD_DIR"


class FolderUnavailable(RootsdError):
    """The environment names no folder that can be used."""

    code = ErrorCode.BAD_CONFIG


class RuntimeDir:
    """A runtime folder. `pub` and `ctl` are apart so that a sandbox can be given `pub` alone."""

    __slots__ = ("path",)

    def __init__(self, path: bytes) -> None:
        self.path = path

    @property
    def pub(self) -> bytes:
        """The folder of the socket that only reads."""
        return self.path + b"/pub"

    @property
    def ctl(self) -> bytes:
        """The folder of the socket that takes orders."""
        return self.path + b"/ctl"

    @property
    def mcp_socket(self) -> bytes:
        """Where MCP is spoken."""
        return self.pub + b"/mcp.sock"

    @property
    def control_socket(self) -> bytes:
        """Where the command line speaks."""
        return self.ctl + b"/control.sock"


def find_runtime_dir() -> RuntimeDir:
    """Where a daemon that starts now puts its sockets. Raises NoPlace."""
    return find_runtime_dirs()[0]


def find_runtime_dirs() -> tuple[RuntimeDir, ...]:
    """Where a client looks, in this order: a daemon whose /run/user vanished at a logout, or that
    started before it was there, sits in the second. Raises NoPlace."""
    if override := overriding_folder():
        return (RuntimeDir(override + b"/run"),)
    if sys.platform == "darwin":
        return (RuntimeDir(home_folder() + b"/Library/Application Support/rootsd/run"),)
    fallback = RuntimeDir(home_folder() + b"/.local/state/rootsd/run")
    of_session = b"/run/user/%d" % os.getuid()
    if unsafe_reason(of_session) is None:
        return (RuntimeDir(of_session + b"/rootsd"), fallback)
    return (fallback,)


def overriding_folder() -> bytes | None:
    """The folder that ROOTSD_DIR names, which then holds everything; None where it is not set."""
    value = os.environb.get(OVERRIDE.encode(), b"")
    if not value:
        return None
    if not value.startswith(b"/"):
        # A relative path would mean another daemon in each folder that a client starts in.
        raise FolderUnavailable(
            f"{OVERRIDE} is not an absolute path", f"export {OVERRIDE}=/some/folder"
        )
    return value.rstrip(b"/") or b"/"


def home_folder() -> bytes:
    """The user's home, from HOME, else from the password database. Raises NoPlace."""
    home = os.environb.get(b"HOME", b"")
    if not home.startswith(b"/"):
        import pwd  # noqa: PLC0415  # rarely needed, and 1 ms of every start

        try:
            home = os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            home = b""
    if not home.startswith(b"/"):
        raise FolderUnavailable(
            "there is no home folder: HOME is not set", "export HOME=/your/home"
        )
    return home.rstrip(b"/") or b"/"


def unsafe_reason(folder: bytes) -> str | None:
    """What keeps `folder` from being trusted, to follow its name; None where nothing does."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.getuid():
        return f"belongs to user {found.st_uid}, not to you"
    if found.st_mode & 0o077:
        return "is open to other users"
    return None
