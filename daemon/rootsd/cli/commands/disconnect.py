"""`rootsd disconnect`: restore the configuration of MCP clients."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rootsd.cli.answers.client_homes import ClientHomes
from rootsd.cli.answers.connecting import (
    ClientConnector,
    NoClientFound,
    WiringOutput,
    client_environment,
    print_report,
)
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.answers.typed_agents import agents_now, programs_of_clients
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import shorten_home
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.registry import all_clients
from rootsd.sync.record import SyncRecord

SECTION = "Set up"


@verb(
    "disconnect",
    prints=(WiringOutput,),
    epilog="rootsd disconnect claude-code\nrootsd disconnect --all\n"
    "rootsd disconnect claude-code --unwrap\nrootsd disconnect --confine claude",
)
@click.argument("clients", nargs=-1, type=click.Choice(list(all_clients())), metavar="[CLIENT]...")
@click.option("--all", "everything", is_flag=True, help="disconnect every client that was changed")
@click.option(
    "--unwrap", is_flag=True, help="only restore the other servers, and keep the connection"
)
@click.option(
    "--confine",
    multiple=True,
    metavar="AGENT",
    shell_complete=completion.agents,
    help="have this agent start outside the wall again when you type it",
)
@click.option("--dry-run", is_flag=True, help="only show the change of each file")
@pass_invocation
def command(
    invocation: Invocation,
    clients: tuple[str, ...],
    *,
    everything: bool,
    unwrap: bool,
    confine: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Disconnect MCP clients: take back everything that rootsd wrote into their configuration.

    If nobody has changed a file since, it is restored byte for byte. Otherwise exactly the entries
    of rootsd are removed. Servers that were wrapped get their own commands again, and the client
    is no longer synced. If it is an agent that starts behind the wall when you type it, new shells
    start it outside.

    Variables such as CLAUDE_CONFIG_DIR give a client another home. Without --all, disconnect
    changes the home that this shell names.
    """
    environment = client_environment()
    homes = ClientHomes(invocation.places.state, environment)
    connector = ClientConnector(
        invocation, Questions(invocation, yes=True, dry_run=dry_run), environment
    )
    unrecorded = connector.unrecorded()
    known = sorted({*homes.clients(), *unrecorded})
    names = known if everything else list(dict.fromkeys(clients))
    typed = agents_now(invocation) if everything else list(confine)
    if not (names or typed):
        if everything or not known:
            raise NoClientFound("rootsd has changed no client", "rootsd clients")
        raise click.UsageError(f"name a client: {', '.join(known)}")
    if not dry_run:
        invocation.announce(f"disconnect {' '.join(names)}")
    for name in names:
        client = all_clients()[name]
        changed = homes.changed(client)
        here = [] if everything and name not in unrecorded else [environment]
        targets = [*changed, *here] if everything else here
        if unwrap:
            for home in targets:
                connector.unwrap(client, home)
        else:
            connector.forget_worktrees(client, _without(client, changed, targets))
            _disconnect(invocation, connector, client, targets, dry_run=dry_run)
        if not everything:
            connector.report.warnings += _other_homes(client, homes, environment)
    if not unwrap:
        connector.stop_confining(dict.fromkeys((*typed, *programs_of_clients(names))))
    if not dry_run:
        _remove_containers(invocation, SyncRecord(invocation.places.state))
    return print_report(invocation, connector.report, dry_run=dry_run)


def _disconnect(
    invocation: Invocation,
    connector: ClientConnector,
    client: McpClient,
    targets: Sequence[ClientEnvironment],
    *,
    dry_run: bool,
) -> None:
    """Disconnect a client in some of its homes, and sync them no longer."""
    record = SyncRecord(invocation.places.state)
    homes = ClientHomes(invocation.places.state, client_environment())
    for home in targets:
        if (file := homes.synced_file(client, home)) is not None:
            _stop_syncing(invocation, record, file, client.facts.name, dry_run=dry_run)
        connector.disconnect(client, home)


def _without(
    client: McpClient, homes: Sequence[ClientEnvironment], others: Sequence[ClientEnvironment]
) -> list[ClientEnvironment]:
    """Return those of the homes that are not among the others."""
    settings = {client.settings(home) for home in others}
    return [home for home in homes if client.settings(home) not in settings]


def _other_homes(
    client: McpClient, homes: ClientHomes, environment: ClientEnvironment
) -> list[str]:
    """Return a sentence for each home in which a client stays connected or synced."""
    again = f"rootsd disconnect {client.facts.name}"
    connected = {client.settings(home) for home in homes.connected(client)}
    found = []
    for home in homes.all(client)[1:]:
        settings = client.settings(home)
        done, file = "connected", str(settings)
        if settings not in connected and (synced := homes.synced_file(client, home)):
            done, file = "synced", synced
        command = home.home_of(client.facts).command(again, environment.variables)
        found.append(
            f"{client.facts.title} is also {done} in {shorten_home(file)} (try: {command})"
        )
    return found


def _stop_syncing(
    invocation: Invocation, record: SyncRecord, file: str, name: str, *, dry_run: bool
) -> None:
    if dry_run:
        invocation.output.message(f"The access lists of {name} would be removed, too.")
        return
    from rootsd.cli.answers import sync_control

    sync_control.stop_syncing(invocation, record, file)
    sync_control.ensure_running(invocation)


def _remove_containers(invocation: Invocation, record: SyncRecord) -> None:
    from rootsd.cli.answers import sync_control

    sync_control.remove_containers(invocation, record)
