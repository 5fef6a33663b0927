"""Parse the arguments of `rootsd bridge` and run the bridge.

Standard library only, one thread, and as few imports as can be: it starts once per client.
"""

from __future__ import annotations

import os
import sys

from rootsd.proxy.bridge.loop import BridgeProxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.wire.hello import Hello

EXIT_OK, EXIT_USAGE = 0, 2

USAGE = "usage: rootsd bridge [--only NAME|tag:T|cwd]... [--client NAME] [--any-uri]"


class BridgeUsageError(Exception):
    """The words after `bridge` cannot be used; the message says which."""


def main(argv: list[str]) -> int:
    """Run the bridge with the arguments after `bridge`; return the exit status."""
    try:
        greeting = parse_arguments(argv)
    except BridgeUsageError as error:
        sys.stderr.write(f"rootsd bridge: {error}\n{USAGE}\n")
        return EXIT_USAGE
    try:
        complaint = BridgeProxy(greeting).run()
    except BrokenPipeError:  # the client has closed our stdout: it has left
        return EXIT_OK
    if complaint is None:
        return EXIT_OK
    from rootsd.core.errors import exit_of  # noqa: PLC0415  # not needed when all goes well

    return exit_of(complaint.code)


def parse_arguments(argv: list[str]) -> Hello | None:
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
            raise BridgeUsageError(f"cannot use {flag!a}")
        if not equals and words:
            value = words.pop(0)
        if not value:
            raise BridgeUsageError(f"{flag} needs a value")
        if flag == "--only":
            only.append(value)
        else:
            client = value
    if not (client or any_uri or only):
        return None
    return _greeting(client, only, any_uri=any_uri)


def _greeting(client: str, only: list[str], *, any_uri: bool) -> Hello:
    # Importing json costs 7 ms.
    from rootsd.wire.hello import Hello, parse_scope  # noqa: PLC0415

    try:
        scope = parse_scope(only, os.getcwd, any_uri=any_uri)
    except FileNotFoundError as error:
        raise BridgeUsageError("--only cwd: the working directory is gone") from error
    except ValueError as error:
        raise BridgeUsageError(str(error)) from error
    return Hello(client=client, scope=scope)
