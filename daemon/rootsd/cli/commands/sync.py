"""`rootsd sync`: keep access lists of clients in step with your decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import click

from rootsd.cli.answers.connecting import diff_of
from rootsd.cli.answers.decisions import DRY_RUN_NOTICE
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import VerbGroup, pass_invocation
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import pluralize, shown_path
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_text
from rootsd.sync.access import ClientOutcome
from rootsd.sync.record import GrantedTag, SyncedClient, SyncRecord, holder_of
from rootsd.sync.targets import TARGETS, SyncTarget

SECTION = "Set up"

_TAG = "tag:"
_COLUMNS = (
    Column("CLIENT", lambda item: item["client"]),
    Column("DENIED", lambda item: str(item["denied"])),
    Column("GRANTED", lambda item: str(item["granted"])),
    Column("ONLY", lambda item: item["only"] or ""),
    Column("APPLIES", lambda item: item["applies"], fit=ColumnFit.NOTE),
    path_column("FILE", lambda item: item["file"]),
)


class ConsentNeeded(RootsdError):
    """The settings file is a symlink or in a repository, and the person did not say --yes."""

    code = ErrorCode.USAGE


class ClientNotSynced(RootsdError):
    """The client is not synced."""

    code = ErrorCode.NOTHING_MATCHED


class SyncedClientItem(TypedDict):
    """A client whose access list is kept in step with the decisions, and the outcome."""

    client: str
    """What a person types, such as `claude-code`."""
    file: str
    """The settings file in one of its homes."""
    only: str | None
    """`--only` as it was given, or null."""
    denied: int
    """The number of denials in its list."""
    granted: int
    """The number of roots in its list."""
    applies: str
    """When it applies a change of its list."""
    not_covered: str
    """What a denial in its list does not cover."""
    problem: str | None
    """Why its list could not be written, or null."""
    omitted: list[str]
    """What its list cannot express, one sentence each."""


class SyncOutput(TypedDict):
    """The synced clients."""

    pid: int | None
    """The process that syncs, or null if none runs."""
    items: list[SyncedClientItem]
    """The clients."""


class SyncAddOutput(TypedDict):
    """Without `--dry-run`."""

    items: list[SyncedClientItem]
    """The one client."""


class SyncPreviewOutput(TypedDict):
    """With `--dry-run`."""

    dry_run: Literal[True]
    """Nothing was changed."""
    diff: list[str]
    """The lines of the change of the settings file."""


class SyncRemoveOutput(TypedDict):
    """The client that is no longer synced."""

    removed: str
    """What a person types, such as `claude-code`."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.group(
    "sync",
    cls=VerbGroup,
    invoke_without_command=True,
    epilog="rootsd sync add claude-code\nrootsd sync add claude-code --only tag:work\nrootsd sync",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the access lists of MCP clients in step with your decisions.

    Without a subcommand, list the synced clients. The client's own file tools may not open the
    folders that you deny. Claude Code may also open the folders that you approve with the tag
    that you name. rootsd never changes whether the client trusts a project's own hooks and
    servers.

    A separate process does this while the daemon runs. When the process ends, it withdraws the
    grants and leaves the denials. After a power loss, grants stay until the next start.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@command.command("status", prints=(SyncOutput,), epilog="rootsd sync status --json")
@pass_invocation
def status(invocation: Invocation) -> None:
    """List the synced clients, and what could not be written."""
    record = SyncRecord(invocation.places.state)
    outcomes = record.outcomes()
    items = [
        _item(client, outcomes.get(file, ClientOutcome()))
        for file, client in record.clients().items()
    ]
    extra = {"pid": holder_of(record)}
    result = CommandResult(items, warnings=record.problems(), extra=extra)
    invocation.output.show(result, _COLUMNS)
    if not items:
        invocation.output.message("No client is synced. Try: rootsd sync add claude-code")
    elif invocation.output.on_terminal:
        for item in items:
            invocation.output.message(
                f"{item['client']}: a denial does not cover {item['not_covered']}"
            )


