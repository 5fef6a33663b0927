"""Check one path, or count the pending projects, for shell prompts and scripts.

Shells run this at every prompt. So it is lean: the standard library only, no dataclasses, and one
request to the daemon.
"""

from __future__ import annotations

import os
import sys

from rootsd.core.errors import Exit, RootsdError, exit_of
from rootsd.link import connect, rpc

TYPE_CHECKING = False  # an import of typing would take a seventh of the whole run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rootsd.wire.projects import PathCheckResult

TIMEOUT_S = 10.0  # seconds; a daemon that hangs must not hang the prompt

_STATUS = {"pending": Exit.PENDING, "denied": Exit.DENIED}


def main(path: str, *, write: bool = False) -> int:
    """Return the exit status for `path`.

    It is 0 for a root, 3 for a pending or lapsed project, 4 for a denied one, 5 for an unknown
    path, 6 for a name of several projects, and 69 if no daemon answers.

    Print nothing, except for an error on standard error in the last two cases. With `write`, a
    read-only root counts as denied. In a sandbox that hides the control socket, ask the MCP
    socket. It can only tell 0 or 5 and, with `write`, 4 for a read-only root.
    """
    try:
        absolute, name = absolute_path(path), possible_name(path)
        asked = {"path": absolute} if name is None else {"path": absolute, "name": name}
        try:
            answer = _ask("check", asked)
        except connect.ControlSocketHidden:
            answer = check_in_sandbox(absolute, name)
    except RootsdError as error:
        return _failed(error)
    return status_of(answer, write=write)


def count_pending(*, exit_code: bool = False) -> int:
    """Print how many projects are pending. With `exit_code`, return 3 if there are any."""
    try:
        waiting = int(_ask("status", {})["counts"]["waiting"])
    except RootsdError as error:
        return _failed(error)
    sys.stdout.write(f"{waiting}\n")
    return Exit.PENDING if exit_code and waiting else Exit.OK


def status_of(checked: PathCheckResult | Mapping[str, Any], *, write: bool) -> Exit:
    """Return the exit status for the daemon's answer."""
    if checked["published"]:
        read_only = checked["access"] == "read"
        return Exit.DENIED if write and read_only else Exit.OK
    return _STATUS.get(checked["verdict"] or "", Exit.NOTHING_MATCHED)


def check_in_sandbox(absolute: str, name: str | None) -> dict[str, Any]:
    """Return the answer of the MCP socket, in the form of the daemon's other answer.

    A program in a sandbox learns only whether the path is in a root, or `name` is one's name. A
    published root that the sandbox does not show counts as none. Raises RootsdError.
    """
    from rootsd.link import resolve  # noqa: PLC0415 - only needed in a sandbox

    root = None if name is None else resolve.resolve_root({"name": name}, TIMEOUT_S)
    named = root
    if root is None:
        root = resolve.resolve_root({"path": absolute}, TIMEOUT_S)
    if root is None or (root["path"] is not None and not os.path.isdir(root["path"])):
        return {"published": False, "verdict": None, "root": None, "access": None}
    found = {
        "published": True, "verdict": "approved", "root": root["name"], "access": root["access"],
    }  # fmt: skip
    return found if named is None else {**found, "named_path": root["path"] or root["uri"]}


def possible_name(path: str) -> str | None:
    """Return `path` if it may be a name, an id, or a glob, and None if it is certainly a path.

    What exists is a path. So a project cannot take the place of a folder by its name.
    """
    is_glob = "*" in path or "?" in path or "[" in path
    if path in ("", ".") or path.startswith("./") or ".." in path.split("/") or "://" in path:
        return None
    if path.startswith("/") and not is_glob and "\\" not in path:
        return None
    return None if os.path.lexists(path) else path


def absolute_path(path: str) -> str:
    """Return `path` made absolute, and otherwise unchanged: the daemon resolves symlinks and `..`.

    A URI stays as it is. Bytes that are not UTF-8 become lone surrogates in every locale. Raise
    RootsdError if the working directory is gone.
    """
    if "://" in path:
        from rootsd.core.uris import looks_like_uri, path_of_file_uri  # noqa: PLC0415 - rarely needed

        if (named := path_of_file_uri(path)) is not None:
            return named.decode("utf-8", "surrogateescape")
        if looks_like_uri(path):
            return path
    try:
        absolute = os.fsencode(path) if os.path.isabs(path) else _below_cwd(path)
    except FileNotFoundError as error:
        raise RootsdError("the working directory is gone", "cd") from error
    return absolute.decode("utf-8", "surrogateescape")


def _below_cwd(path: str) -> bytes:
    return os.path.join(os.getcwdb(), os.fsencode(path))


def _ask(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    with rpc.connect_control() as channel:
        channel.settimeout(TIMEOUT_S)
        return rpc.ask(channel, method, params)


def _failed(error: RootsdError) -> int:
    sys.stderr.write(f"error: {error.sentence}\n")
    for choice in error.choices:
        sys.stderr.write(f"  {choice}\n")
    return exit_of(error.code)
