"""`rootsd up`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli import completion
from rootsd.cli.commands import status as status_command
from rootsd.cli.decisions import DRY_RUN_NOTICE
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import pluralize, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.decisions import ApplyMode


class NoParentConfigured(RootsdError):
    """There is no folder to look in."""

    code = ErrorCode.USAGE


@click.command(
    "up",
    cls=VerbCommand,
    epilog="rootsd up ~/src ~/clients\nrootsd up",
)
@click.argument("parents", nargs=-1, metavar="[PARENT]...", shell_complete=completion.folders)
@click.option("--foreground", is_flag=True, help="be the daemon, instead of starting it")
@click.option("--dry-run", is_flag=True, help="only say what would be watched")
@pass_invocation
def command(
    invocation: Invocation, *, parents: tuple[str, ...], foreground: bool, dry_run: bool
) -> int:
    """Watch folders, make the daemon run, and show what is there.

    May be repeated: what is so already stays so. Nothing that is found is published before you
    approve it.
    """
    from rootsd.cli import lifecycle

    if dry_run:
        _dry_run(invocation, parents)
        return 0
    _require_parents(invocation, parents)
    if foreground:
        _add(invocation, parents)
        return _run_in_foreground(invocation)
    lifecycle.ensure_running(invocation)
    # Only a daemon that runs can record which parents are new, and who added them.
    if fresh := _add(invocation, parents):
        names = " ".join(text_of(path) for path in fresh)
        lifecycle.reload_if_running(invocation, f"{invocation.command} {names}")
    found = invocation.scan()
    status = invocation.call(StatusQuery())
    _show(invocation, found, status)
    return 0


def _add(invocation: Invocation, typed: tuple[str, ...]) -> list[bytes]:
    """Write the parents into the configuration, and return those that are new."""
    fresh = _added(invocation, typed, ApplyMode.APPLY)
    for path in fresh:
        invocation.output.say(f"{_shown(path)} is watched from now on.")
    return fresh


def _require_parents(invocation: Invocation, typed: tuple[str, ...]) -> list[bytes]:
    """Validate the parents, and return those that are new. Raises NoParent where there is none to
    watch then."""
    from rootsd.system.config import read_config

    fresh = _added(invocation, typed, ApplyMode.DRY_RUN)
    if not fresh and not read_config(invocation.config_to_edit).parents:
        raise NoParentConfigured(
            "no folder is watched yet; name one that holds projects", "rootsd up ~/src"
        )
    return fresh


def _added(invocation: Invocation, typed: tuple[str, ...], effect: ApplyMode) -> list[bytes]:
    """Validate all, then write all; those that were no parents yet."""
    if not typed:
        return []
    from rootsd.cli import config_edit  # what writes TOML takes long to load

    checked = [config_edit.validate_parent(invocation, path) for path in typed]
    return config_edit.add_parents(invocation, checked, {}, effect)


def _dry_run(invocation: Invocation, typed: tuple[str, ...]) -> None:
    """Say what would be watched, and whether a daemon would be started."""
    from rootsd.cli import control_client

    fresh = _require_parents(invocation, typed)
    is_running = control_client.is_running()
    output = invocation.output
    if output.is_json:
        items = [{"path": text_of(path)} for path in fresh]
        output.object(CommandResult(items, extra={"dry_run": True, "running": is_running}))
        return
    for path in fresh:
        output.say(f"{_shown(path)} would be watched.")
    if not is_running:
        output.say("The daemon would be started.")
    output.say(DRY_RUN_NOTICE)


def _shown(path: bytes) -> str:
    return safe_label(shorten_home(text_of(path)), limit=None)


def _run_in_foreground(invocation: Invocation) -> int:
    from rootsd.cli.run_daemon import run_in_foreground
    from rootsd.service import start_record

    start_record.save_start_record(start_record.make_start_record(invocation.places.log))
    invocation.output.say("The daemon runs here until Ctrl-C.")
    return run_in_foreground(invocation)


def _show(invocation: Invocation, found: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    from rootsd.cli.commands.scan import incomplete_notice, scan_result

    output = invocation.output
    if output.is_json:
        scan, whole = scan_result(found), status_command.status_result(status)
        output.object(
            type(scan)(scan.items, whole.revision, whole.warnings, {**scan.extra, **whole.extra})
        )
        return
    status_command.print_status(invocation, status)
    # What is new since when means little here: the daemon may have looked before we asked.
    output.say(
        f"{pluralize(found['projects'], 'project')} in {pluralize(found['folders'], 'folder')}, "
        f"looked through in {found['seconds']:.2f} s."
    )
    if more := incomplete_notice(found):
        output.say(more)
    if waiting := status["counts"]["waiting"]:
        wait = "waits" if waiting == 1 else "wait"
        output.say(f"{waiting} {wait} for your decision: rootsd pending")
    elif not status["counts"]["published"]:
        output.say("Clone or create a project there, and it shows up: rootsd pending")
