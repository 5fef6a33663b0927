"""Parse the arguments of `rootsd run`, start the MCP server, and give it the approved roots.

This program starts once per server of each client. So it has one thread and uses the standard
library only.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import NamedTuple

from rootsd.core.errors import Exit, RootsdError, exit_of
from rootsd.proxy.run import folder_check
from rootsd.proxy.run.command import PlaceholderError, ServerCommand, server_name
from rootsd.proxy.run.input_required import StateSigner
from rootsd.proxy.run.loop import RunProxy
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.process import ServerStartFailed
from rootsd.proxy.run.readiness import ReadinessGate
from rootsd.proxy.run.restart import RestartPolicy
from rootsd.proxy.run.roots import AccessPolicy, ClientRootsPolicy, RootsFilter, RootsProvider
from rootsd.proxy.run.roots_feed import report_error
from rootsd.proxy.run.runtime_files import ServerProfileFile, make_empty_folder
from rootsd.proxy.run.session import RunSession
from rootsd.system.runtime_dir import find_runtime_dir
from rootsd.wire.hello import Hello, RequestedScope, parse_scope

USAGE = (
    "usage: rootsd run [--workspace | --all | --only NAME|tag:T|cwd...]"
    " [--client-roots auto|narrow|override] [--advisory-access] [--env NAME=VALUE]..."
    " [--name NAME] -- SERVER [ARGUMENT]..."
)
_KEY_BYTES = 16
_PLAIN = frozenset({"--workspace", "--all", "--advisory-access"})
_WITH_VALUE = frozenset({"--only", "--client-roots", "--env", "--name"})
_CLIENT_ROOTS = ("auto", "narrow", "override")


class RunUsageError(Exception):
    """An error in the arguments of `rootsd run`; the message names the argument."""


class ScopeFlag(Enum):
    """The part of the approved roots that the server gets, besides those that `--only` names."""

    WORKSPACE = "--workspace"
    ALL = "--all"


class RunOptions(NamedTuple):
    """The command to run and its options, as typed. `part` is None if no flag names one."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    part: ScopeFlag | None = None
    client_roots: ClientRootsPolicy = ClientRootsPolicy.REPORT
    access: AccessPolicy = AccessPolicy.WRITABLE
    name: str = ""


def main(argv: list[str]) -> int:
    """Run the proxy with the arguments after `run`. Return the exit status of the server."""
    if argv[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return Exit.OK
    try:
        options = parse_arguments(argv)
        return _run(options, _scope_of(options))
    except RunUsageError as error:
        sys.stderr.write(f"rootsd run: {error}\n{USAGE}\n")
        return Exit.USAGE
    except ServerStartFailed as error:
        report_error(error)
        return error.status
    except RootsdError as error:
        report_error(error)
        return exit_of(error.code)


def parse_arguments(argv: list[str]) -> RunOptions:
    """Return the options in the arguments after `run`. Raise RunUsageError."""
    options = RunOptions(())
    words = list(argv)
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if not equals and flag in _PLAIN:
            options = _with_plain(options, flag)
            continue
        if flag not in _WITH_VALUE:
            raise RunUsageError(f"unknown argument {flag!a}")
        if not equals and words:
            value = words.pop(0)
        if not value:
            raise RunUsageError(f"{flag} needs a value")
        options = _with(options, flag, value)
    if not words:
        raise RunUsageError("no server command; put it after --")
    if options.part is ScopeFlag.ALL and options.only:
        raise RunUsageError("--all and --only cannot be combined")
    return options._replace(words=tuple(words))


def _with_plain(options: RunOptions, flag: str) -> RunOptions:
    if flag == "--advisory-access":
        return options._replace(access=AccessPolicy.ADVISORY)
    part = ScopeFlag(flag)
    if options.part not in (None, part):
        raise RunUsageError("--all and --workspace cannot be combined")
    return options._replace(part=part)


def _with(options: RunOptions, flag: str, value: str) -> RunOptions:
    match flag:
        case "--only":
            return options._replace(only=(*options.only, value))
        case "--name":
            return options._replace(name=value)
        case "--env":
            name, equals, text = value.partition("=")
            if not name or not equals:
                raise RunUsageError("--env needs NAME=VALUE")
            return options._replace(environment=(*options.environment, (name, text)))
        case _:
            if value not in _CLIENT_ROOTS:
                raise RunUsageError(f"--client-roots must be one of {', '.join(_CLIENT_ROOTS)}")
            return options._replace(client_roots=ClientRootsPolicy(value))


def _scope_of(options: RunOptions) -> RequestedScope:
    """Return the scope that the flags ask for. Without a flag, it is the workspace.

    `--client-roots override` is the old flag for all approved roots.
    """
    try:
        scope = parse_scope(options.only, os.getcwd, any_uri=False)
        asks_for_all = (
            options.part is ScopeFlag.ALL or options.client_roots is ClientRootsPolicy.OVERRIDE
        )
        if options.part is ScopeFlag.WORKSPACE or not (options.only or asks_for_all):
            scope = scope._replace(workspace=os.getcwd())
    except FileNotFoundError as error:
        raise RunUsageError("the working directory is gone; try: --all or --only NAME") from error
    except ValueError as error:
        raise RunUsageError(str(error)) from error
    return scope


def _run(options: RunOptions, scope: RequestedScope) -> int:
    runtime_dir = find_runtime_dir().path
    empty_folder = make_empty_folder(runtime_dir)
    # If no empty folder can be made, a path that does not exist serves the command as well.
    named = os.fsdecode(empty_folder or runtime_dir + b"/nowhere")
    command = _command(options, named)
    out = Outbox()
    roots_filter = RootsFilter(options.client_roots, options.access, _working_directory())
    provider = RootsProvider(roots_filter, out, folder_check, empty_folder)
    profiles = ServerProfileFile(runtime_dir, options.words)
    gate = ReadinessGate(profiles.load(), profiles.save)
    signer = StateSigner(os.urandom(_KEY_BYTES))
    session = RunSession(provider, RestartPolicy(command), gate, out, signer)
    greeting = Hello(client=options.name or server_name(options.words), scope=scope)
    return RunProxy(session, out, greeting, needs_roots=command.names_roots).run()


def _command(options: RunOptions, empty_folder: str) -> ServerCommand:
    try:
        return ServerCommand(options.words, options.environment, empty_folder)
    except PlaceholderError as error:
        raise RunUsageError(str(error)) from error


def _working_directory() -> bytes | None:
    try:
        return os.getcwdb()
    except FileNotFoundError:
        return None
