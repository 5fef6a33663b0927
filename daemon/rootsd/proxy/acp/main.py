"""Start an ACP agent, and relay between it and the client on standard input and output.

With `--confine`, the agent is a child of `rootsd confine`: it gets its settings, its login, and
its history as it would from a terminal. The relay stays outside the wall.
"""

from __future__ import annotations

import os

from rootsd.core.errors import RootsdError
from rootsd.places.runtime_dir import OVERRIDE, overriding_folder
from rootsd.processes.own_program import own_command
from rootsd.proxy.acp.folders import ApprovedFolders
from rootsd.proxy.acp.messages import ServerWords
from rootsd.proxy.acp.session import AcpSession
from rootsd.proxy.acp.wall import StartedWall
from rootsd.proxy.run.command import LaunchSpec, program_name
from rootsd.proxy.run.loop import RunProxy
from rootsd.proxy.run.main import as_required, confines
from rootsd.proxy.run.options import (
    FlagSet,
    RunOptions,
    ScopeFlag,
    SessionServers,
    parse_arguments,
    scope_of,
)
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.refusal import refuse
from rootsd.proxy.stdio import STDIN, fill_closed_files
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope

_FLAGS = FlagSet(
    frozenset({"--workspace", "--all", SessionServers.WRAPPED.value}),
    frozenset({"--only", "--name"}),
)


def main(argv: list[str]) -> int:
    """Run the relay with the arguments after `acp`. Return the exit status of the agent."""
    fill_closed_files()
    try:
        return _run(parse_arguments(argv, _FLAGS))
    except RootsdError as error:
        return refuse(error, "rootsd acp")


def _run(options: RunOptions) -> int:
    options, _ = as_required(options)
    is_confined = confines(options)
    name = options.name or program_name(options.words)
    words = _confined_words(options, name) if is_confined else options.words
    if os.isatty(STDIN):  # an editor starts it in a terminal, so that a person can log in
        os.execvp(words[0], words)  # noqa: S606 - the user's command
    has_scope = options.only or options.part is ScopeFlag.WORKSPACE
    scope = scope_of(options) if has_scope else RequestedScope()
    out = Outbox()
    session = AcpSession(
        LaunchSpec(words, {}),
        ApprovedFolders(name, scope),
        out,
        _server_words(options),
        StartedWall() if is_confined else None,
    )
    greeting = Hello(client=name, scope=scope)
    return RunProxy(session, out, greeting, needs_roots=False).run()


def _confined_words(options: RunOptions, name: str) -> tuple[str, ...]:
    """Return the command that runs the agent behind the wall."""
    return (
        *own_command(), "confine", *_scope_words(options), *options.wall_words,
        "--name", name, "--", *options.words,
    )  # fmt: skip


def _scope_words(options: RunOptions) -> tuple[str, ...]:
    everything = (ScopeFlag.ALL.value,) if options.part is ScopeFlag.ALL else ()
    return (*everything, *(word for each in options.only for word in ("--only", each)))


def _server_words(options: RunOptions) -> ServerWords:
    """Return how the agent starts the MCP servers of a session."""
    folder = overriding_folder()
    variables = () if folder is None else ((OVERRIDE, os.fsdecode(folder)),)
    wrapper: tuple[str, ...] = ()
    if options.servers is SessionServers.WRAPPED:
        wrapper = (*own_command(), "run", *_scope_words(options))
    return ServerWords((*own_command(), "bridge"), wrapper, variables)
