"""`rootsd service`: run the daemon as a systemd or launchd service."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import VerbGroup, pass_invocation
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import Exit, RootsdError
from rootsd.core.labels import safe_label
from rootsd.service.manager import ServiceState, is_running
from rootsd.wire.daemon import DaemonStatus, StatusQuery, StatusResult

SECTION = "Set up"

_strict = click.option(
    "--strict/--no-strict",
    default=None,
    help="also hide the files of other users and processes from the daemon (Linux; default: keep "
    "the current setting)",
)


class ServiceStepsOutput(TypedDict):
    """With `--dry-run`."""

    steps: list[str]
    """What would be done, such as `write FILE`."""


class RemovedFilesOutput(TypedDict):
    """The files and folders that were removed."""

    removed: list[str]
    """Their paths."""
    hooks_removed: list[str]
    """The settings files of clients without the permission hook of rootsd now."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


class ServiceDaemonOutput(TypedDict):
    """The daemon afterwards."""

    daemon: DaemonStatus | None
    """The daemon process, or null if none runs."""


class ServiceStatusOutput(ServiceState):
    """The status of the service."""

    strict: bool
    """Whether the files of other users and processes are hidden from the daemon."""
    folder: str
    """The folder of the service files."""


class ServiceFileItem(TypedDict):
    """A file of the service."""

    path: str
    """Where it is written."""
    text: str
    """Its text."""


class ServiceFilesOutput(TypedDict):
    """The files that `rootsd service install` writes."""

    files: list[ServiceFileItem]
    """The files."""


@click.group(
    "service",
    cls=VerbGroup,
    epilog="rootsd service install\nrootsd service status\nrootsd service logs -f",
)
def command() -> None:
    """Have systemd or launchd start the daemon at login, and restart it after a crash.

    The service is optional, because rootsd up also runs the daemon in the background. Once the
    service is installed, rootsd up and rootsd down use it.
    """


@command.command(
    "install",
    prints=(
        StatusResult,
        ServiceStepsOutput,
    ),
    epilog="rootsd service install\nrootsd service install --strict\n"
    "rootsd service install --dry-run",
)
@_strict
@click.option("--dry-run", is_flag=True, help="only print what would be done")
@pass_invocation
def install(invocation: Invocation, *, strict: bool | None, dry_run: bool) -> None:
    """Install the service, start it, and show its status. May be repeated."""
    from rootsd.cli.answers import installer
    from rootsd.cli.commands import status

    managing = installer.user_supervisor()
    if dry_run:
        _dry_run(invocation, strict=strict)
        return
    installer.install_service(invocation, managing, strict=strict)
    invocation.output.message(
        f"The service is installed in {safe_label(str(managing.folder), limit=None)}."
    )
    _print_linger_hint(invocation)
    status.print_status(invocation, invocation.call(StatusQuery()))


@command.command(
    "uninstall",
    prints=(RemovedFilesOutput,),
    epilog="rootsd service uninstall\nrootsd service uninstall --purge",
)
@click.option("--purge", is_flag=True, help="also remove decisions, configuration, and logs")
@click.option("--dry-run", is_flag=True, help="only print what would be removed")
@pass_invocation
def uninstall(invocation: Invocation, *, purge: bool, dry_run: bool) -> None:
    """Stop the service and remove its files. Decisions are kept.

    This first removes the permission hooks of rootsd from clients: without a daemon, a strict hook
    refuses each call.
    """
    from rootsd.cli.answers import installer, purging

    managing = installer.user_supervisor()
    if purge:
        purging.ensure_places_for_purge()
        purging.ensure_clients_are_disconnected(invocation)
    hooks = _remove_hooks(invocation, dry_run=dry_run) if managing.is_installed() else []
    try:
        if dry_run:
            gone = installer.installed_files(managing)
        else:
            gone = installer.uninstall_service(invocation, managing)
    except installer.ServiceNotInstalled:
        if not purge:
            raise
        gone = []
    if purge:
        gone += purging.data_folders(invocation) if dry_run else purging.purge_data(invocation)
    if invocation.output.is_json:
        files = [str(file) for file in gone]
        extra = {"removed": files, "hooks_removed": hooks, "dry_run": dry_run}
        invocation.output.object(CommandResult(extra=extra))
        return
    done = "would remove" if dry_run else "removed"
    shown = [f"the permission hook in {shorten_home(file)}" for file in hooks]
    for what in [*shown, *map(str, gone)]:
        invocation.output.message(f"{done} {safe_label(what, limit=None)}")
    if dry_run:
        invocation.output.message(DRY_RUN_NOTICE)
    elif not purge:
        kept = safe_label(invocation.places.state, limit=None)
        invocation.output.message(
            f"Decisions are kept in {kept}. To run the daemon without the service: rootsd up"
        )


def _remove_hooks(invocation: Invocation, *, dry_run: bool) -> list[str]:
    """Remove our permission hooks from all clients. Return their files. Raises RootsdError.

    Without a daemon, they can only refuse calls, or take time.
    """
    from rootsd.cli.answers.client_homes import ClientHomes
    from rootsd.cli.answers.connecting import ClientConnector, client_environment
    from rootsd.cli.answers.questions import Questions
    from rootsd.connect.registry import all_clients

    environment = client_environment()
    homes = ClientHomes(invocation.places.state, environment)
    questions = Questions(invocation, yes=True, dry_run=dry_run)
    connector = ClientConnector(invocation, questions, environment)
    found = [
        connector.remove_hook(client, home)
        for client in all_clients().values()
        for home in homes.all(client)
    ]
    return [file for file in found if file is not None]


