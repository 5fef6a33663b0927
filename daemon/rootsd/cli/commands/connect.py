"""`rootsd connect`: connect MCP clients, in their own configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import click

from rootsd.cli.answers import neovim
from rootsd.cli.answers.connecting import (
    ClientConnector,
    NoClientFound,
    WiringOutput,
    client_environment,
    found_clients,
    is_tried,
    place_variables,
    print_report,
)
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.answers.server_trials import ServerTrials, WallChoice
from rootsd.cli.answers.typed_agents import program_of
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import shorten_home
from rootsd.config.configuration import read_config
from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.config.wall_default import confines_by_default
from rootsd.connect.base import ClientEnvironment, HookUse, McpClient, WorktreeMaker
from rootsd.connect.client_files import ToolAccess, Wiring
from rootsd.connect.named_paths import ReachableFiles
from rootsd.connect.registry import all_clients
from rootsd.connect.trial import has_wall
from rootsd.connect.wraps import PathUse, ShownPath
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.processes.command_path import installed_command

SECTION = "Set up"


class ClientNotNamed(RootsdError):
    """No client was named, and there is no person to ask."""

    code = ErrorCode.USAGE


class WrapRefused(RootsdError):
    """The servers of clients cannot be wrapped in this shell."""

    code = ErrorCode.USAGE


_PATHS = {
    PathUse.READ: "with --wrap: let servers that name this path read it",
    PathUse.WRITE: "with --wrap: let servers that name this path change it",
    PathUse.KEEP: "with --wrap: give servers that name this path a copy, and keep its changes",
}


def _path_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that show paths to servers."""
    for use, text in reversed(_PATHS.items()):
        option = click.option(
            use.value, multiple=True, metavar="PATH", type=click.Path(), help=text
        )
        command = option(command)
    return command


def _typed_paths(values: Mapping[str, tuple[str, ...]]) -> tuple[ShownPath, ...]:
    """Return the paths that a person typed, by the names of the options."""
    found = []
    for use in _PATHS:
        for typed in values[use.value.removeprefix("--")]:
            path = os.path.abspath(os.path.expanduser(typed))
            if not os.path.exists(path):
                raise click.UsageError(f"{use}: {path} does not exist")
            found.append(ShownPath(use, path))
    return tuple(found)


def _print_lua(context: click.Context, _: click.Parameter, plugin: str | None) -> None:
    if plugin is not None:
        click.echo(neovim.lua_for(plugin, str(installed_command())))
        context.exit()


