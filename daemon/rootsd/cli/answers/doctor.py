"""Check the installation from outside the daemon: the daemon, its files, this environment."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Callable, Iterator

from msgspec import Struct

from rootsd import __version__
from rootsd.cli.answers.client_homes import ClientHomes
from rootsd.cli.answers.connecting import client_environment, other_settings
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import shown_path
from rootsd.config.configuration import read_config
from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.config.schema import NotifyTable
from rootsd.connect.client_files import ClientFiles
from rootsd.connect.record import ConnectRecord
from rootsd.connect.registry import all_clients
from rootsd.control import doctor_checks
from rootsd.core.doctor import DoctorFinding, Severity, error, ok, warning
from rootsd.core.errors import BadConfig, DaemonUnreachable, RootsdError
from rootsd.core.labels import safe_label
from rootsd.link import connect
from rootsd.notify.desktop import this_desktop
from rootsd.notify.notification import DesktopUnavailable
from rootsd.places import runtime_dir
from rootsd.processes.command_path import installed_command
from rootsd.service import detect
from rootsd.service.manager import is_running
from rootsd.wall.kernel.probe import probe
from rootsd.wire.daemon import StatusQuery


class DoctorCheck(Struct, frozen=True):
    """A finding, and the action of `--fix`; None if only a person can fix it."""

    diagnosis: DoctorFinding
    fix: Callable[[], None] | None = None


def run_checks(invocation: Invocation) -> Iterator[DoctorCheck]:
    """Run all checks now, and yield their findings."""
    yield _command()
    yield from map(DoctorCheck, _environment())
    yield _configuration(invocation)
    if sys.platform == "linux":  # no other system can confine programs yet
        yield DoctorCheck(doctor_checks.check_wall(probe(), wall_requirement(POLICY_FILE)))
    yield DoctorCheck(_notifications(invocation))
    yield from map(DoctorCheck, _entries(invocation))
    yield from map(DoctorCheck, _other_settings())
    yield from _folders(invocation)
    running = _daemon(invocation)
    yield running
    if running.diagnosis.condition is not Severity.ERROR:
        yield DoctorCheck(_mcp_socket())
    yield from _service(invocation)


def _entries(invocation: Invocation) -> Iterator[DoctorFinding]:
    """Check that the programs of all entries and hooks of rootsd in clients exist."""
    topic = "client entry"
    environment = client_environment()
    record = ConnectRecord(invocation.places.state)
    try:
        homes = ClientHomes(invocation.places.state, environment)
        everything = [
            (client, home, ClientFiles(client, home, record))
            for client in all_clients().values()
            for home in homes.all(client)
        ]
    except RootsdError as trouble:
        yield error(topic, trouble.message, trouble.remedy)
        return
    for client, home, files in everything:
        hook = client.facts.hook
        started = [
            (safe_label(entry.server.label, limit=None), client.settings(home), entry.words[0])
            for entry in files.rootsd_entries()
        ]
        if hook is not None:
            file = home.locate(hook.place)
            started += [("its permission hook", file, each) for each in files.hook_programs()]
        for shown, file, program in started:
            if shutil.which(program, path=home.variables.get("PATH", "")) is None:
                again = f"rootsd connect {client.facts.name}"
                yield error(
                    topic,
                    f"{client.facts.title} cannot start {shown} in"
                    f" {shown_path(file)}:"
                    f" {safe_label(program, limit=None)} is no program",
                    home.home_of(client.facts).command(again, environment.variables),
                )


def _other_settings() -> Iterator[DoctorFinding]:
    """Name the settings of clients that `connect` does not change."""
    environment = client_environment()
    for client in all_clients().values():
        for sentence in other_settings(client, environment):
            yield ok("client settings", safe_label(sentence, limit=None))


def _notifications(invocation: Invocation) -> DoctorFinding:
    """Say what shows notifications here. A machine without a desktop is no problem."""
    topic = "notifications"
    try:
        settings = read_config(invocation.places.config_file).notify
    except BadConfig:  # another check reports it
        settings = NotifyTable()
    if not settings.enabled:
        return ok(topic, "config.toml switches them off (notify.enabled)")
    import anyio

    try:
        shown_by = safe_label(anyio.run(this_desktop().describe))
    except DesktopUnavailable as reason:
        why = safe_label(str(reason), limit=None)
        return ok(topic, f"there is no desktop that shows them ({why})")
    return ok(topic, f"{shown_by} shows them")


def _daemon(invocation: Invocation) -> DoctorCheck:
    """Check that a daemon runs, and that its version is the command's."""
    topic = "daemon"
    try:
        daemon = invocation.call(StatusQuery())["daemon"]
    except DaemonUnreachable as trouble:
        found = error(topic, trouble.message, trouble.remedy)
        return DoctorCheck(found, lambda: _ensure_running(invocation))
    except RootsdError as trouble:
        return DoctorCheck(error(topic, trouble.message, trouble.remedy))
    version = safe_label(daemon["version"])
    running = f"version {version} runs as pid {daemon['pid']}"
    if daemon["version"] == __version__:
        return DoctorCheck(ok(topic, running))
    finding = f"{running}, but this command is version {__version__}"
    return DoctorCheck(
        warning(topic, finding, "rootsd down && rootsd up"), lambda: _ensure_running(invocation)
    )


