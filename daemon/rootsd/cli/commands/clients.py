"""`rootsd clients`: list MCP clients, and whether each one is connected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import click

from rootsd.cli.answers.client_homes import ClientHomes
from rootsd.cli.answers.connecting import client_environment, other_settings
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.typed_agents import agents_now, describe, missing_line
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.connect.base import ClientEnvironment, HookUse, McpClient
from rootsd.connect.client_files import ClientFiles, ToolAccess, Wired
from rootsd.connect.health import ClientAnswer, ClientHealth, check_health, read_version
from rootsd.connect.record import ConnectRecord
from rootsd.connect.registry import all_clients
from rootsd.connect.wraps import WrapMode
from rootsd.core.labels import safe_label
from rootsd.sync.record import SyncedClient, SyncRecord
from rootsd.sync.targets import TARGETS

SECTION = "Set up"

_AT_ONCE = 2  # a starting client uses a whole core


def _wrapped(item: Mapping[str, Any]) -> str:
    names = [
        server["name"] if server["confined"] else f"{server['name']} (no wall)"
        for server in item["wrapped"]
    ]
    return ", ".join(names)


def _synced(item: Mapping[str, Any]) -> str:
    if item["synced"] is None:
        return "" if item["can_sync"] else "has no lists"
    only = item["synced"]["only"]
    return f"denials, grants for {only}" if only else "denials"


def _answers(item: Mapping[str, Any]) -> str:
    return f"{item['answers']}: {item['reason']}" if item["reason"] else str(item["answers"])


_COLUMNS = (
    Column("CLIENT", lambda item: item["client"]),
    Column("VERSION", lambda item: item["version"] or ""),
    Column("WIRED", lambda item: item["wired"]),
    Column("WRAPPED", _wrapped, fit=ColumnFit.NOTE),
    Column("SYNCED", _synced),
    Column("ANSWERS", _answers, fit=ColumnFit.NOTE),
    Column("TRIED", lambda item: item["trial"]),
    path_column("FILE", lambda item: item["file"]),
)


class WrappedServerItem(TypedDict):
    """An MCP server of a client that runs under `rootsd run`."""

    name: str
    """Its name in the client's configuration."""
    confined: bool
    """Whether it runs behind the wall."""


class UnwrappedServerItem(TypedDict):
    """An MCP server of a client that does not run under `rootsd run`."""

    name: str
    """Its name in the client's configuration."""
    reason: str
    """Why it is not wrapped."""


class SyncedRootsItem(TypedDict):
    """What `rootsd sync` opens to a client."""

    only: str | None
    """The value of `rootsd sync add --only`, or null if it opens none."""


class ClientItem(TypedDict):
    """An MCP client on this machine."""

    client: str
    """What a person types, such as `claude-code`."""
    title: str
    """The name of the product."""
    version: str | None
    """The version that its program prints, or null if that is not known."""
    found: bool
    """Whether its program or its settings are there."""
    file: str
    """Its settings file."""
    wired: str
    """Whether its settings run rootsd, a value of `Wired`."""
    tools_allowed: bool
    """Whether its model may call the tools of rootsd without a question."""
    hook: bool | None
    """Whether it asks `rootsd hook`, or null if it has no such hook."""
    applies: str
    """When it applies a change of its settings."""
    answers: str
    """What it says about rootsd, a value of `ClientAnswer`."""
    reason: str
    """Why it does not answer, or empty."""
    wrapped: list[WrappedServerItem]
    """Its servers that run under `rootsd run`."""
    not_wrapped: list[UnwrappedServerItem]
    """Its other servers."""
    can_sync: bool
    """Whether it has an access list that `rootsd sync` can write."""
    synced: SyncedRootsItem | None
    """What `rootsd sync` opens to it, or null if it is not synced."""
    sync_applies: str | None
    """When it applies a change of its access list, or null if it has none."""
    not_covered: str
    """What a denial in its access list does not cover."""
    not_synced: str | None
    """Why it has no access list to sync, or null."""
    no_hook: str | None
    """Why rootsd has no hook for it, or null."""
    trial: str
    """Whether rootsd's own tests connect the real program, a value of `ClientTrial`."""
    problem: str | None
    """Why its settings cannot be read, or null."""


class ClientsOutput(TypedDict):
    """The MCP clients that were found."""

    items: list[ClientItem]
    """The clients."""
    agents: list[str]
    """The programs that start behind the wall when a person types them."""