def _item(client: SyncedClient, outcome: ClientOutcome) -> Mapping[str, Any]:
    target = TARGETS.get(client.client)
    return {
        "client": client.client,
        "file": target.merged_files(client.file)[-1] if target else client.file,
        "only": client.only,
        "denied": outcome.denied,
        "granted": outcome.granted,
        "applies": target.format.applies if target else "",
        "not_covered": target.format.not_covered if target else "",
        "problem": outcome.problem or None,
        "omitted": list(outcome.omitted),
    }


@command.command(
    "add",
    prints=(
        SyncAddOutput,
        SyncPreviewOutput,
    ),
    epilog="rootsd sync add claude-code --dry-run\nrootsd sync add claude-code --only tag:work",
)
@click.argument("client", type=click.Choice(list(TARGETS)))
@click.option(
    "--only",
    metavar="tag:T|focus",
    shell_complete=completion.sync_scopes,
    help="claude-code: also open the roots with this tag or that of the focus, at most 20",
)
@click.option(
    "--yes", is_flag=True, help="change the file even if it is a symlink or in a repository"
)
@click.option("--dry-run", is_flag=True, help="only show the change of the file")
@pass_invocation
def add(invocation: Invocation, *, client: str, only: str | None, yes: bool, dry_run: bool) -> int:
    """Sync the lists of one client from now on.

    Denied paths become readable in the client's settings file. A list in this file reaches every
    session of the client, so choose a tag for roots that all of them may open.
    """
    from rootsd.cli.answers import sync_control

    target = TARGETS[client]
    if only is not None and not target.format.grant:
        raise click.UsageError(f"rootsd opens no folders to {client}; leave out --only")
    file = str(sync_control.settings_file(target))
    granted = GrantedTag.FOCUS if only == GrantedTag.FOCUS else GrantedTag.CHOSEN
    chosen = SyncedClient(client, file, _tag(only), yes, granted)
    _ensure_consent(chosen)
    if dry_run:
        _print_preview(invocation, target, chosen)
        return Exit.OK
    invocation.announce(f"sync add {client}")
    outcome = sync_control.start_syncing(invocation, chosen)
    if invocation.output.is_json:
        invocation.output.object(CommandResult([_item(chosen, outcome or ClientOutcome())]))
    else:
        _tell_written(invocation, target, chosen, outcome)
    return Exit.FAILED if outcome is not None and outcome.problem else Exit.OK


def _tell_written(
    invocation: Invocation,
    target: SyncTarget,
    chosen: SyncedClient,
    outcome: ClientOutcome | None,
) -> None:
    """Print what is in the client's lists now, and what could not be written."""
    output = invocation.output
    shown = shown_path(target.merged_files(chosen.file)[-1])
    if outcome is None:
        output.message(
            f"{target.name} is synced, but nothing is written yet: no daemon runs. Try: rootsd up"
        )
        return
    if outcome.problem:
        output.warn([f"nothing was written: {outcome.problem}"])
        return
    count = f"{pluralize(outcome.denied, 'denial')} and {pluralize(outcome.granted, 'grant')}"
    output.message(f"{target.name} is synced: {count} in {shown}.")
    output.warn(list(outcome.omitted))
    output.message(
        f"It applies them {target.format.applies}."
        f" A denial does not cover {target.format.not_covered}."
    )