def _ensure_running(invocation: Invocation) -> None:
    from rootsd.cli.answers import lifecycle  # needed for fixes, not for findings

    lifecycle.ensure_running(invocation)


def _command() -> DoctorCheck:
    topic = "command"
    try:
        path = installed_command()
    except RootsdError as trouble:
        return DoctorCheck(warning(topic, trouble.message, trouble.remedy))
    return DoctorCheck(ok(topic, f"clients can run {safe_label(str(path), limit=None)}"))


def _environment() -> Iterator[DoctorFinding]:
    """Check the variables that an MCP client does not pass on to the servers that it starts."""
    topic = "environment"
    if folder := runtime_dir.overriding_folder():
        shown = safe_label(folder, limit=None)
        yield warning(
            topic,
            f"{runtime_dir.OVERRIDE} is set; clients find this daemon only if they set it, too",
            f'"env": {{"{runtime_dir.OVERRIDE}": "{shown}"}} beside "command"',
        )
        return
    home = os.fsdecode(runtime_dir.home_folder())
    try:
        usual = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        usual = home
    if os.path.realpath(home) != os.path.realpath(usual):
        shown = safe_label(home, limit=None)
        yield warning(
            topic,
            f"HOME is {shown} instead of {safe_label(usual, limit=None)}; clients with the usual "
            "HOME look for another daemon",
            f'"env": {{"HOME": "{shown}"}} beside "command"',
        )
        return
    yield ok(topic, "clients need no variable of this shell to find the daemon")


def _configuration(invocation: Invocation) -> DoctorCheck:
    try:
        config = read_config(invocation.places.config_file)
    except BadConfig as trouble:
        return DoctorCheck(error("configuration", trouble.summary, trouble.remedy))
    return DoctorCheck(ok("configuration", f"valid; parents: {len(config.parents)}"))


def _folders(invocation: Invocation) -> Iterator[DoctorCheck]:
    """Check that only this user may enter the daemon's folders, and the space on their disk."""
    run = next(
        (each for each in runtime_dir.find_runtime_dirs() if os.path.isdir(each.path)), None
    )
    places = [("state", invocation.places.state), ("second anchor", invocation.places.data)]
    if run is not None:
        places += [("sockets", run.path), ("sockets", run.pub), ("sockets", run.ctl)]
    for topic, folder in places:
        diagnosis = doctor_checks.check_private_folder(topic, folder)
        is_too_open = (diagnosis.remedy or "").startswith("chmod")
        yield DoctorCheck(diagnosis, _make_private(folder) if is_too_open else None)
    if os.path.isdir(invocation.places.state):
        yield DoctorCheck(doctor_checks.check_disk_space("disk", invocation.places.state))


def _make_private(folder: bytes) -> Callable[[], None]:
    return lambda: os.chmod(folder, 0o700)


def _mcp_socket() -> DoctorFinding:
    topic = "sockets"
    trouble: RootsdError = DaemonUnreachable("no daemon listens for MCP clients", "rootsd up")
    for folder in runtime_dir.find_runtime_dirs():
        try:
            connect.connect(folder.mcp_socket).close()
        except RootsdError as found:
            trouble = found if not isinstance(found, DaemonUnreachable) else trouble
        else:
            return ok(topic, f"{safe_label(folder.mcp_socket, limit=None)} accepts MCP clients")
    return error(topic, trouble.message, trouble.remedy)


def _service(invocation: Invocation) -> Iterator[DoctorCheck]:
    topic = "service"
    if runtime_dir.overriding_folder():
        return
    managing = detect.local_service_manager(os.environ)
    if not managing.is_installed():
        yield DoctorCheck(ok(topic, "not installed; rootsd up runs the daemon in the background"))
        return
    from rootsd.cli.answers import installer, service_files

    try:
        managing.ensure_reachable()
        state = managing.state()
        outdated = service_files.plan_files(invocation, managing, strict=None).outdated()
    except RootsdError as trouble:
        yield DoctorCheck(error(topic, trouble.message, trouble.remedy))
        return
    again = "rootsd service install"
    if outdated:
        yield DoctorCheck(
            warning(topic, outdated, again),
            lambda: installer.install_service(invocation, managing, strict=None),
        )
    if not is_running(state):
        finding = f"installed, but {safe_label(state['active'])}"
        yield DoctorCheck(
            warning(topic, finding, "rootsd service start"),
            lambda: installer.start_service(managing),
        )
    elif not outdated:
        yield DoctorCheck(
            ok(topic, f"{safe_label(state['active'])}, restarted {state['restarts']} times")
        )
