"""Locate the runtime folder and its two sockets.

The path depends only on the uid and the home folder. MCP clients start servers with only the
variables `HOME LOGNAME PATH SHELL TERM USER`. If the path depended on an XDG variable, such a
server would look in another folder than the daemon uses. HOME takes precedence over the password
database, as in most programs. This module imports little of the standard library, because the lean
programs import it at every start.
"""

from __future__ import annotations

import os
import stat
import sys

from rootsd.core.errors import ErrorCode, RootsdError

OVERRIDE = "ROOTSD_DIR"


class FolderUnavailable(RootsdError):
    """The environment names no usable folder."""

    code = ErrorCode.BAD_CONFIG


class RuntimeDir:
    """A runtime folder. `pub` and `ctl` are separate, so that a sandbox can expose only `pub`."""

    __slots__ = ("path",)

    def __init__(self, path: bytes) -> None:
        self.path = path

    @property
    def pub(self) -> bytes:
        """The folder of the read-only MCP socket."""
        return self.path + b"/pub"

    @property
    def ctl(self) -> bytes:
        """The folder of the control socket."""
        return self.path + b"/ctl"

    @property
    def mcp_socket(self) -> bytes:
        """The path of the MCP socket."""
        return self.pub + b"/mcp.sock"

    @property
    def control_socket(self) -> bytes:
        """The path of the control socket, for the command line."""
        return self.ctl + b"/control.sock"

    @property
    def prompt_file(self) -> bytes:
        """The path of the file for shell prompts: see `rootsd.daemon.prompt_file`."""
        return self.path + b"/prompt"


def find_runtime_dir() -> RuntimeDir:
    """Return the folder in which a daemon puts its sockets now. Raises FolderUnavailable."""
    return find_runtime_dirs()[0]


def find_runtime_dirs() -> tuple[RuntimeDir, ...]:
    """Return the folders in which a client looks for sockets, in order.

    A daemon uses the second folder if it started before /run/user/UID existed, or if a logout
    removed /run/user/UID. Raises FolderUnavailable.
    """
    if override := overriding_folder():
        return (RuntimeDir(override + b"/run"),)
    return usual_runtime_dirs()


def usual_runtime_dirs() -> tuple[RuntimeDir, ...]:
    """Return the folders in which a client without ROOTSD_DIR looks for sockets, in order.

    Raises FolderUnavailable.
    """
    if sys.platform == "darwin":
        return (RuntimeDir(home_folder() + b"/Library/Application Support/rootsd/run"),)
    fallback = RuntimeDir(home_folder() + b"/.local/state/rootsd/run")
    of_session = b"/run/user/%d" % os.getuid()
    if unsafe_reason(of_session) is None:
        return (RuntimeDir(of_session + b"/rootsd"), fallback)
    return (fallback,)


def overriding_folder() -> bytes | None:
    """Return the folder that ROOTSD_DIR names for all files, or None if it is not set.

    Raises FolderUnavailable if something else than a person could have put that folder there. One
    process asks that only once.
    """
    value = os.environb.get(OVERRIDE.encode(), b"")
    if not value:
        return None
    if not value.startswith(b"/"):
        # A relative path would mean a different daemon for each working directory.
        raise FolderUnavailable(
            f"{OVERRIDE} is not an absolute path", f"export {OVERRIDE}=/some/folder"
        )
    folder = value.rstrip(b"/") or b"/"
    if folder not in _usable:
        _ensure_usable(folder)
        _usable.add(folder)
    return folder


_usable: set[bytes] = set()


def _ensure_usable(folder: bytes) -> None:
    from rootsd.places import own_folder  # noqa: PLC0415 - not needed without the variable

    try:
        sockets = [usual.mcp_socket for usual in usual_runtime_dirs()]
    except FolderUnavailable:
        sockets = []
    if why := own_folder.why_unusable(folder, sockets, account_home()):
        shown = folder.decode(errors="backslashreplace")
        remedy = f"unset {OVERRIDE}, or set it to a folder of yours outside of all projects"
        raise FolderUnavailable(f"{OVERRIDE} is {shown}, which {why}", remedy)


def home_folder() -> bytes:
    """Return the home folder from HOME or the password database. Raises FolderUnavailable."""
    home = os.environb.get(b"HOME", b"")
    if not home.startswith(b"/"):
        home = account_home()
    if not home.startswith(b"/"):
        raise FolderUnavailable(
            "there is no home folder: HOME is not set", "export HOME=/your/home"
        )
    return home.rstrip(b"/") or b"/"


def account_home() -> bytes:
    """Return the home folder in the password database, or b"" if this user has none there.

    Whatever protects the machine or the user depends on this folder, because HOME is only a
    variable, which any program can set for the next one.
    """
    import pwd  # noqa: PLC0415 - rarely needed by lean programs, and 1 ms of every start

    try:
        home = os.fsencode(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return b""
    return home.rstrip(b"/") or b"/" if home.startswith(b"/") else b""


def unsafe_reason(folder: bytes) -> str | None:
    """Return why `folder` is not safe to use, or None if it is safe.

    The reason completes a sentence that begins with the path of the folder.
    """
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