@command.command("rm", prints=(SyncRemoveOutput,), epilog="rootsd sync rm claude-code")
@click.argument("client", type=click.Choice(list(TARGETS)))
@click.option("--dry-run", is_flag=True, help="only show what would happen")
@pass_invocation
def remove(invocation: Invocation, *, client: str, dry_run: bool) -> None:
    """Stop syncing a client, and remove everything that rootsd wrote to its lists.

    This is about the home that this shell names, for example by CLAUDE_CONFIG_DIR.
    """
    from rootsd.cli.answers import sync_control

    record = SyncRecord(invocation.places.state)
    target = TARGETS[client]
    file = str(sync_control.settings_file(target))
    homes = [each.file for each in record.clients().values() if each.client == client]
    if file not in homes:
        raise _not_synced(target, file, homes)
    if dry_run:
        _print_removal(invocation, client, dry_run=True)
        invocation.output.message(f"The entries of rootsd would be removed from {client}.")
        invocation.output.message(DRY_RUN_NOTICE)
        return
    invocation.announce(f"sync rm {client}")
    sync_control.stop_syncing(invocation, record, file)
    sync_control.ensure_running(invocation)
    _print_removal(invocation, client, dry_run=False)
    invocation.output.message(f"{client} is no longer synced.")


def _not_synced(target: SyncTarget, file: str, homes: Sequence[str]) -> ClientNotSynced:
    """Return the error for the home that has `file`, with the command for another one."""
    if not homes:
        return ClientNotSynced(f"{target.name} is not synced", "rootsd sync")
    shown, other = (shown_path(each) for each in (file, homes[0]))
    return ClientNotSynced(
        f"{target.name} is not synced in {shown}, only in {other}",
        target.in_home(homes[0], f"rootsd sync rm {target.name}"),
    )


def _print_removal(invocation: Invocation, client: str, *, dry_run: bool) -> None:
    if invocation.output.is_json:
        extra = {"removed": client, "dry_run": dry_run}
        invocation.output.object(CommandResult(extra=extra))


@command.command("run", epilog="rootsd sync run")
@click.option("--ready-fd", type=int, metavar="FD", help="write 'ready' to FD when it is ready")
@pass_invocation
def run(invocation: Invocation, *, ready_fd: int | None) -> int:
    """Sync until a signal or `rootsd down` ends it. `rootsd up` and the service run this."""
    from rootsd.service import start_record
    from rootsd.sync import process

    return process.run(invocation.places.state, start_record.is_stopped, ready_fd)


@command.command("withdraw", epilog="rootsd sync withdraw")
@pass_invocation
def withdraw(invocation: Invocation) -> int:
    """Remove the grants of a process that was killed. The service runs this afterwards."""
    from rootsd.sync import process

    return process.withdraw(invocation.places.state)


def _tag(only: str | None) -> str | None:
    if only is None or only == GrantedTag.FOCUS:
        return None
    if not only.startswith(_TAG) or only == _TAG:
        raise click.UsageError("--only takes a tag, for example tag:work, or focus")
    return only.removeprefix(_TAG)


def _ensure_consent(chosen: SyncedClient) -> None:
    from rootsd.settings.settings_file import SettingsFile

    place = TARGETS[chosen.client].merged_files(chosen.file)[-1]
    reason = SettingsFile(Path(place)).special_reason()
    if reason and not chosen.is_accepted:
        raise ConsentNeeded(reason, f"rootsd sync add {chosen.client} --yes")


def _print_preview(invocation: Invocation, target: SyncTarget, chosen: SyncedClient) -> None:
    """Print the change of the settings file as a diff."""
    from rootsd.sync.process import DaemonDecisions, preview

    before, after, wanted = preview(invocation.places.state, target, chosen, DaemonDecisions())
    lines = diff_of(target.merged_files(chosen.file)[-1], before, after)
    if invocation.output.is_json:
        invocation.output.object(CommandResult(extra={"dry_run": True, "diff": lines}))
        return
    for line in lines:
        invocation.output.line(safe_text(line))
    outcome = wanted.outcome
    invocation.output.message(
        f"{pluralize(outcome.denied, 'denial')} and {pluralize(outcome.granted, 'grant')}."
    )
    invocation.output.warn(list(outcome.omitted))
    invocation.output.message(DRY_RUN_NOTICE)
