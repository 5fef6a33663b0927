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
from rootsd.proxy.confine import options as confine_options
from rootsd.proxy.confine.options import (
    WALL_FLAGS,
    WALL_USAGE,
    WALL_VALUES,
    ConfineOptions,
    ConfineUsageError,
)
from rootsd.proxy.confine.required_wall import RefusedByPolicy, refuse_opening
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
from rootsd.system.confine_default import config_file, confines_by_default
from rootsd.system.ipc.connect import in_foreign_sandbox, is_inside_wall
from rootsd.system.policy_file import POLICY_FILE, wall_requirement
from rootsd.system.runtime_dir import find_runtime_dir
from rootsd.wire.hello import Hello, RequestedScope, parse_scope

USAGE = (
    "usage: rootsd run [--workspace | --all | --only NAME|tag:T|focus|cwd...]"
    " [--client-roots auto|narrow|override] [--advisory-access] [--env NAME=VALUE]..."
    f" [--name NAME] [--no-confine | --confine {WALL_USAGE}] -- SERVER [ARGUMENT]..."
)
_KEY_BYTES = 16
_SETTINGS_HIDDEN = (
    "this sandbox hides the configuration of rootsd, so [confine] default is not known, and the"
    " server is confined by this sandbox only"
)
_PLAIN = frozenset({"--workspace", "--all", "--advisory-access"})
_WITH_VALUE = frozenset({"--only", "--client-roots", "--env", "--name"})
_CLIENT_ROOTS = ("auto", "narrow", "override")


class RunUsageError(Exception):
    """An error in the arguments of `rootsd run`; the message names the argument."""


class WallRequired(RootsdError):
    """An error: a wall is required, and none can be built. The server does not start.

    `requirement` says what requires it.
    """

    def __init__(self, error: RootsdError, requirement: str, remedy: str) -> None:
        super().__init__(f"{error.message}; {requirement}", remedy)
        self.code = error.code


class ScopeFlag(Enum):
    """The part of the approved roots that the server gets, besides those that `--only` names."""

    WORKSPACE = "--workspace"
    ALL = "--all"


class ConfinePolicy(Enum):
    """Whether to put the server behind the wall."""

    CONFIGURED = "as config.toml says"
    CONFINE = "--confine"
    NO_CONFINE = "--no-confine"
    REQUIRED = "as the machine's policy says"


_CONFINE_FLAGS = {
    policy.value: policy for policy in (ConfinePolicy.CONFINE, ConfinePolicy.NO_CONFINE)
}


class RunOptions(NamedTuple):
    """The command to run and its options, as typed. `part` is None if no flag names one.

    `wall` are the options of the wall, without the command, and `wall_words` their words.
    """

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    part: ScopeFlag | None = None
    client_roots: ClientRootsPolicy = ClientRootsPolicy.REPORT
    access: AccessPolicy = AccessPolicy.WRITABLE
    name: str = ""
    confine: ConfinePolicy = ConfinePolicy.CONFIGURED
    wall: ConfineOptions = ConfineOptions()
    wall_words: tuple[str, ...] = ()


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
    wall_words: list[str] = []
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if not equals and flag in _PLAIN:
            options = _with_plain(options, flag)
        elif not equals and flag in _CONFINE_FLAGS:
            options = _with_policy(options, _CONFINE_FLAGS[flag])
        elif not equals and flag in WALL_FLAGS:
            wall_words.append(flag)
        else:
            value = _value_of(flag, value if equals else None, words)
            if flag in WALL_VALUES:
                wall_words += [flag, value]
            else:
                options = _with(options, flag, value)
    if not words:
        raise RunUsageError("no server command; put it after --")
    if options.part is ScopeFlag.ALL and options.only:
        raise RunUsageError("--all and --only cannot be combined")
    if wall_words and options.confine is ConfinePolicy.NO_CONFINE:
        raise RunUsageError(f"{wall_words[0]} and --no-confine cannot be combined")
    return options._replace(
        words=tuple(words),
        wall=_wall_options(wall_words, words),
        wall_words=tuple(wall_words),
    )