@command.command("start", prints=(ServiceDaemonOutput,), epilog="rootsd service start")
@pass_invocation
def start(invocation: Invocation) -> None:
    """Start the daemon, and return when it is ready."""
    from rootsd.cli.answers import installer

    installer.start_service(installer.installed_supervisor())
    _print_done(invocation, "The service runs.")


@command.command("stop", prints=(ServiceDaemonOutput,), epilog="rootsd service stop")
@pass_invocation
def stop(invocation: Invocation) -> None:
    """Stop the daemon, as rootsd down does, until service start or rootsd up."""
    from rootsd.cli.answers import installer

    installer.stop_service(installer.installed_supervisor())
    _print_done(invocation, "The service is stopped.")


@command.command("restart", prints=(ServiceDaemonOutput,), epilog="rootsd service restart")
@pass_invocation
def restart(invocation: Invocation) -> None:
    """Restart the daemon. Sessions of MCP clients continue."""
    from rootsd.cli.answers import installer

    installer.restart_service(installer.installed_supervisor())
    _print_done(invocation, "The service runs.")


@command.command("status", prints=(ServiceStatusOutput,), epilog="rootsd service status --json")
@pass_invocation
def status(invocation: Invocation) -> int:
    """Show the status of the service. The exit status is 0 if it runs, else 69."""
    from rootsd.cli.answers import installer, service_files

    managing = installer.installed_supervisor()
    state = managing.state()
    wanted = service_files.plan_files(invocation, managing, strict=None)
    stale = [*wanted.stale(), *wanted.surplus]
    warnings = ["the service files are of another version; try: rootsd service install"]
    strict, folder = wanted.settings.strict, str(managing.folder)
    extra = ServiceStatusOutput(**state, strict=strict, folder=folder)
    _show(invocation, CommandResult(warnings=warnings if stale else [], extra=extra))
    return Exit.OK if is_running(state) else Exit.UNREACHABLE


@command.command("logs", epilog="rootsd service logs -f")
@click.option("-f", "--follow", is_flag=True, help="also print new lines, until Ctrl-C")
@pass_invocation
def logs(invocation: Invocation, *, follow: bool) -> None:
    """Show the log of the daemon, the newest lines last."""
    from rootsd.cli.answers import installer

    del invocation
    words = installer.installed_supervisor().log_command(follow=follow)
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - fixed words; it replaces us
    except OSError as error:
        raise RootsdError(f"{words[0]} cannot be run: {error.strerror}") from error


@command.command("print", prints=(ServiceFilesOutput,), epilog="rootsd service print --strict")
@_strict
@pass_invocation
def print_(invocation: Invocation, *, strict: bool | None) -> None:
    """Print the files that install writes, with their paths."""
    from rootsd.cli.answers import installer, service_files

    files = service_files.plan_files(invocation, installer.user_supervisor(), strict=strict).files
    output = invocation.output
    if output.is_json:
        listed = [{"path": str(file), "text": text} for file, text in files.items()]
        output.object(CommandResult(extra={"files": listed}))
        return
    for file, text in files.items():
        output.line(f"# {safe_label(str(file), limit=None)}\n{text}")


def _dry_run(invocation: Invocation, *, strict: bool | None) -> None:
    from rootsd.cli.answers import service_files
    from rootsd.service import detect, manager
    from rootsd.service.manager import ProgramResult

    programs: list[Sequence[str]] = []

    def record(words: Sequence[str]) -> ProgramResult:
        if not manager.QUERY_VERBS.isdisjoint(words):
            return manager.run_program(words)
        programs.append(words)
        return ProgramResult(0)

    managing = detect.local_service_manager(os.environ, record)
    wanted = service_files.plan_files(invocation, managing, strict=strict)
    stale = wanted.stale()
    managing.load()
    managing.start()
    steps = [
        *(f"write {file}" for file in stale),
        *(f"keep {file}" for file in wanted.files if file not in stale),
        *(f"remove {file}" for file in wanted.surplus),
        *(f"run {' '.join(words)}" for words in programs),
    ]
    if invocation.output.is_json:
        invocation.output.object(CommandResult(extra={"steps": steps}))
        return
    for step in steps:
        invocation.output.line(safe_label(step, limit=None))


def _show(invocation: Invocation, answer: CommandResult) -> None:
    output = invocation.output
    if output.is_json:
        output.object(answer)
        return
    for name, value in answer.extra.items():
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        else:
            shown = safe_label(str(value), limit=None) if value not in (None, "") else ""
        output.rows([[name, shown]])
    output.warn(answer.warnings)


def _print_done(invocation: Invocation, sentence: str) -> None:
    """Print the sentence; with --json, print the state of the daemon afterwards."""
    if not invocation.output.is_json:
        invocation.output.message(sentence)
        return
    status = invocation.status_if_running()
    invocation.output.object(CommandResult(extra={"daemon": status and status["daemon"]}))


def _print_linger_hint(invocation: Invocation) -> None:
    lingering = Path("/var/lib/systemd/linger")
    user = os.environ.get("USER", "")
    if lingering.is_dir() and user.isidentifier() and not (lingering / user).exists():
        invocation.output.message(
            f"It runs while you are logged in. To run it always: loginctl enable-linger {user}"
        )
