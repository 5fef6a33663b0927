"""Build the parts of the proxy for one server, and run it."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import NamedTuple

from rootsd.core.errors import RootsdError
from rootsd.places import call_places
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.proxy.run import folder_check
from rootsd.proxy.run.command import ServerCommand, server_name
from rootsd.proxy.run.input_required import StateSigner
from rootsd.proxy.run.loop import RunProxy
from rootsd.proxy.run.options import ConfinePolicy, RunOptions
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.place import SessionPlace
from rootsd.proxy.run.process import ServerProcess
from rootsd.proxy.run.readiness import ReadinessGate
from rootsd.proxy.run.restart import RestartPolicy
from rootsd.proxy.run.roots import RootsFilter, RootsProvider
from rootsd.proxy.run.runtime_files import ServerProfileFile
from rootsd.proxy.run.session import RunSession
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope

_KEY_BYTES, _TAG_BYTES = 16, 4


class WallRequired(RootsdError):
    """An error: a wall is required, and none can be built. The server does not start.

    `requirement` says what requires it.
    """

    def __init__(self, error: RootsdError, requirement: str, remedy: str) -> None:
        super().__init__(f"{error.message}; {requirement}", remedy)
        self.code = error.code


class _Parts(NamedTuple):
    out: Outbox
    restart_policy: RestartPolicy
    provider: RootsProvider
    session: RunSession
    greeting: Hello


def run_proxy(
    options: RunOptions,
    scope: RequestedScope,
    command: ServerCommand,
    empty_folder: bytes | None,
    server: ServerProcess | None,
) -> int:
    """Run the proxy without a wall. Return the exit status of the server.

    `server` is the first server if it runs already. Raises ServerStartFailed.
    """
    parts = _parts(options, scope, command, empty_folder)
    proxy = RunProxy(
        parts.session, parts.out, parts.greeting, needs_roots=command.needs_roots, server=server
    )
    return proxy.run()


def run_confined(
    options: RunOptions,
    scope: RequestedScope,
    command: ServerCommand,
    empty_folder: bytes | None,
    requirement: str | None,
) -> int:
    """Run the proxy with its server behind a wall. Return the exit status of the server.

    `requirement` says why the machine's policy requires the wall. Raises RootsdError.
    """
    # Imported here, because a server without a wall should not wait for the engine to load.
    from rootsd.proxy.run.wall import ServerWall  # noqa: PLC0415
    from rootsd.wall.session.begin import CannotConfine  # noqa: PLC0415
    from rootsd.wall.session.built_wall import build_for_server  # noqa: PLC0415

    parts = _parts(options, scope, command, empty_folder)
    # The server must be able to open the folder that stands for "no roots".
    read = (
        options.wall.read
        if empty_folder is None
        else (*options.wall.read, os.fsdecode(empty_folder))
    )
    wall_options = options.wall._replace(
        name=parts.greeting.client, words=options.words, read=read
    )
    try:
        built = build_for_server(wall_options, scope, parts.provider.within)
    except RootsdError as error:
        if options.confine is ConfinePolicy.CONFINE:
            raise
        remedy = "rootsd doctor" if isinstance(error, CannotConfine) else error.remedy
        if requirement is not None:
            raise WallRequired(error, requirement, remedy) from error
        asked = "config.toml says [confine] default = true"
        way = f"{remedy}, or rootsd run --no-confine for this call"
        raise WallRequired(error, asked, way) from error
    for sentence in built.sentences():
        sys.stderr.write(f"rootsd run: {sentence}\n")
    with ServerWall(built) as wall:
        parts.restart_policy.wall_is_outdated = lambda: wall.is_outdated
        parts.provider.show_only = wall.show_only
        # The roots are known: the wall has been built with them.
        return RunProxy(parts.session, parts.out, wall, needs_roots=False).run()


def _parts(
    options: RunOptions,
    scope: RequestedScope,
    command: ServerCommand,
    empty_folder: bytes | None,
) -> _Parts:
    out = Outbox()
    roots_filter = RootsFilter(options.client_roots, options.access, _working_directory())
    below = None if options.subfolder is None else os.fsencode(options.subfolder)
    provider = RootsProvider(roots_filter, out, folder_check, empty_folder, below)
    profiles = ServerProfileFile(find_runtime_dir().path, options.words)
    gate = ReadinessGate(profiles.load(), profiles.save)
    restart_policy = RestartPolicy(command)
    signer = StateSigner(os.urandom(_KEY_BYTES), os.urandom(_TAG_BYTES).hex())
    take_note = partial(call_places.take_note, find_runtime_dir().path)
    place = None
    if options.follows:
        place = SessionPlace(provider, out, _working_directory(), take_note)
    session = RunSession(provider, restart_policy, gate, out, signer, place)
    greeting = Hello(client=options.name or server_name(options.words), scope=scope)
    return _Parts(out, restart_policy, provider, session, greeting)


def _working_directory() -> bytes | None:
    try:
        return os.getcwdb()
    except FileNotFoundError:
        return None
