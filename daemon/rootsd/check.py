"""Where one path stands, told by the exit status; and how many projects wait, for shell prompts.

Run at every prompt, so this is lean: standard library only, no dataclasses, one round trip.
"""

from __future__ import annotations

import os
import sys

from rootsd.core.errors import Exit, RootsdError, exit_of
from rootsd.system.ipc import connect, rpc

TYPE_CHECKING = False  # importing typing for it would cost a seventh of the whole run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rootsd.wire.projects import PathCheckResult

TIMEOUT_S = 10.0  # seconds; a daemon that hangs must not hang the prompt

_STATUS = {"pending": Exit.PENDING, "denied": Exit.DENIED}


def main(path: str, *, write: bool = False) -> int:
    """Return whether `path` lies in a root: 0 yes, 3 pending or lapsed, 4 denied, 5 not known.

    Silent. With `write` a root that is to be read only counts as denied. In a sandbox that hides
    the control socket, the MCP socket answers: it says 0 or 5 and, with `write`, 4 for a root that
    is to be read only. Where no daemon answers: 69, and a line on standard error.
    """
    try:
        whole = absolute_path(path)
        try:
            answer = _ask("check", {"path": whole})
        except connect.ControlSocketHidden:
            from rootsd.system.ipc import resolve  # noqa: PLC0415 - only in a sandbox

            root = resolve.resolve_root(whole, TIMEOUT_S)
            if root is None:
                return Exit.NOTHING_MATCHED
            return Exit.DENIED if write and root["access"] == "read" else Exit.OK
    except RootsdError as error:
        return _failed(error)
    return status_of(answer, write=write)


def count_pending(*, exit_code: bool = False) -> int:
    """Print how many projects wait for a decision; with `exit_code` 3 if there are any."""
    try:
        waiting = int(_ask("status", {})["counts"]["waiting"])
    except RootsdError as error:
        return _failed(error)
    sys.stdout.write(f"{waiting}\n")
    return Exit.PENDING if exit_code and waiting else Exit.OK


def status_of(checked: PathCheckResult | Mapping[str, Any], *, write: bool) -> Exit:
    """The exit status that says what the daemon answered."""
    if checked["published"]:
        read_only = checked["access"] == "read"
        return Exit.DENIED if write and read_only else Exit.OK
    return _STATUS.get(checked["verdict"] or "", Exit.NOTHING_MATCHED)


def absolute_path(path: str) -> str:
    """`path` made absolute and not otherwise touched: the daemon follows symlinks and `..`. A URI
    stays as it is.

    Bytes that are not UTF-8 become lone surrogates, whatever the locale. Raises RootsdError
    where the working directory is gone.
    """
    if "://" in path:
        from rootsd.core.uris import looks_like_uri  # noqa: PLC0415 - few ask for one

        if looks_like_uri(path):
            return path
    try:
        whole = os.fsencode(path) if os.path.isabs(path) else _below_cwd(path)
    except FileNotFoundError as error:
        raise RootsdError("the working directory is gone", "cd") from error
    return whole.decode("utf-8", "surrogateescape")


def _below_cwd(path: str) -> bytes:
    return os.path.join(os.getcwdb(), os.fsencode(path))


def _ask(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    with rpc.connect_control() as channel:
        channel.settimeout(TIMEOUT_S)
        return rpc.ask(channel, method, params)


def _failed(error: RootsdError) -> int:
    remedy = f" (try: {error.remedy})" if error.remedy else ""
    sys.stderr.write(f"error: {error.message}{remedy}\n")
    return exit_of(error.code)
