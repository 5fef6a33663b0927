"""Start an MCP server once, under `rootsd run`, and see whether it works.

A server works if it answers `initialize`, and `tools/list` if it has tools. What it prints on
standard error explains a failure.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.wall.kernel.probe import probe, problem_of

TIMEOUT_S = 60.0
_EXIT_S = 3.0
_CHUNK = 1 << 16
_MAX_BYTES = 16 << 20
_REASON_LIMIT = 160
_OWN, _OWN_LIMIT = "rootsd run: ", 10_000
_ERROR = re.compile(r"[\w.]*(?:Error|Exception)\b")
_INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "rootsd connect", "version": "1"},
    },
}  # fmt: skip
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST_TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def has_wall() -> bool:
    """Return whether this system can run a server behind the wall."""
    return problem_of(probe()) is None


class ServerBroken(Exception):
    """A server that does not work. The message is a clause that says why."""


def try_server(
    words: Sequence[str], variables: Mapping[str, str], folder: Path, timeout_s: float = TIMEOUT_S
) -> None:
    """Start the command `words` in `folder`, complete the handshake, and end it.

    Raises ServerBroken.
    """
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own server, no shell
                list(words), env=dict(variables), cwd=folder, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise ServerBroken(error.strerror or str(error)) from error
        try:
            _talk(process, time.monotonic() + timeout_s)
        except (ServerBroken, OSError) as error:
            _end(process)
            raise ServerBroken(_reason(messages) or str(error)) from error
        finally:
            _end(process)


def _talk(process: subprocess.Popen[bytes], deadline: float) -> None:
    lines = _Lines(process, deadline)
    lines.send(_INITIALIZE)
    result = lines.response(1)
    lines.send(_INITIALIZED)
    capabilities = result.get("capabilities")
    if isinstance(capabilities, dict) and "tools" in capabilities:
        lines.send(_LIST_TOOLS)
        lines.response(2)


class _Lines:
    """The messages to and from a server, with a deadline and a limit."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        if process.stdin is None or process.stdout is None:
            raise ServerBroken("it has no standard input or output")
        self._input, self._output = process.stdin, process.stdout
        self._deadline = deadline
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def send(self, message: Mapping[str, object]) -> None:
        with suppress(BrokenPipeError):  # the next response says that the server ended
            self._input.write(json.dumps(message).encode() + b"\n")

    def response(self, number: int) -> dict[str, Any]:
        """Return the result of the request `number`. Raises ServerBroken."""
        read = 0
        while True:
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                match _message(line):
                    case {"id": found, "result": dict(result)} if found == number:
                        return result
                    case {"id": found, "error": error} if found == number:
                        text = error.get("message", "") if isinstance(error, dict) else ""
                        raise ServerBroken(safe_label(str(text), _REASON_LIMIT))
            chunk = self._read()
            read += len(chunk)
            self._buffer += chunk
            if read > _MAX_BYTES:
                raise ServerBroken("it sends too much")

    def _read(self) -> bytes:
        if not self._selector.select(max(0.0, self._deadline - time.monotonic())):
            raise ServerBroken("it did not answer in time")
        chunk = os.read(self._output.fileno(), _CHUNK)
        if not chunk:
            raise ServerBroken("it ended before it answered")
        return chunk


def _message(line: bytes) -> object:
    try:
        return parse_json(line)
    except Unparsable:
        return None  # some servers print other text, too


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process by the end of its input, else by signals to its process group."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_S)
            return


def _reason(messages: IO[bytes]) -> str:
    """Return the last line on standard error that names an error, else the last line.

    Node prints its version after the error.
    """
    size = messages.seek(0, os.SEEK_END)
    messages.seek(max(0, size - _CHUNK))
    lines = messages.read().decode("utf-8", "replace").strip().splitlines()
    named = [line for line in lines if _ERROR.match(line)]
    if not lines:
        return ""
    line = (named or lines)[-1].strip()
    # What rootsd itself prints has a path to copy.
    return safe_label(line, _OWN_LIMIT if line.startswith(_OWN) else _REASON_LIMIT)
