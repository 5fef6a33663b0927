"""Send one request to a socket of the daemon and return its answer.

Standard library only and no dataclasses: `rootsd check` runs at every shell prompt.
"""

from __future__ import annotations

import json
import os
import socket

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.link import connect, sandbox
from rootsd.places import runtime_dir

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

REQUEST_ID = 1
RESTART = "rootsd down && rootsd up"


class DaemonError(RootsdError):
    """An error that the daemon returned.

    `challenge` names the terminal on
    which the daemon showed a word that the person has to type. `unconfirmed` is true for an order
    about several projects that no person has confirmed.
    """

    challenge: dict[str, Any] | None = None
    unconfirmed = False

    def __init__(
        self, message: str, remedy: str, code: ErrorCode, typed: str, choices: list[str]
    ) -> None:
        super().__init__(message, remedy, typed=typed, choices=choices)
        self.code = code


class DaemonGone(connect.NotRunning):
    """No daemon is running, or it ended before it answered."""


def connect_control(timeout_s: float = connect.CONNECT_TIMEOUT_S) -> socket.socket:
    """Connect to the control socket of the daemon. Look for it in each runtime folder.

    Waits up to `timeout_s` seconds for a daemon whose backlog of connections is full.

    Raises InsideWall in a confined program, ControlSocketHidden in a sandbox without the socket,
    DaemonGone if no daemon is running, and what `connect` raises.
    """
    for folder in runtime_dir.find_runtime_dirs():
        try:
            return connect.connect(folder.control_socket, timeout_s=timeout_s)
        except (connect.NotRunning, connect.Sandboxed) as error:
            if os.environ.get(sandbox.CONFINED_VARIABLE):
                raise connect.InsideWall(
                    "this program is inside the wall, where rootsd shows and decides nothing",
                    "run it outside the wall, in your own terminal",
                ) from None
            if isinstance(error, connect.Sandboxed):
                raise
            if sandbox.sandbox_hides_control(folder):
                raise connect.ControlSocketHidden(
                    "this program runs in a sandbox that hides the control socket of rootsd",
                    "run it outside of the sandbox, in your own terminal",
                ) from None
    if sandbox.in_sandbox():
        raise DaemonGone(
            "this program runs in a sandbox, from which no daemon can be reached",
            "run it outside of the sandbox, in your own terminal",
        )
    raise DaemonGone("the daemon is not running", "rootsd up")


def ask(
    channel: socket.socket,
    method: str,
    params: Mapping[str, Any],
    on_progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Send one request and return its result.

    `on_progress` is called with the params of each `progress` notification.

    The timeout of `channel` applies to each line, and the daemon sends lines while it works on a
    long request. Raises DaemonError if the daemon returns an error, DaemonGone if it hangs up, and
    DaemonUnreachable if it does not answer in time or does not use this protocol.
    """
    request = {"jsonrpc": "2.0", "id": REQUEST_ID, "method": method, "params": params}
    try:
        channel.sendall(json.dumps(request).encode("ascii") + b"\n")
        with channel.makefile("rb") as lines:
            for line in lines:
                message = _message(line)
                if "id" not in message:
                    if on_progress is not None and message.get("method") == "progress":
                        on_progress(message.get("params", {}))
                    continue
                return _result(message)
    except TimeoutError as error:
        raise DaemonUnreachable("the daemon does not answer", RESTART) from error
    except OSError as error:
        raise _hung_up() from error
    raise _hung_up()


def _message(line: bytes) -> dict[str, Any]:
    """Parse a line as a response to our request or as a notification."""
    if not line.endswith(b"\n"):
        raise _hung_up()
    try:
        message = parse_json(line)
    except Unparsable as error:
        raise _protocol_error() from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _protocol_error()
    if "id" in message:
        ours = message["id"] in (REQUEST_ID, None)  # null: the daemon could not read our id
    else:
        ours = isinstance(message.get("params", {}), dict)
    if not ours:
        raise _protocol_error()
    return message


def _result(message: dict[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if isinstance(error, dict):
        raise _error(error)
    result = message.get("result")
    if not isinstance(result, dict):
        raise _protocol_error()
    return result


def _error(error: dict[str, Any]) -> DaemonError:
    data = error.get("data")
    if not isinstance(data, dict):
        data = {}
    try:
        code = ErrorCode(str(data.get("code", data.get("reason"))))  # `reason` on mcp.sock
    except ValueError:  # a code of a newer daemon
        code = ErrorCode.FAILED
    choices = data.get("choices")
    explained = DaemonError(
        str(error.get("message", "the daemon failed")),
        str(data.get("remedy") or ""),
        code,
        str(data.get("typed", "")),
        [str(choice) for choice in choices] if isinstance(choices, list) else [],
    )
    challenge = data.get("challenge")
    if isinstance(challenge, dict) and isinstance(challenge.get("terminal"), str):
        explained.challenge = challenge
    explained.unconfirmed = data.get("unconfirmed") is True
    return explained


def _hung_up() -> DaemonGone:
    return DaemonGone("the daemon hung up before it answered", "rootsd status")


def _protocol_error() -> DaemonUnreachable:
    return DaemonUnreachable(
        "the server on the control socket does not use the protocol of rootsd", RESTART
    )
