"""`rootsd service`: the daemon as a service of systemd or launchd."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from rootsd.cli.decisions import UNCHANGED
from rootsd.cli.flags import Command, Group, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.exits import Exit
from rootsd.core.labels import safe_label
from rootsd.wire.running import StatusQuery

_strict = click.option(
    "--strict/--no-strict",
    default=None,
    help="hide other users' and processes' files from the daemon, too (Linux; default: as it is)",
)


@click.group(
    "service",
    cls=Group,
    epilog="rootsd service install\nrootsd service status\nrootsd service logs -f",
)
def command() -> None:
    """Have systemd or launchd run the daemon: at login, and again after a crash.

    Not needed: rootsd up runs it in the background as well. Once installed, up and down use it.
    """


@command.command(
    "install",
    cls=Command,
    epilog="rootsd service install\nrootsd service install --strict\n"
    "rootsd service install --dry-run",
)
@_strict
@click.option("--dry-run", is_flag=True, help="say what would be done, and do nothing")
@pass_session
def install(session: Session, *, strict: bool | None, dry_run: bool) -> None:
    """Install the service, start it, and show how it stands. May be repeated."""
    from rootsd.cli import service
    from rootsd.cli.commands import status

    managing = service.manager()
    if dry_run:
        _rehearse(session, strict=strict)
        return
    service.install(session, managing, strict=strict)
    session.output.say(
        f"The service is installed in {safe_label(str(managing.folder), limit=None)}."
    )
    _hint_at_linger(session)
    status.show(session, session.call(StatusQuery()))


@command.command(
    "uninstall",
    cls=Command,
    epilog="rootsd service uninstall\nrootsd service uninstall --purge",
)
@click.option("--purge", is_flag=True, help="remove decisions, configuration and logs, too")
@click.option("--dry-run", is_flag=True, help="only print what would be removed")
@pass_session
def uninstall(session: Session, *, purge: bool, dry_run: bool) -> None:
    """Stop the service and remove what install wrote. Decisions are kept."""
    from rootsd.cli import purging, service

    managing = service.manager()
    if purge:
        purging.ensure_own_places()
    try:
        if dry_run:
            gone = service.installed_files(managing)
        else:
            gone = service.uninstall(session, managing)
    except service.NotInstalled:
        if not purge:
            raise
        gone = []
    if purge:
        gone += purging.own_folders(session) if dry_run else purging.purge(session)
    if session.output.is_json:
        extra = {"removed": [str(file) for file in gone], "dry_run": dry_run}
        session.output.object(Answer(extra=extra))
        return
    done = "would remove" if dry_run else "removed"
    for file in gone:
        session.output.say(f"{done} {safe_label(str(file), limit=None)}")
    if dry_run:
        session.output.say(UNCHANGED)
    elif not purge:
        kept = safe_label(session.places.state, limit=None)
        session.output.say(f"Decisions are kept in {kept}. Without a service: rootsd up")


@command.command("start", cls=Command, epilog="rootsd service start")
@pass_session
def start(session: Session) -> None:
    """Start the daemon, and return when it is ready."""
    from rootsd.cli import service

    service.start(session, service.installed_manager())
    _tell(session, "The service runs.")


@command.command("stop", cls=Command, epilog="rootsd service stop")
@pass_session
def stop(session: Session) -> None:
    """Stop the daemon, as rootsd down does: nothing but start or up starts it again."""
    from rootsd.cli import service

    service.stop(service.installed_manager())
    _tell(session, "The service is stopped.")


@command.command("restart", cls=Command, epilog="rootsd service restart")
@pass_session
def restart(session: Session) -> None:
    """Start a new daemon; sessions of MCP clients go on."""
    from rootsd.cli import service

    service.restart(session, service.installed_manager())
    _tell(session, "The service runs.")


@command.command("status", cls=Command, epilog="rootsd service status --json")
@pass_session
def status(session: Session) -> int:
    """Show how the service stands; the exit status is 0 if it runs, else 69."""
    from rootsd.cli import service

    managing = service.installed_manager()
    state = managing.state()
    wanted = service.outline(session, managing, strict=None)
    stale = [*wanted.stale(), *wanted.surplus]
    warnings = ["the service files are of another version; rootsd service install"]
    answer = Answer(
        warnings=warnings if stale else [],
        extra={
            "active": state.active, "enabled": state.enabled, "sockets": state.sockets,
            "strict": wanted.is_strict, "pid": state.pid, "restarts": state.restarts,
            "said": state.said, "folder": str(managing.folder),
        },
    )  # fmt: skip
    _show(session, answer)
    return Exit.OK if state.is_running else Exit.UNREACHABLE


@command.command("logs", cls=Command, epilog="rootsd service logs -f")
@click.option("-f", "--follow", is_flag=True, help="go on, until Ctrl-C")
@pass_session
def logs(session: Session, *, follow: bool) -> None:
    """Show what the daemon wrote, the newest last."""
    from rootsd.cli import service

    del session
    words = service.installed_manager().log_command(follow=follow)
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - fixed words; it takes our place
    except OSError as error:
        raise RootsdError(f"{words[0]} cannot be run: {error.strerror}") from error


@command.command("print", cls=Command, epilog="rootsd service print --strict")
@_strict
@pass_session
def print_(session: Session, *, strict: bool | None) -> None:
    """Print the files that install writes, and where."""
    from rootsd.cli import service

    files = service.outline(session, service.manager(), strict=strict).files
    output = session.output
    if output.is_json:
        listed = [{"path": str(file), "text": text} for file, text in files.items()]
        output.object(Answer(extra={"files": listed}))
        return
    for file, text in files.items():
        output.line(f"# {safe_label(str(file), limit=None)}\n{text}")


def _rehearse(session: Session, *, strict: bool | None) -> None:
    from rootsd.cli import service
    from rootsd.host.service import manager, supervisor
    from rootsd.host.service.manager import Finished

    told: list[Sequence[str]] = []

    def note(words: Sequence[str]) -> Finished:
        if not manager.QUESTIONS.isdisjoint(words):
            return manager.run_program(words)
        told.append(words)
        return Finished(0)

    managing = supervisor.here(os.environ, note)
    wanted = service.outline(session, managing, strict=strict)
    stale = wanted.stale()
    managing.load()
    managing.start()
    steps = [
        *(f"write {file}" for file in stale),
        *(f"keep {file}" for file in wanted.files if file not in stale),
        *(f"remove {file}" for file in wanted.surplus),
        *(f"run {' '.join(words)}" for words in told),
    ]
    if session.output.is_json:
        session.output.object(Answer(extra={"steps": steps}))
        return
    for step in steps:
        session.output.line(safe_label(step, limit=None))


def _show(session: Session, answer: Answer) -> None:
    output = session.output
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


def _tell(session: Session, sentence: str) -> None:
    """What was done, with --json how the daemon is afterwards."""
    if not session.output.is_json:
        session.output.say(sentence)
        return
    try:
        daemon = session.call(StatusQuery())["daemon"]
    except DaemonUnreachable:
        daemon = None
    session.output.object(Answer(extra={"daemon": daemon}))


def _hint_at_linger(session: Session) -> None:
    lingering = Path("/var/lib/systemd/linger")
    user = os.environ.get("USER", "")
    if lingering.is_dir() and user.isidentifier() and not (lingering / user).exists():
        session.output.say(
            f"It runs while you are logged in; to have it always: loginctl enable-linger {user}"
        )