@verb(
    "connect",
    prints=(WiringOutput,),
    epilog="rootsd connect\nrootsd connect claude-code codex\nrootsd connect --all --dry-run\n"
    "rootsd connect claude-code --wrap\nrootsd connect --confine claude",
)
@click.argument("clients", nargs=-1, type=click.Choice(list(all_clients())), metavar="[CLIENT]...")
@click.option("--all", "everything", is_flag=True, help="connect every client that was found")
@click.option("--wrap", is_flag=True, help="also run the client's other servers under rootsd run")
@click.option("--no-confine", is_flag=True, help="with --wrap: do not put servers behind the wall")
@_path_options
@click.option(
    "--sync-access",
    is_flag=True,
    help="also write your denials to the client's access list, as rootsd sync add does",
)
@click.option(
    "--hook",
    is_flag=True,
    help="also have the client ask rootsd hook before each call of a file tool",
)
@click.option(
    "--strict",
    is_flag=True,
    help="with --hook: have the client refuse a call if the hook fails or no daemon answers",
)
@click.option(
    "--make-worktrees",
    is_flag=True,
    help="with --hook: have rootsd make and delete Claude Code's worktrees, in the same places",
)
@click.option(
    "--confine",
    multiple=True,
    metavar="AGENT",
    shell_complete=completion.agents,
    help="also start this agent behind the wall whenever you type it, such as claude",
)
@click.option(
    "--neovim",
    callback=_print_lua,
    expose_value=False,
    type=click.Choice(neovim.PLUGINS),
    help="only print the Lua lines with which this plugin runs an agent under rootsd acp",
)
@click.option(
    "--allow-tools",
    is_flag=True,
    help="let the model call rootsd's three tools without a question",
)
@click.option(
    "--yes",
    is_flag=True,
    help="change a file even if it is a symlink or in a repository, and answer other questions"
    " with yes; this never allows tools",
)
@click.option("--dry-run", is_flag=True, help="only show the change of each file")
@pass_invocation
def command(  # noqa: PLR0913 - one for each flag
    invocation: Invocation,
    /,
    clients: tuple[str, ...],
    *,
    everything: bool,
    wrap: bool,
    no_confine: bool,
    sync_access: bool,
    hook: bool,
    strict: bool,
    make_worktrees: bool,
    confine: tuple[str, ...],
    allow_tools: bool,
    yes: bool,
    dry_run: bool,
    **paths: tuple[str, ...],
) -> int:
    """Connect MCP clients: write rootsd into each client's own configuration.

    Without CLIENT, connect asks about each client that it finds. rootsd clients --all lists all
    names. This tells the client about your roots; it does not limit the client's own tools, but
    --confine, --hook, and --sync-access do. The edit keeps comments, order, and layout, and
    `rootsd disconnect` takes it back. If no edit is safe, connect prints the lines to paste.

    --wrap puts `rootsd run` in front of the client's other servers, so that they follow your
    decisions, too. connect starts each server once to try it, first behind the wall, then without.
    If a server names files that it could not reach behind the wall, connect asks what to do.
    --read, --write, and --keep answer that in advance. A server without an answer is not wrapped.

    --hook is weaker than the wall: it does not see paths in shell commands, and if the hook fails,
    the client lets the call pass. With --strict, Claude Code refuses the call instead.

    --confine AGENT makes new shells start the agent behind the wall, through a function that
    `rootsd shell-init` prints. `AGENT --outside` starts it outside once. If you name no CLIENT,
    nothing else changes.

    Zed and JetBrains get a second entry for each agent, which runs it under rootsd acp. A client
    that nobody has tried with rootsd is connected only if you name it.
    """
    shown = _typed_paths(paths)
    _check_wrap(shown, wrap=wrap, no_confine=no_confine)
    use, maker = _hook_use(hook=hook, strict=strict, make_worktrees=make_worktrees)
    questions = Questions(invocation, yes=yes, dry_run=dry_run)
    programs = [program_of(each) for each in dict.fromkeys(confine)]
    is_only_shell = bool(programs and not clients and not everything)
    chosen = [] if is_only_shell else _chosen(questions, clients, everything=everything)
    asked = _wiring(use, maker, allow_tools=allow_tools)
    if not dry_run:
        _announce(invocation, chosen, programs, asked.tools)
    trials = _trials(invocation, questions, shown, no_confine=no_confine) if wrap else None
    connector = ClientConnector(invocation, questions, client_environment())
    connector.confine(programs)
    for client in chosen:
        connector.check_hook(client, use)
        connector.connect(client, asked, trials)
        connector.offer_worktrees(client)
        if sync_access:
            connector.sync_access(client)
    return print_report(invocation, connector.report, dry_run=dry_run)


def _hook_use(*, hook: bool, strict: bool, make_worktrees: bool) -> tuple[HookUse, WorktreeMaker]:
    if (strict or make_worktrees) and not hook:
        flag = "--strict" if strict else "--make-worktrees"
        raise click.UsageError(f"{flag} needs --hook")
    use = HookUse.STRICT if strict else HookUse.YES if hook else HookUse.NO
    return use, WorktreeMaker.ROOTSD if make_worktrees else WorktreeMaker.CLIENT


