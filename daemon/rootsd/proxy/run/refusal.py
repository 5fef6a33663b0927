"""Tell a client why `rootsd run` starts no server.

A client shows the error in the answer to its first request. Without an answer, it would only say
that the connection was closed.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator

from rootsd.core.errors import RootsdError, exit_of
from rootsd.proxy.run.line_reader import BoundedLineReader, OversizedLine
from rootsd.proxy.run.options import RunUsageError
from rootsd.proxy.run.process import ServerStartFailed
from rootsd.proxy.stdio import STDIN, make_stdout_writer, read_stdin
from rootsd.wire.jsonrpc import Batch, Request, parse
from rootsd.wire.mcp_messages import encode_error

_FIRST_REQUEST_S = 2.0
"""How long to wait for a first request. A client sends one at once."""
_MAX_READ = 1 << 20


def report_error(error: RootsdError, verb: str = "rootsd run") -> None:
    """Print an error of a command to standard error, which its server shares."""
    sys.stderr.write(f"{verb}: {error.message}; try: {error.remedy}\n")


def refuse(error: RootsdError, verb: str) -> int:
    """Report why no program runs, also to the client. Return the exit status."""
    if isinstance(error, RunUsageError):
        error = RunUsageError(error.message, error.remedy.replace("rootsd run", verb))
    report_error(error, verb)
    if isinstance(error, ServerStartFailed):  # the proxy has told the client
        return error.status
    refuse_client(error)
    return exit_of(error.code)


def refuse_client(error: RootsdError) -> None:
    """Answer what the client has sent with `error`, or its first request if that is still to come.

    On a terminal, nobody waits for an answer.
    """
    if os.isatty(STDIN):
        return
    write, lines = make_stdout_writer(), BoundedLineReader(_MAX_READ)
    wait_s, taken = _FIRST_REQUEST_S, 0
    poll = select.poll()
    poll.register(STDIN, select.POLLIN)
    while taken < _MAX_READ and poll.poll(wait_s * 1000) and (data := read_stdin()):
        taken += len(data)
        for line in lines.feed(data):
            if isinstance(line, OversizedLine) or not (answer := _answer(line, error)):
                continue
            wait_s = 0.0
            try:
                write(answer)
            except BrokenPipeError:
                return


def _answer(line: bytes, error: RootsdError) -> bytes:
    message = parse(line)
    if isinstance(message, Batch):
        answers = [each for member in message.members for each in _answers(member, error)]
        return b"[" + b",".join(each.rstrip() for each in answers) + b"]\n" if answers else b""
    return b"".join(_answers(message, error))


def _answers(message: object, error: RootsdError) -> Iterator[bytes]:
    if isinstance(message, Request):
        yield encode_error(message.id, error)