def _value_of(flag: str, value: str | None, words: list[str]) -> str:
    """Return the value of `flag`: the one after `=`, or else the next word, which it takes."""
    if flag not in _WITH_VALUE and flag not in WALL_VALUES:
        raise RunUsageError(f"unknown argument {flag!a}")
    if value is None and words:
        value = words.pop(0)
    if not value:
        raise RunUsageError(f"{flag} needs a value")
    return value


def _wall_options(wall_words: list[str], words: list[str]) -> ConfineOptions:
    try:
        parsed = confine_options.parse_arguments([*wall_words, "--", *words])
    except ConfineUsageError as error:
        raise RunUsageError(str(error)) from error
    return parsed._replace(words=())


def _with_policy(options: RunOptions, policy: ConfinePolicy) -> RunOptions:
    if options.confine not in (ConfinePolicy.CONFIGURED, policy):
        raise RunUsageError("--confine and --no-confine cannot be combined")
    return options._replace(confine=policy)


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
    requirement = None if is_inside_wall() else wall_requirement(POLICY_FILE)
    if requirement is not None:
        options = _as_required(options, requirement)
    confines = _confines(options)
    if confines:
        # The kernel keeps the server from writing to read-only roots, so it may have them.
        options = options._replace(access=AccessPolicy.ADVISORY)
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
    restart_policy = RestartPolicy(command)
    session = RunSession(provider, restart_policy, gate, out, signer)
    name = options.name or server_name(options.words)
    greeting = Hello(client=name, scope=scope)
    needs_roots = command.names_roots
    if not confines:
        return RunProxy(session, out, greeting, needs_roots=needs_roots).run()

    # Imported here, because a server without a wall should not wait for the engine to load.
    from rootsd.proxy.confine.engines import CannotConfine  # noqa: PLC0415
    from rootsd.proxy.confine.main import build_owned_wall  # noqa: PLC0415
    from rootsd.proxy.run.wall import ServerWall  # noqa: PLC0415

    # The server must be able to open the folder that stands for "no roots".
    read = options.wall.read if empty_folder is None else (*options.wall.read, named)
    wall_options = options.wall._replace(name=name, words=options.words, read=read)
    try:
        owned = build_owned_wall(wall_options, scope)
    except RootsdError as error:
        if options.confine is ConfinePolicy.CONFINE:
            raise
        remedy = "rootsd doctor" if isinstance(error, CannotConfine) else error.remedy
        if requirement is not None:
            raise WallRequired(error, requirement, remedy) from error
        asked = "config.toml says [confine] default = true"
        way = f"{remedy}, or rootsd run --no-confine for this call"
        raise WallRequired(error, asked, way) from error
    for sentence in owned.sentences():
        sys.stderr.write(f"rootsd run: {sentence}\n")
    # The session begins once: with two starts, an approval in between would be in one of them.
    greeting = greeting._replace(scope=scope._replace(start=owned.subscription.start))
    with ServerWall(owned) as wall:
        restart_policy.wall_is_outdated = lambda: wall.is_outdated
        return RunProxy(session, out, greeting, needs_roots=needs_roots, wall=wall).run()


def _as_required(options: RunOptions, requirement: str) -> RunOptions:
    """Return the options with the wall that the policy requires.

    Raises RefusedByPolicy for options that do without it, or open it.
    """
    if options.confine is ConfinePolicy.NO_CONFINE:
        raise RefusedByPolicy(f"{requirement}, so --no-confine is refused", "rootsd status")
    refuse_opening(options.wall, requirement)
    return options._replace(confine=ConfinePolicy.REQUIRED)


def _confines(options: RunOptions) -> bool:
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
        return ServerCommand(options.words, options.environment, empty_folder)
    except PlaceholderError as error:
        raise RunUsageError(str(error)) from error


def _working_directory() -> bytes | None:
    try:
        return os.getcwdb()
    except FileNotFoundError:
        return None