def _trials(
    invocation: Invocation, questions: Questions, shown: tuple[ShownPath, ...], *, no_confine: bool
) -> ServerTrials:
    """Return what tries servers. Raises BadConfig, DaemonUnreachable, and WrapRefused."""
    environment = client_environment()
    wall = _wall_choice(questions, no_confine=no_confine)
    return ServerTrials(questions, environment, wall, _reachable(invocation, environment), shown)


def _wiring(use: HookUse, maker: WorktreeMaker, *, allow_tools: bool) -> Wiring:
    tools = ToolAccess.ALLOW if allow_tools else ToolAccess.ASK
    rootsd, places = str(installed_command()), place_variables()
    return Wiring(rootsd, tools, variables=places, hook=use, worktrees=maker)


def _announce(
    invocation: Invocation, chosen: Sequence[McpClient], programs: Sequence[str], tools: ToolAccess
) -> None:
    words = ["connect", *(client.facts.name for client in chosen)]
    words += [f"--confine={name}" for name in programs]
    words += ["--allow-tools"] if tools is ToolAccess.ALLOW else []
    invocation.announce(" ".join(words))


def _check_wrap(shown: Sequence[ShownPath], *, wrap: bool, no_confine: bool) -> None:
    """Refuse options that make no sense together. Raises UsageError and WrapRefused."""
    if (no_confine or shown) and not wrap:
        raise click.UsageError(f"{shown[0].use if shown else '--no-confine'} needs --wrap")
    if wrap and place_variables():
        raise WrapRefused(
            "--wrap does not work while ROOTSD_DIR is set: clients start servers without it",
            "unset ROOTSD_DIR",
        )


def _reachable(invocation: Invocation, environment: ClientEnvironment) -> ReachableFiles:
    """Return what servers reach behind the wall. Raises BadConfig."""
    settings = read_config(invocation.places.config_file).wall
    return ReachableFiles(environment.home, settings)


def _wall_choice(questions: Questions, *, no_confine: bool) -> WallChoice:
    """Return whether to try servers behind the wall.

    Raises BadConfig, DaemonUnreachable, and WrapRefused.

    If config.toml wants the wall for each server, a person must agree to each one without it, on
    a system that has no wall, too. Behind the wall, every server needs the daemon. If the
    machine's policy requires the wall, no server runs without it.
    """
    from rootsd.cli.answers import control_client

    requirement = wall_requirement(POLICY_FILE)
    if no_confine and requirement is not None:
        raise WrapRefused(f"{requirement}, so --no-confine is refused", "rootsd status")
    if no_confine:
        return WallChoice.NEVER
    if requirement is not None and not has_wall():
        raise WrapRefused(f"{requirement}, and the wall does not work here", "rootsd doctor")
    if not (has_wall() or confines_by_default()):
        return WallChoice.NEVER
    if not questions.dry_run and not control_client.is_running():
        raise DaemonUnreachable(
            "the daemon is not running, and --wrap needs it to try servers behind the wall",
            "rootsd up",
        )
    return WallChoice.IF_IT_WORKS if requirement is None else WallChoice.REQUIRED


def _chosen(questions: Questions, names: Sequence[str], *, everything: bool) -> list[McpClient]:
    """Return the clients to connect. Raises NoClientFound and ClientNotNamed."""
    environment = client_environment()
    if names:
        return [all_clients()[name] for name in dict.fromkeys(names)]
    found = found_clients(environment)
    known = [client for client in found if is_tried(client)]
    others = ", ".join(client.facts.name for client in found if not is_tried(client))
    if others:
        questions.output.message(f"Not tried with rootsd, so only by name: {others}")
    if not known:
        raise NoClientFound("no known MCP client was found", "rootsd connect --help")
    if everything or questions.yes or questions.dry_run:
        return known
    if not questions.has_person:
        raise ClientNotNamed("connect needs the name of a client", "rootsd connect --all")
    return [
        client
        for client in known
        if questions.agrees(
            f"Connect {client.facts.title}, in {shorten_home(str(client.settings(environment)))}?"
        )
    ]
