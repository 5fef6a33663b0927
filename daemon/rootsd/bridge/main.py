"""`rootsd bridge`: connects an MCP client's pipes to the daemon, whatever becomes of the daemon.

Standard library only, one thread, and as few imports as can be: it starts once per client.
"""

from __future__ import annotations

import os
import sys

from rootsd.bridge.pump import Pump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.wire.hello import Hello

EXIT_OK, EXIT_USAGE = 0, 2

USAGE = "usage: rootsd bridge [--only NAME|tag:T|cwd]... [--client NAME] [--any-uri]"


class UsageError(Exception):
    """The words after `bridge` cannot be used; the message says which."""


def main(argv: list[str]) -> int:
    """Run the bridge with the arguments after `bridge`; return the exit status."""
    try:
        greeting = greeting_of(argv)
    except UsageError as error:
        sys.stderr.write(f"rootsd bridge: {error}\n{USAGE}\n")
        return EXIT_USAGE
    try:
        complaint = Pump(greeting).run()
    except BrokenPipeError:  # the client has closed our stdout: it has left
        return EXIT_OK
    if complaint is None:
        return EXIT_OK
    from rootsd.core.exits import exit_of  # noqa: PLC0415  # not needed when all goes well

    return exit_of(complaint.code)


def greeting_of(argv: list[str]) -> Hello | None:
    """What to tell the daemon of this connection; None where there is nothing to tell.

    Raises UsageError.
    """
    client, any_uri, only = "", False, []
    words = list(argv)
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--any-uri" and not equals:
            any_uri = True
            continue
        if flag not in ("--only", "--client"):
            raise UsageError(f"cannot use {flag!a}")
        if not equals and words:
            value = words.pop(0)
        if not value:
            raise UsageError(f"{flag} needs a value")
        if flag == "--only":
            only.append(value)
        else:
            client = value
    if not (client or any_uri or only):
        return None
    return _greeting(client, only, any_uri=any_uri)


def _greeting(client: str, only: list[str], *, any_uri: bool) -> Hello:
    from rootsd.wire.hello import Hello, scope_of  # noqa: PLC0415  # json costs 7 ms

    try:
        scope = scope_of(only, os.getcwd, any_uri=any_uri)
    except FileNotFoundError as error:
        raise UsageError("--only cwd: the working directory is gone") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Hello(client=client, scope=scope)
