"""`rootsd run`: starts an MCP server and tells it of the approved roots, whatever its client does.

Standard library only and one thread: it starts once per server of each client.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import NamedTuple

from rootsd.core.errors import RootsdError
from rootsd.core.exits import Exit, exit_of
from rootsd.host.folders import run_folder
from rootsd.relay import looking
from rootsd.relay.arguments import Command, PlaceError
from rootsd.relay.barrier import Barrier
from rootsd.relay.keeping import Habits, make_nowhere
from rootsd.relay.link import complain
from rootsd.relay.modern import Seal
from rootsd.relay.naming import name_of
from rootsd.relay.narrowing import Access, ClientRoots, Narrowing
from rootsd.relay.outbox import Outbox
from rootsd.relay.process import CannotStart
from rootsd.relay.pump import Pump
from rootsd.relay.renewal import Renewal
from rootsd.relay.session import Session
from rootsd.relay.supply import Supply
from rootsd.wire.hello import Hello, Scope, scope_of

USAGE = (
    "usage: rootsd run [--workspace | --all | --only NAME|tag:T|cwd...]"
    " [--client-roots auto|narrow|override] [--advisory-access] [--env NAME=VALUE]..."
    " [--name NAME] -- SERVER [ARGUMENT]..."
)
_KEY_BYTES = 16
_PLAIN = frozenset({"--workspace", "--all", "--advisory-access"})
_WITH_VALUE = frozenset({"--only", "--client-roots", "--env", "--name"})
_CLIENT_ROOTS = ("auto", "narrow", "override")


class UsageError(Exception):
    """The words after `run` cannot be used; the message says which."""


class Part(Enum):
    """Which part of the approved set the server is told of, beside what `--only` names."""

    WORKSPACE = "--workspace"
    ALL = "--all"


class Order(NamedTuple):
    """What to run, and how; as typed. `part` is None where no flag names one."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    part: Part | None = None
    client_roots: ClientRoots = ClientRoots.NOTE
    access: Access = Access.WRITABLE
    name: str = ""


def main(argv: list[str]) -> int:
    """Run the relay with the arguments after `run`; return the exit status, the server's own."""
    if argv[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return Exit.OK
    try:
        order = order_of(argv)
        return _run(order, _scope_of(order))
    except UsageError as error:
        sys.stderr.write(f"rootsd run: {error}\n{USAGE}\n")
        return Exit.USAGE
    except CannotStart as error:
        complain(error)
        return error.status
    except RootsdError as error:
        complain(error)
        return exit_of(error.code)


def order_of(argv: list[str]) -> Order:
    """What the words after `run` ask for. Raises UsageError."""
    order = Order(())
    words = list(argv)
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if not equals and flag in _PLAIN:
            order = _with_plain(order, flag)
            continue
        if flag not in _WITH_VALUE:
            raise UsageError(f"cannot use {flag!a}")
        if not equals and words:
            value = words.pop(0)
        if not value:
            raise UsageError(f"{flag} needs a value")
        order = _with(order, flag, value)
    if not words:
        raise UsageError("which server? Its command comes after --")
    if order.part is Part.ALL and order.only:
        raise UsageError("--all and --only contradict each other")
    return order._replace(words=tuple(words))


def _with_plain(order: Order, flag: str) -> Order:
    if flag == "--advisory-access":
        return order._replace(access=Access.ADVISORY)
    part = Part(flag)
    if order.part not in (None, part):
        raise UsageError("--all and --workspace contradict each other")
    return order._replace(part=part)


def _with(order: Order, flag: str, value: str) -> Order:
    match flag:
        case "--only":
            return order._replace(only=(*order.only, value))
        case "--name":
            return order._replace(name=value)
        case "--env":
            name, equals, text = value.partition("=")
            if not name or not equals:
                raise UsageError("--env needs NAME=VALUE")
            return order._replace(environment=(*order.environment, (name, text)))
        case _:
            if value not in _CLIENT_ROOTS:
                raise UsageError(f"--client-roots is one of {', '.join(_CLIENT_ROOTS)}")
            return order._replace(client_roots=ClientRoots(value))


def _scope_of(order: Order) -> Scope:
    """Return the scope that the flags ask for. Where none does, it is the workspace;
    `--client-roots override` is the old way to ask for the whole set."""
    try:
        scope = scope_of(order.only, os.getcwd, any_uri=False)
        asks_for_all = order.part is Part.ALL or order.client_roots is ClientRoots.OVERRIDE
        if order.part is Part.WORKSPACE or not (order.only or asks_for_all):
            scope = scope._replace(workspace=os.getcwd())
    except FileNotFoundError as error:
        raise UsageError("the working directory is gone; try: --all or --only NAME") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    return scope


def _run(order: Order, scope: Scope) -> int:
    run = run_folder().path
    nowhere = make_nowhere(run)
    # A path that is not there is as good for a command as an empty folder, if need be.
    named = os.fsdecode(nowhere or run + b"/nowhere")
    command = _command(order, named)
    out = Outbox()
    narrowing = Narrowing(order.client_roots, order.access, _working_directory())
    supply = Supply(narrowing, out, looking, nowhere)
    habits = Habits(run, order.words)
    barrier = Barrier(habits.recall(), habits.note)
    seal = Seal(os.urandom(_KEY_BYTES))
    session = Session(supply, Renewal(command), barrier, out, seal)
    greeting = Hello(client=order.name or name_of(order.words), scope=scope)
    return Pump(session, out, greeting, waits=command.names_roots).run()


def _command(order: Order, nowhere: str) -> Command:
    try:
        return Command(order.words, order.environment, nowhere)
    except PlaceError as error:
        raise UsageError(str(error)) from error


def _working_directory() -> bytes | None:
    try:
        return os.getcwdb()
    except FileNotFoundError:
        return None
