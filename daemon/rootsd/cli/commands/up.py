"""`rootsd up`: watch folders, start the daemon, show what it finds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.commands import status as status_command
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import pluralize, shown_path
from rootsd.cli.text.render import CommandResult, PathItem
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.paths import contains, text_of
from rootsd.wire.daemon import StatusQuery, StatusResult
from rootsd.wire.request import ApplyMode
from rootsd.wire.scans import ScanResponse

SECTION = "Set up"


class NoParentConfigured(RootsdError):
    """No folder to watch is configured."""

    code = ErrorCode.USAGE


class UpOutput(ScanResponse, StatusResult):
    """The scan, and the status of the daemon."""


class UpDryRunOutput(TypedDict):
    """With `--dry-run`."""

    items: list[PathItem]
    """The folders that would be watched."""
    dry_run: Literal[True]
    """Nothing was changed."""
    running: bool
    """Whether a daemon runs already."""


@verb(
    "up",
    prints=(
        UpOutput,
        UpDryRunOutput,
    ),
    epilog="rootsd up ~/src ~/clients\nrootsd up",
)
@click.argument("parents", nargs=-1, metavar="[PARENT]...", shell_complete=completion.folders)
@click.option("--foreground", is_flag=True, help="run the daemon in this process")
@click.option("--dry-run", is_flag=True, help="only show what would be watched")
@pass_invocation
def command(
    invocation: Invocation, *, parents: tuple[str, ...], foreground: bool, dry_run: bool
) -> int:
    """Watch folders, start the daemon, and show what it finds.

    You can repeat this command at any time. No project is published before you approve it.

    On a terminal, up asks first about your whole home folder, and about a folder inside one that
    is watched already.
    """
    from rootsd.cli.answers import lifecycle, sync_control

    if dry_run:
        _dry_run(invocation, parents)
        return 0
    agreed = _agreed(invocation, _new_parents(invocation, parents), ApplyMode.APPLY)
    if foreground:
        _add(invocation, agreed)
        return _run_in_foreground(invocation)
    lifecycle.ensure_running(invocation)
    sync_control.ensure_running(invocation)
    # Only a running daemon can record which parents are new and who added them.
    if fresh := _add(invocation, agreed):
        names = " ".join(text_of(path) for path in fresh)
        lifecycle.reload_if_running(invocation, f"{invocation.command} {names}")
    found = invocation.scan()
    status = invocation.call(StatusQuery())
    _show(invocation, found, status)
    return 0


def _agreed(invocation: Invocation, fresh: list[bytes], effect: ApplyMode) -> list[bytes]:
    """Return the new parents, without those that a person named by mistake.

    On a terminal, ask about the home folder, and about a folder that is watched already. A dry run
    only prints the question. Raises NoParentConfigured if there would be no parent at all.
    """
    from rootsd.config.configuration import read_config

    known = read_config(invocation.config_to_edit).parents
    questions = Questions(invocation, yes=False, dry_run=False)
    agreed = []
    for path in fresh:
        around = next((each for each in known if contains(each.path, path)), None)
        shown, question = shown_path(path), ""
        if around is not None:
            where = f"{shown_path(around.path)} (depth {around.depth})"
            question = f"{shown} is in {where}, which is watched already. Watch it, too?"
        elif path == os.fsencode(Path.home().resolve()):
            question = f"{shown} is your whole home folder. Watch all projects in it?"
        if question and questions.has_person:
            if effect is ApplyMode.DRY_RUN:
                invocation.output.message(f"It would ask: {question}")
            elif not questions.agrees_to_decide(question):
                continue
        agreed.append(path)
    if not agreed and not known:
        raise NoParentConfigured(
            "no folder is watched yet; name a folder that holds projects", "rootsd up ~/src"
        )
    return agreed


def _add(invocation: Invocation, paths: list[bytes]) -> list[bytes]:
    """Add the parents to the configuration, and return those that are new."""
    from rootsd.cli.answers import config_edit

    fresh = config_edit.add_parents(invocation, paths, {})
    for path in fresh:
        invocation.output.message(f"{shown_path(path)} is now watched.")
    return fresh


def _new_parents(invocation: Invocation, typed: tuple[str, ...]) -> list[bytes]:
    """Validate all parents, and return those that are new."""
    from rootsd.cli.answers import config_edit

    checked = [config_edit.validate_parent(invocation, path) for path in typed]
    return config_edit.add_parents(invocation, checked, {}, ApplyMode.DRY_RUN)


def _dry_run(invocation: Invocation, typed: tuple[str, ...]) -> None:
    """Print what would be watched, and whether a daemon would be started."""
    from rootsd.cli.answers import control_client

    fresh = _agreed(invocation, _new_parents(invocation, typed), ApplyMode.DRY_RUN)
    is_running = control_client.is_running()
    output = invocation.output
    if output.is_json:
        items = [{"path": text_of(path)} for path in fresh]
        output.object(CommandResult(items, extra={"dry_run": True, "running": is_running}))
        return
    for path in fresh:
        output.message(f"{shown_path(path)} would be watched.")
    if not is_running:
        output.message("The daemon would be started.")
    output.message(DRY_RUN_NOTICE)


def _run_in_foreground(invocation: Invocation) -> int:
    from rootsd.cli.answers.run_daemon import run_in_foreground
    from rootsd.service import start_record

    start_record.record_start()
    invocation.output.message("The daemon runs here until Ctrl-C.")
    return run_in_foreground(invocation)


def _show(invocation: Invocation, found: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    from rootsd.cli.commands.scan import notices, scan_result

    output = invocation.output
    if output.is_json:
        scan, whole = scan_result(found), status_command.status_result(status)
        output.object(
            type(scan)(scan.items, whole.revision, whole.warnings, {**scan.extra, **whole.extra})
        )
        return
    status_command.print_status(invocation, status)
    # No count of new projects: the daemon may have scanned before this command did.
    output.message(
        f"{pluralize(found['projects'], 'project')} in {pluralize(found['folders'], 'folder')}, "
        f"scanned in {found['seconds']:.2f} s."
    )
    for more in notices(found):
        output.message(more)
    if waiting := status["counts"]["waiting"]:
        what = "1 project needs" if waiting == 1 else f"{waiting} projects need"
        output.message(f"{what} your decision: rootsd pending")
    elif not status["counts"]["published"]:
        output.message("New projects there will be listed by: rootsd pending")
