"""Parse the arguments of `rootsd bridge` and run the bridge.

The bridge starts once per client. So it has one thread, uses the standard library only, and
imports as little as possible.
"""

from __future__ import annotations

import os
import sys

from rootsd.processes.typed_input import explain_wait
from rootsd.proxy.bridge.loop import BridgeProxy
from rootsd.proxy.stdio import fill_closed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rootsd.wire.hello import Hello

EXIT_OK, EXIT_USAGE = 0, 2


class BridgeUsageError(Exception):
    """An error in the arguments of `rootsd bridge`; the message names the argument."""


def main(argv: list[str]) -> int:
    """Run the bridge with the arguments after `bridge`. Return the exit status."""
    fill_closed_files()
    try:
        greeting = parse_arguments(argv)
    except BridgeUsageError as error:
        sys.stderr.write(f"rootsd bridge: {error}; try: rootsd bridge --help\n")
        return EXIT_USAGE
    explain_wait("bridge", "an MCP client", "rootsd connect")
    try:
        failure = BridgeProxy(greeting).run()
    except BrokenPipeError:  # the client closed our standard output: it has left
        return EXIT_OK
    if failure is None:
        return EXIT_OK
    from rootsd.core.errors import exit_of  # noqa: PLC0415  # only needed after a failure

    return exit_of(failure.code)


def parse_arguments(argv: list[str]) -> Hello | None:
    """Return the hello for the daemon, or None if the arguments ask for nothing special.

    Raise BridgeUsageError.
    """
    client, any_uri, only = "", False, []
    words = list(argv)
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--any-uri" and not equals:
            any_uri = True
            continue
        if flag not in ("--only", "--client"):
            from rootsd.core.suggestions import unknown_option  # noqa: PLC0415 - after a mistake

            known = ("--any-uri", "--only", "--client")
            raise BridgeUsageError(unknown_option(flag, known))
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
    from rootsd.wire.hello import Hello  # noqa: PLC0415
    from rootsd.wire.requested_scope import parse_scope  # noqa: PLC0415

    try:
        scope = parse_scope(only, os.getcwd, any_uri=any_uri)
    except FileNotFoundError as error:
        raise BridgeUsageError("--only cwd: the working directory is gone") from error
    except ValueError as error:
        raise BridgeUsageError(str(error)) from error
    return Hello(client=client, scope=scope)
