"""Run a verb with `--host` on another machine, where rootsd runs, too.

Everything happens there: rootsd there parses the same arguments, asks on the terminal, and prints.
This side only refuses what would mean something else there, or what an agent tries.

* Paths are those of the other machine. A path that is relative to the working directory here is
  refused, and no path is ever resolved here.
* The guard there sees a login over ssh, and not the processes that started this command. So the
  guard here judges them first: through the daemon here, or by the same rules without one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import VerbCommand
from rootsd.core.errors import CallerRefused, Exit

_HOST, _WORDS = "rootsd.host", "rootsd.remote_words"
# All other verbs count as deciding something.
_ONLY_SHOWING = frozenset(("pending", "status"))
_PATH_OPTIONS = frozenset(("under",))
_RELATIVE = r"\.\.?(/|$)"
# In a pipe, these need no note: the other machine printed no error.
_WITHOUT_ERROR = frozenset((Exit.OK, Exit.PENDING, Exit.INTERRUPTED, Exit.BROKEN_PIPE))


class RemoteVerbCommand(VerbCommand):
    """A verb with the option `--host`, which runs it on another machine."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - as click
        super().__init__(*args, **settings)
        self.params.append(
            click.Option(
                ["--host"],
                metavar="USER@HOST",
                expose_value=False,
                callback=_store_host,
                help="do this on that machine, through ssh; REF and paths are those of HOST",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them as words if they are for another machine."""
        typed = list(args)
        rest = super().parse_args(ctx, args)
        if is_remote(ctx) and not ctx.resilient_parsing:
            ctx.meta[_WORDS] = self._words(ctx, typed)
        return rest

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click
        """Run the verb here, or on the other machine."""
        if not is_remote(ctx):
            return super().invoke(ctx)
        return _run_there(ctx.obj, ctx.meta[_HOST], ctx.meta[_WORDS])

    def _words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the words of the verb, without `--host` and the global flags.

        They are taken from the parser and not from `args`, because only the parser can tell an
        option from the value of one. Raises UsageError for a path that means something else there.
        """
        typed, _, _ = self.make_parser(ctx).parse_args(args=args)
        words, references = list[str](), list[str]()
        for param in self.params:
            value = typed.get(param.name or "")
            values = value if isinstance(value, list | tuple) else (value,)
            texts = [text for text in values if isinstance(text, str)]
            if isinstance(param, click.Argument):
                references.extend(texts)
            elif isinstance(param, click.Option) and param.is_flag:
                words.extend(param.opts[-1:] if value is True else ())
            elif param.expose_value:
                words.extend(f"{param.opts[-1]}={text}" for text in texts)
                if param.name in _PATH_OPTIONS:
                    _check_paths(texts, ctx)
        _check_references(references, ctx)
        return [*words, "--", *references] if references else words


def is_remote(ctx: click.Context) -> bool:
    """Return whether the command line before here has `--host`."""
    return _HOST in ctx.meta


def _store_host(ctx: click.Context, _: click.Parameter, host: str | None) -> None:
    if host is not None:
        ctx.meta[_HOST] = host


def _check_references(references: Sequence[str], ctx: click.Context) -> None:
    for reference in references:
        if re.match(_RELATIVE, reference):
            raise click.UsageError(
                f"{reference} is a folder of this machine: with --host, name a project of HOST, "
                "or give its whole path there",
                ctx,
            )


def _check_paths(paths: Sequence[str], ctx: click.Context) -> None:
    for path in paths:
        if not path.startswith(("/", "~")):
            raise click.UsageError(
                f"{path} is relative to a folder of this machine: with --host, give the whole "
                "path on HOST",
                ctx,
            )


def _run_there(invocation: Invocation, host: str, words: Sequence[str]) -> int:
    """Have the guard here judge the caller, run the verb there, and return its exit status."""
    from rootsd.cli.answers.ssh import Prompts, check_host, run_on

    check_host(host)
    output, verb = invocation.output, invocation.command
    _admit(invocation, shlex.join([verb, f"--host={host}", *words]))
    for word in _paths_below_home(words):
        output.message(f"{word} is a path on {host}. For your home folder there, quote it: '~'")
    prompts = Prompts.FORBIDDEN if invocation.flags.no_input else Prompts.ALLOWED
    there = ["rootsd", verb, *_global_flags(invocation), *words]
    if invocation.flags.verbose:
        output.message(f"on {host}: {shlex.join(there)}")
    status = run_on(host, there, prompts)
    if status == Exit.UNREACHABLE:
        output.message(f"This was rootsd on {host}. Run its commands there: ssh {host}")
    elif output.on_terminal or status not in _WITHOUT_ERROR:
        output.message(f"This was rootsd on {host}: add --host={host} to its commands.")
    if status == Exit.USAGE:
        from rootsd import __version__

        output.message(
            f"If it is older than {__version__}, it may lack an option: ssh {host} rootsd version"
        )
    return status


def _paths_below_home(words: Sequence[str]) -> Iterator[str]:
    """Yield the paths below the home folder here. An unquoted `~/` becomes one in the shell."""
    home = os.path.expanduser("~").rstrip("/")
    for word in words:
        path = word.partition("=")[2] if word.startswith("--") else word
        if home and path.startswith(f"{home}/"):
            yield path


def _global_flags(invocation: Invocation) -> Iterator[str]:
    flags = invocation.flags
    if flags.json:
        yield "--json"
    if flags.quiet:
        yield "--quiet"
    if flags.verbose:
        yield "--verbose"
    if flags.no_color or os.environ.get("NO_COLOR"):
        yield "--no-color"
    if flags.no_pager:
        yield "--no-pager"
    if flags.no_input:
        yield "--no-input"


def _admit(invocation: Invocation, command: str) -> None:
    """Return if the guard lets this process run `command` elsewhere. Raises CallerRefused."""
    from rootsd.link import rpc, sandbox
    from rootsd.wire.guard import RemoteCommandRequest
    from rootsd.wire.request import ApplyMode

    only_shows = invocation.command in _ONLY_SHOWING
    effect = ApplyMode.DRY_RUN if only_shows else ApplyMode.APPLY
    try:
        invocation.call(RemoteCommandRequest(command, effect))
    except rpc.DaemonGone:
        if sandbox.in_sandbox():
            raise
        _admit_without_daemon(invocation)
    # The message about news is about this machine.
    invocation.has_called = False


def _admit_without_daemon(invocation: Invocation) -> None:
    """Judge the ancestors of this process as a daemon would. Raises CallerRefused.

    No daemon knows the programs that use MCP or can ask for a word, so doubt counts as a refusal.
    """
    from rootsd.agents.guarded import guarded_agents
    from rootsd.config.configuration import read_config
    from rootsd.core.agents import markers_of
    from rootsd.core.guard import Caller, GuardAction, McpHosts, check_caller
    from rootsd.core.guard_setting import Guard
    from rootsd.processes.process_tree import lineages

    approval = read_config(invocation.places.config_file).approval
    agents = guarded_agents(approval.agents, approval.markers)
    me = os.getpid()
    caller = Caller(lineages([me], markers_of(agents))[me])
    decision = check_caller(Guard.AGENTS, caller, McpHosts(), agents)
    if decision.action is not GuardAction.ADMIT:
        # A daemon could ask for a word.
        is_sure = decision.action is GuardAction.REFUSE
        remedy = "run it yourself, in your own terminal" if is_sure else "rootsd up"
        raise CallerRefused(f"this command is refused: {decision.why}", remedy)
