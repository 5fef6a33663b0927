"""`rootsd run`: starts an MCP server and tells it of the approved roots, whatever its client does.

Standard library only and one thread: it starts once per server of each client.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from rootsd.core.errors import RootsdError
from rootsd.core.exits import Exit, exit_of
from rootsd.host.folders import run_folder
from rootsd.relay.arguments import Command
from rootsd.relay.barrier import Barrier
from rootsd.relay.keeping import Habits, make_nowhere
from rootsd.relay.link import complain
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
    "usage: rootsd run [--only NAME|tag:T|cwd]... [--client-roots auto|narrow|override]"
    " [--advisory-access] [--env NAME=VALUE]... [--name NAME] -- SERVER [ARGUMENT]..."
)
_WITH_VALUE = frozenset({"--only", "--client-roots", "--env", "--name"})


class UsageError(Exception):
    """The words after `run` cannot be used; the message says which."""


class Order(NamedTuple):
    """What to run, and how; as typed."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()
    client_roots: ClientRoots = ClientRoots.AUTO
    access: Access = Access.WRITABLE
    name: str = ""


def main(argv: list[str]) -> int:
    """Run the relay with the arguments after `run`; return the exit status, the server's own."""
    if argv[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return Exit.OK
    try:
        order = order_of(argv)
        scope = _scope_of(order)
    except UsageError as error:
        sys.stderr.write(f"rootsd run: {error}\n{USAGE}\n")
        return Exit.USAGE
    try:
        return _run(order, scope)
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
        if flag == "--advisory-access" and not equals:
            order = order._replace(access=Access.ADVISORY)
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
    return order._replace(words=tuple(words))


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
            try:
                return order._replace(client_roots=ClientRoots(value))
            except ValueError as error:
                choices = ", ".join(use.value for use in ClientRoots)
                raise UsageError(f"--client-roots is one of {choices}") from error


def _scope_of(order: Order) -> Scope:
    try:
        return scope_of(order.only, os.getcwd, any_uri=False)
    except FileNotFoundError as error:
        raise UsageError("--only cwd: the working directory is gone") from error
    except ValueError as error:
        raise UsageError(str(error)) from error


def _run(order: Order, scope: Scope) -> int:
    run = run_folder().path
    nowhere = make_nowhere(run)
    # A path that is not there is as good for a command as an empty folder, if need be.
    named = os.fsdecode(nowhere or run + b"/nowhere")
    command = Command(order.words, order.environment, named)
    out = Outbox()
    narrowing = Narrowing(order.client_roots, order.access, _working_directory())
    supply = Supply(narrowing, out, _canonical, nowhere)
    habits = Habits(run, order.words)
    barrier = Barrier(known := habits.recall())
    session = Session(supply, Renewal(command), barrier, out)
    greeting = Hello(client=order.name or name_of(order.words), scope=scope)
    try:
        return Pump(session, out, greeting, waits=command.names_roots).run()
    finally:
        if barrier.habit is not known:
            habits.note(barrier.habit)


def _working_directory() -> bytes | None:
    try:
        return os.getcwdb()
    except FileNotFoundError:
        return None


def _canonical(path: bytes) -> bytes | None:
    real = os.path.realpath(path)
    return real if os.path.isdir(real) else None
