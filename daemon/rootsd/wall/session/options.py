"""Parse the arguments of `rootsd confine`."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.quick_tuple import NamedTuple
from rootsd.core.wall import PushPolicy, RevokePolicy
from rootsd.wire.requested_scope import RequestedScope, parse_scope


class ConfineUsageError(RootsdError):
    """An error in the arguments of `rootsd confine`; the message names the argument."""

    code = ErrorCode.USAGE

    def __init__(self, message: str, remedy: str = "rootsd confine --help") -> None:
        super().__init__(message, remedy)


class Opening(Enum):
    """A flag without a value: it opens something, selects the engine, or says what to print."""

    ALL = "--all"
    NO_NETWORK = "--no-network"
    SSH_AGENT = "--ssh-agent"
    GPG = "--gpg"
    GH = "--gh"
    DOCKER = "--docker"
    WORKTREES = "--worktrees"
    NESTED = "--nested"
    PROTECT = "--protect"
    NO_PROTECT = "--no-protect"
    STATIC = "--static"
    SHOW = "--show"
    QUIET = "--quiet"
    NO_INPUT = "--no-input"
    SUBFOLDER = "--subfolder"


class ConfineOptions(NamedTuple):
    """The program and the options, as typed. What no flag gives is None."""

    words: tuple[str, ...] = ()
    flags: frozenset[Opening] = frozenset()
    only: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    on_revoke: RevokePolicy | None = None
    push: PushPolicy | None = None
    name: str = ""

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the roots that `--add` adds, which may be joined by commas."""
        return tuple(name for word in self.add for name in word.split(",") if name)

    @property
    def label(self) -> str:
        """The name of the confined program for people, and for what it keeps."""
        return self.name or os.path.basename(self.words[0] if self.words else "") or "program"


LISTS = {
    "--only": "only",
    "--add": "add",
    "--tag": "tag",
    "--read": "read",
    "--write": "write",
    "--keep": "keep",
    "--hide": "hide",
    "--device": "device",
}
_FLAGS = {flag.value: flag for flag in Opening}
_OWN = (
    "--all",
    "--only",
    "--add",
    "--tag",
    "--subfolder",
    "--name",
    "--show",
    "--quiet",
    "--no-input",
)
"""The flags that `rootsd run` lacks, or gives to its proxy."""
_WITHOUT_EFFECT = ("-v", "--verbose", "--no-color", "--no-pager")
WALL_FLAGS = tuple(flag for flag in _FLAGS if flag not in _OWN)
_CHOICES: dict[str, type[RevokePolicy | PushPolicy]] = {
    "--on-revoke": RevokePolicy,
    "--push": PushPolicy,
}
WALL_VALUES = (*(flag for flag in LISTS if flag not in _OWN), *_CHOICES)


_NO_SOCKETS = "it refuses all sockets of programs outside"
_NOT_STATIC = {
    Opening.PROTECT: "it leaves all files in a root writable",
    Opening.NESTED: "programs may make their own sandbox of Landlock anyway",
    Opening.SSH_AGENT: _NO_SOCKETS,
    Opening.GPG: _NO_SOCKETS,
    Opening.DOCKER: _NO_SOCKETS,
    Opening.WORKTREES: "it cannot show a folder to a running program",
}


def parse_arguments(argv: list[str]) -> ConfineOptions:
    """Return the options in the arguments after `confine`. Raises ConfineUsageError."""
    options = ConfineOptions()
    words = list(argv)
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        flag = "--quiet" if flag == "-q" else flag
        if flag == "--" and not equals:
            break
        if flag in _WITHOUT_EFFECT and not equals:
            continue
        if flag in _FLAGS and not equals:
            options = options._replace(flags=options.flags | {_FLAGS[flag]})
            continue
        if flag not in LISTS and flag not in (*_CHOICES, "--name"):
            from rootsd.core.suggestions import unknown_option  # noqa: PLC0415 - after a mistake

            known = (*_FLAGS, *LISTS, *_CHOICES, "--name")
            raise ConfineUsageError(unknown_option(flag, known))
        if not equals and words:
            value = words.pop(0)
        if not value:
            raise ConfineUsageError(f"{flag} needs a value")
        options = _with_value(options, flag, value)
    if not words and Opening.SHOW not in options.flags:
        raise ConfineUsageError("no program was named", "rootsd confine -- claude")
    _check_combination(options)
    return options._replace(words=tuple(words))


def _check_combination(options: ConfineOptions) -> None:
    if Opening.ALL in options.flags and options.only:
        raise ConfineUsageError("--all and --only cannot be combined")
    if options.flags >= {Opening.PROTECT, Opening.NO_PROTECT}:
        raise ConfineUsageError("--protect and --no-protect cannot be combined")
    if Opening.STATIC in options.flags:
        _check_static(options)


def _check_static(options: ConfineOptions) -> None:
    for flag, why in _NOT_STATIC.items():
        if flag in options.flags:
            raise ConfineUsageError(f"--static and {flag.value} cannot be combined: {why}")
    if options.push not in (None, PushPolicy.OFF):
        raise ConfineUsageError(f"--static and --push cannot be combined: {_NO_SOCKETS}")
    if options.on_revoke is RevokePolicy.TELL:
        raise ConfineUsageError("--static always ends the program at a revoke: --on-revoke kill")


def scope_of(options: ConfineOptions) -> RequestedScope:
    """Return the scope that the flags ask for. Without a flag, it is the workspace.

    Raises ConfineUsageError.
    """
    try:
        scope = parse_scope(options.only, os.getcwd, any_uri=False)
        if Opening.ALL in options.flags:
            return scope
        added = scope._replace(
            names=(*scope.names, *options.added), tags=(*scope.tags, *options.tag)
        )
        if options.only:
            return added
        if Opening.SUBFOLDER in options.flags:
            return added._replace(cwd=os.getcwd())
        return added._replace(workspace=os.getcwd())
    except FileNotFoundError as error:
        raise ConfineUsageError("the working directory is gone", "cd") from error
    except ValueError as error:
        raise ConfineUsageError(str(error)) from error


def _with_value(options: ConfineOptions, flag: str, value: str) -> ConfineOptions:
    if flag == "--name":
        return options._replace(name=value)
    changed: dict[str, Any] = {}
    if flag in _CHOICES:
        try:
            choice = _CHOICES[flag](value)
        except ValueError:
            *first, last = _CHOICES[flag]
            raise ConfineUsageError(f"{flag} must be {', '.join(first)} or {last}") from None
        changed[flag.removeprefix("--").replace("-", "_")] = choice
    else:
        changed[LISTS[flag]] = (*getattr(options, LISTS[flag]), value)
    return options._replace(**changed)