@verb(
    "clients",
    prints=(ClientsOutput,),
    epilog="rootsd clients\nrootsd clients --no-check\nrootsd clients --all --json",
)
@click.option(
    "--all", "everything", is_flag=True, help="also list the clients that were not found"
)
@click.option("--no-check", is_flag=True, help="do not start the clients to ask them")
@pass_invocation
def command(invocation: Invocation, *, everything: bool, no_check: bool) -> None:
    """List the MCP clients that were found: what is wired, wrapped, and synced.

    A client has a line for each of its homes that rootsd changed: variables such as
    CLAUDE_CONFIG_DIR name other homes.

    A client is wired if its own configuration runs rootsd. Some clients have a command that tells
    whether a server answers. For these, clients runs it. The client then starts all its servers,
    as in a session, so this may take some seconds.
    """
    environment = client_environment()
    record = ConnectRecord(invocation.places.state)
    synced = SyncRecord(invocation.places.state).clients()
    known = ClientHomes(invocation.places.state, environment)
    homes = [
        (client, home)
        for client in all_clients().values()
        for home in (
            known.all(client)
            if everything or client.is_found(environment)
            else known.changed(client)
        )
    ]
    items = [_item(client, home, record, synced) for client, home in homes]
    if items and not no_check and invocation.output.on_terminal:
        invocation.output.message("Asking each client (skip this with --no-check).")
    health = _health(homes, items, is_asked=not no_check)
    for item, found in zip(items, health, strict=True):
        item |= {"version": found.version or None, "answers": found.answer, "reason": found.reason}
    problems = [f"{item['client']}: {item['problem']}" for item in items if item["problem"]]
    problems += _refused_servers(items)
    agents = agents_now(invocation)
    result = CommandResult(items, warnings=problems, extra={"agents": agents})
    invocation.output.show(result, _COLUMNS)
    for client in all_clients().values():
        for sentence in other_settings(client, environment):
            invocation.output.message(f"{safe_label(sentence, limit=None)}.")
    if invocation.output.on_terminal:
        _explain(invocation, items)
        for name in agents:
            invocation.output.message(f"{describe(name)}.")
        if agents and (line := missing_line()) is not None:
            invocation.output.message(line)


def _refused_servers(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each server that the machine's policy does not let start."""
    if (requirement := wall_requirement(POLICY_FILE)) is None:
        return []
    return [
        f"{item['client']}: {server['name']} is wrapped without the wall, but {requirement}, so it"
        f" does not start (try: rootsd connect {item['client']} --wrap)"
        for item in items
        for server in item["wrapped"]
        if not server["confined"]
    ]


def _item(
    client: McpClient,
    environment: ClientEnvironment,
    record: ConnectRecord,
    synced: Mapping[str, SyncedClient],
) -> dict[str, Any]:
    facts = client.facts
    files = ClientFiles(client, environment, record)
    state = files.state()
    target = TARGETS.get(facts.name)
    lists = target and target.settings_file(str(environment.home), environment.variables)
    own = synced.get(lists or "")
    return {
        "client": facts.name,
        "title": facts.title,
        "found": client.is_found(environment),
        "file": str(files.settings),
        "wired": state.wired,
        "tools_allowed": state.ours.tools is ToolAccess.ALLOW,
        "hook": None if facts.hook is None else state.ours.hook is not HookUse.NO,
        "applies": facts.applies,
        "wrapped": [
            {"name": server.label, "confined": wrap.mode is WrapMode.CONFINED}
            for server, wrap in state.ours.wraps.items()
        ],
        "not_wrapped": [
            {
                "name": server.server.label,
                "reason": server.obstacle or "it was not tried, or does not work",
            }
            for server in (*state.servers, *files.project_file_servers())
            if server.server not in state.ours.wraps
        ],
        "can_sync": target is not None,
        "synced": None if own is None else {"only": own.only},
        "sync_applies": target.format.applies if target is not None else None,
        "not_covered": target.format.not_covered if target is not None else "anything",
        "not_synced": facts.not_synced or None,
        "no_hook": facts.no_hook or None,
        "trial": facts.trial,
        "problem": state.problem or None,
    }


def _health(
    homes: Sequence[tuple[McpClient, ClientEnvironment]],
    items: Sequence[Mapping[str, Any]],
    *,
    is_asked: bool,
) -> list[ClientHealth]:
    def ask(client: McpClient, environment: ClientEnvironment, wired: Wired) -> ClientHealth:
        if not is_asked:
            return ClientHealth("", ClientAnswer.UNKNOWN)
        if wired is Wired.NO:
            return ClientHealth(read_version(client, environment), ClientAnswer.UNKNOWN)
        return check_health(client, environment)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        clients, environments = [each for each, _ in homes], [home for _, home in homes]
        return list(pool.map(ask, clients, environments, [item["wired"] for item in items]))


def _explain(invocation: Invocation, items: Sequence[Mapping[str, Any]]) -> None:
    """Print the limits of what the table shows."""
    message = invocation.output.message
    if not items:
        message("No MCP client was found. Try: rootsd clients --all")
    for item in items:
        for limit in _limits(item):
            message(f"{item['client']}: {limit}")
    if any(item["wired"] is Wired.NO and item["found"] for item in items):
        message("To connect a client: rootsd connect CLIENT")
    if any(item["synced"] is not None for item in items):
        message(
            "Denied paths can be read in the settings of a synced client. After a power loss, its"
            " grants stay until the next start of rootsd."
        )
    if any(item["synced"] is None and item["can_sync"] for item in items):
        message("Decisions reach a client's own file tools only after: rootsd sync add CLIENT")


def _limits(item: Mapping[str, Any]) -> list[str]:
    found = []
    if item["hook"]:
        found.append("its permission hook does not see the paths in shell commands")
    if item["synced"] is not None:
        found.append(
            f"it applies your decisions {item['sync_applies']}."
            f" A denial does not cover {item['not_covered']}."
        )
    if item["not_synced"] is not None:
        found.append(f"it has no lists to sync: {item['not_synced']}")
    if item["no_hook"] is not None:
        found.append(f"it has no permission hook for rootsd: {item['no_hook']}")
    if item["wrapped"]:
        found += [
            f"{server['name']} is not wrapped: {server['reason']}"
            for server in item["not_wrapped"]
        ]
    return found
