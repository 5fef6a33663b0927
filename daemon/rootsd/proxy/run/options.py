"""Parse the arguments of `rootsd run`."""

from __future__ import annotations

import os
from enum import Enum

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.wall.session import options as confine_options
from rootsd.wall.session.options import (
    WALL_FLAGS,
    WALL_VALUES,
    ConfineOptions,
    ConfineUsageError,
)
from rootsd.wire.requested_scope import RequestedScope, parse_scope


class FlagSet(NamedTuple):
    """The flags of a command, beside those of the wall."""

    plain: frozenset[str]
    with_value: frozenset[str]


RUN_FLAGS = FlagSet(
    frozenset({"--workspace", "--all", "--advisory-access", "--keep-cwd", "--stay"}),
    frozenset({"--only", "--client-roots", "--env", "--name"}),
)
_CLIENT_ROOTS = ("auto", "narrow")
_CWD, _BELOW = "cwd", "cwd/"


class RunUsageError(RootsdError):
    """An error in the arguments of `rootsd run` or `acp`; the message names the argument."""

    code = ErrorCode.USAGE

    def __init__(self, message: str, remedy: str = "rootsd run --help") -> None:
        super().__init__(message, remedy)


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


class StartPolicy(Enum):
    """Where the server starts."""

    IN_A_ROOT = "in the working directory if a root contains it, else in the empty folder"
    HERE = "--keep-cwd"


class SessionServers(Enum):
    """How `rootsd acp` has an agent start the MCP servers of a session."""

    AS_GIVEN = "as the client says"
    WRAPPED = "--wrap-servers"


_CONFINE_FLAGS = {
    policy.value: policy for policy in (ConfinePolicy.CONFINE, ConfinePolicy.NO_CONFINE)
}


class MovePolicy(Enum):
    """What to do when the session moves to another folder."""

    FOLLOW = "follow it"
    STAY = "--stay"


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
    start: StartPolicy = StartPolicy.IN_A_ROOT
    moves: MovePolicy = MovePolicy.FOLLOW
    name: str = ""
    confine: ConfinePolicy = ConfinePolicy.CONFIGURED
    wall: ConfineOptions = ConfineOptions()
    wall_words: tuple[str, ...] = ()
    servers: SessionServers = SessionServers.AS_GIVEN

    @property
    def subfolder(self) -> str | None:
        """The folder below the working directory that holds all that the server gets."""
        below = (word.removeprefix(_BELOW) for word in self.only if word.startswith(_BELOW))
        return next(below, None)

    @property
    def follows(self) -> bool:
        """Whether the server moves with the session. Roots that the user names stay."""
        is_named = self.part is None and any(not _is_here(word) for word in self.only)
        return self.moves is MovePolicy.FOLLOW and not is_named


def parse_arguments(argv: list[str], flags: FlagSet = RUN_FLAGS) -> RunOptions:
    """Return the options in the arguments after `run`, or after a command with other `flags`.

    Raise RunUsageError.
    """
    options = RunOptions(())
    words = list(argv)
    wall_words: list[str] = []
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if not equals and flag in flags.plain:
            options = _with_plain(options, flag)
        elif not equals and flag in _CONFINE_FLAGS:
            options = _with_policy(options, _CONFINE_FLAGS[flag])
        elif not equals and flag in WALL_FLAGS:
            wall_words.append(flag)
        else:
            value = _value_of(flag, flags, value if equals else None, words)
            if flag in WALL_VALUES:
                wall_words += [flag, value]
            else:
                options = _with(options, flag, value)
    if not words:
        raise RunUsageError("no command was named; put it after --")
    _check_subfolders(options.only)
    if options.part is ScopeFlag.ALL and options.only:
        raise RunUsageError("--all and --only cannot be combined")
    if wall_words and options.confine is ConfinePolicy.NO_CONFINE:
        raise RunUsageError(f"{wall_words[0]} and --no-confine cannot be combined")
    return options._replace(
        words=tuple(words),
        wall=_wall_options(wall_words, words),
        wall_words=tuple(wall_words),
    )


def _value_of(flag: str, flags: FlagSet, value: str | None, words: list[str]) -> str:
    """Return the value of `flag`: the one after `=`, or else the next word, which it takes."""
    if flag not in flags.with_value and flag not in WALL_VALUES:
        from rootsd.core.suggestions import unknown_option  # noqa: PLC0415 - only after a mistake

        known = (*flags.plain, *flags.with_value, *_CONFINE_FLAGS, *WALL_FLAGS, *WALL_VALUES)
        raise RunUsageError(unknown_option(flag, known))
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
    if flag == StartPolicy.HERE.value:
        return options._replace(start=StartPolicy.HERE)
    if flag == SessionServers.WRAPPED.value:
        return options._replace(servers=SessionServers.WRAPPED)
    if flag == MovePolicy.STAY.value:
        return options._replace(moves=MovePolicy.STAY)
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


def _is_here(word: str) -> bool:
    return word == _CWD or word.startswith(_BELOW)


def _check_subfolders(words: tuple[str, ...]) -> None:
    """Raise RunUsageError unless at most one word names a folder below the working directory."""
    below = [word for word in words if word.startswith(_BELOW)]
    if below and len(words) > 1:
        raise RunUsageError(f"{below[0]} cannot be combined with another --only")
    if any(".." in word.split("/") for word in below):
        raise RunUsageError(f"{below[0]} must be below the working directory")


def scope_of(options: RunOptions) -> RequestedScope:
    """Return the scope that the flags ask for. Without a flag, it is the workspace."""
    try:
        only = (_CWD if _is_here(word) else word for word in options.only)
        scope = parse_scope(only, os.getcwd, any_uri=False)
        if options.part is ScopeFlag.WORKSPACE or not (options.only or options.part):
            scope = scope._replace(workspace=os.getcwd())
    except FileNotFoundError as error:
        raise RunUsageError("the working directory is gone", "cd") from error
    except ValueError as error:
        raise RunUsageError(str(error)) from error
    return scope
