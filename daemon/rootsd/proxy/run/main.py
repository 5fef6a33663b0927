"""Decide how `rootsd run` starts the MCP server, start it, and run the proxy in front of it.

This program starts once per server of each client. So it has one thread and uses the standard
library only.

A server without a wall, whose command and working directory do not depend on the roots, does not
depend on the daemon. Such a server is started as soon as the configuration allows it, and loads
its modules while this process loads the rest of its own. No message reaches it before that: its
pipes are in this process alone. If this process fails or is killed meanwhile, the server ends with
it (`rootsd.proxy.run.process`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.config.wall_default import config_file, confines_by_default
from rootsd.core.errors import RootsdError
from rootsd.core.paths import contains
from rootsd.link.sandbox import in_foreign_sandbox, is_inside_wall
from rootsd.places.runtime_dir import find_runtime_dir, home_folder
from rootsd.processes.typed_input import explain_wait
from rootsd.proxy.run.command import (
    NOT_IN_A_ROOT,
    PlaceholderError,
    ServerCommand,
    uses_working_directory,
)
from rootsd.proxy.run.options import (
    ConfinePolicy,
    RunOptions,
    RunUsageError,
    StartPolicy,
    parse_arguments,
    scope_of,
)
from rootsd.proxy.run.process import ServerProcess, ServerStartFailed
from rootsd.proxy.run.root_policies import AccessPolicy
from rootsd.proxy.run.runtime_files import make_empty_folder
from rootsd.proxy.stdio import fill_closed_files
from rootsd.wall.session.required_wall import RefusedByPolicy, refuse_opening
from rootsd.wire.requested_scope import RequestedScope

_SETTINGS_HIDDEN = (
    "this sandbox hides the configuration of rootsd, so [confine] default is not known, and the"
    " server is confined by this sandbox only"
)


def main(argv: list[str]) -> int:
    """Run the proxy with the arguments after `run`. Return the exit status of the server."""
    fill_closed_files()
    try:
        options = parse_arguments(argv)
        explain_wait("run", "an MCP client", "rootsd run --help")
        return _run(options, scope_of(options))
    except RootsdError as error:
        # Imported here, because it is rarely needed.
        from rootsd.proxy.run.refusal import refuse  # noqa: PLC0415

        return refuse(error, "rootsd run")


def _run(options: RunOptions, scope: RequestedScope) -> int:
    options, requirement = as_required(options)
    is_confined = confines(options)
    if is_confined:
        # The kernel keeps the server from writing to read-only roots, so it may have them.
        options = options._replace(access=AccessPolicy.ADVISORY)
    runtime_dir = find_runtime_dir().path
    empty_folder = make_empty_folder(runtime_dir)
    # If no empty folder can be made, a path that does not exist serves the command as well.
    command = _command(options, os.fsdecode(empty_folder or runtime_dir + b"/nowhere"))
    server = None if is_confined or command.needs_roots else _start_early(command)

    # Imported here, because the server loads at the same time.
    from rootsd.proxy.run import assembly  # noqa: PLC0415

    if is_confined:
        return assembly.run_confined(options, scope, command, empty_folder, requirement)
    return assembly.run_proxy(options, scope, command, empty_folder, server)


def _start_early(command: ServerCommand) -> ServerProcess | None:
    """Return the running server, or None if the proxy must start it later.

    That is so after an error. The proxy then tries again, and answers its client.
    """
    try:
        return ServerProcess(command.launch(()))
    except ServerStartFailed:
        return None


def as_required(options: RunOptions) -> tuple[RunOptions, str | None]:
    """Return the options with the wall that the policy requires, and why it does; None if not.

    Raises RefusedByPolicy for options that do without it, or open it.
    """
    requirement = None if is_inside_wall() else wall_requirement(POLICY_FILE)
    if requirement is None:
        return options, None
    if options.confine is ConfinePolicy.NO_CONFINE:
        raise RefusedByPolicy(f"{requirement}, so --no-confine is refused", "rootsd status")
    refuse_opening(options.wall, requirement)
    return options._replace(confine=ConfinePolicy.REQUIRED), requirement


def confines(options: RunOptions) -> bool:
    """Return whether to put the server behind a wall. Raises RunUsageError and RootsdError."""
    match options.confine:
        case ConfinePolicy.CONFINE | ConfinePolicy.REQUIRED:
            return True
        case ConfinePolicy.NO_CONFINE:
            return False
        case ConfinePolicy.CONFIGURED if confines_by_default():
            # Behind another wall, where no second one can be built, the server is confined by it.
            return not is_inside_wall()
        case ConfinePolicy.CONFIGURED:
            if options.wall_words:
                raise RunUsageError(f"{options.wall_words[0]} needs --confine")
            if in_foreign_sandbox() and not os.path.exists(config_file()):
                sys.stderr.write(f"rootsd run: {_SETTINGS_HIDDEN}\n")
            return False


def _command(options: RunOptions, empty_folder: str) -> ServerCommand:
    try:
        return ServerCommand(
            options.words, options.environment, empty_folder, _leaves_unless_in_root(options)
        )
    except PlaceholderError as error:
        raise RunUsageError(str(error)) from error


def _leaves_unless_in_root(options: RunOptions) -> bytes | None:
    """Return the working directory if the server may start there only in a root, else None."""
    if options.start is StartPolicy.HERE:
        return None
    values = [value for _, value in options.environment]
    try:
        here = os.getcwdb()
    except FileNotFoundError:
        return NOT_IN_A_ROOT
    if contains(here, home_folder()):
        return NOT_IN_A_ROOT if here == b"/" or not _is_used(options.words, values) else None
    return None if _is_used(options.words, values) else here


def _is_used(words: Sequence[str], values: Sequence[str]) -> bool:
    return uses_working_directory((*words, *values), os.path.exists)
