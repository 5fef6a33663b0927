"""`rootsd init`: set up rootsd step by step, and ask before each one."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE
from rootsd.cli.answers.first_run import guess_parents, shell_line
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import pluralize, shown_path
from rootsd.cli.text.render import CommandResult, PathsOutput
from rootsd.cli.text.typed_command import as_typed
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.paths import text_of
from rootsd.files.repository_folder import repository_around
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.projects import WhyQuery

SECTION = "Set up"


class QuestionsNeeded(RootsdError):
    """There is no person to ask, and no `--yes`."""

    code = ErrorCode.USAGE


class NothingToWatch(RootsdError):
    """No folder to watch was found or chosen."""

    code = ErrorCode.USAGE


@verb("init", prints=(PathsOutput,), epilog="rootsd init\nrootsd init ~/src --yes")
@click.argument("parents", nargs=-1, metavar="[PARENT]...", shell_complete=completion.folders)
@click.option("--yes", is_flag=True, help="take every step without a question")
@click.option("--dry-run", is_flag=True, help="only show the questions")
@pass_invocation
def command(invocation: Invocation, *, parents: tuple[str, ...], yes: bool, dry_run: bool) -> int:
    """Set up rootsd: folders to watch, the service, your shell, and your clients.

    On a terminal, init first prints what your agents can read and write now (rootsd exposure).

    Without PARENT, init looks for repositories below your home folder, and asks about each folder
    that holds some. It asks before each step; --yes answers for you. It publishes nothing, unless
    you say yes to the project in the working directory.
    """
    steps = Questions(invocation, yes=yes, dry_run=dry_run)
    if not (yes or dry_run or steps.has_person):
        raise QuestionsNeeded("init asks questions, so it needs a terminal", "rootsd init --yes")
    _show_exposure(invocation)
    chosen = _choose_parents(invocation, steps, parents)
    if not dry_run:
        _start(invocation, steps, chosen)
    elif _can_have_service():
        steps.agrees(_SERVICE_QUESTION)
    _set_up_shell(steps)
    _connect_clients(invocation, steps)
    _confine_agents(invocation, steps)
    if dry_run:
        invocation.output.message(DRY_RUN_NOTICE)
        return Exit.OK
    if invocation.output.is_json:
        items = [{"path": text_of(path)} for path in chosen]
        invocation.output.object(CommandResult(items))
        return Exit.OK
    return _decide_here(invocation, steps)


def _show_exposure(invocation: Invocation) -> None:
    """Print what the agents here can reach before anything is set up, to a person."""
    if invocation.output.on_terminal:
        from rootsd.cli.answers.exposed import measure_here, show_screen

        report, warnings = measure_here(invocation)
        show_screen(invocation.output, report)
        invocation.output.warn(warnings)


def _choose_parents(invocation: Invocation, steps: Questions, typed: Sequence[str]) -> list[bytes]:
    """Return the new parents that a person chose. Raises NothingToWatch if there is no project."""
    from rootsd.cli.answers import config_edit
    from rootsd.config.configuration import read_config

    known = [parent.path for parent in read_config(invocation.places.config_file).parents]
    if typed:
        return [config_edit.validate_parent(invocation, path) for path in typed]
    home = Path.home()
    chosen = []
    for guess in guess_parents(home, Path(invocation.cwd)):
        count = guess.repositories
        note = f"({count} repositories)" if count > 1 else "(1 repository)"
        chosen += _asked(invocation, steps, guess.path, note, known)
    if not (chosen or known or steps.dry_run or _repository_here(invocation)):
        raise NothingToWatch("no folder with projects was chosen", "rootsd init ~/src")
    return chosen


def _repository_here(invocation: Invocation) -> Path | None:
    """Return the repository of the working directory. The home folder is none, even with git."""
    found = repository_around(Path(invocation.cwd))
    return None if found == Path.home() else found


def _asked(
    invocation: Invocation, steps: Questions, folder: Path, note: str, known: Sequence[bytes]
) -> list[bytes]:
    """Return the folder as a list if it can be a parent, is none yet, and a person agrees."""
    from rootsd.cli.answers import config_edit

    path = os.fsencode(folder)
    if any(path == each or path.startswith(each + b"/") for each in known):
        return []
    try:
        canonical = config_edit.validate_parent(invocation, str(folder))
    except RootsdError:
        return []
    shown = shown_path(canonical)
    return [canonical] if steps.agrees(f"Watch {shown} {note}?") else []


_SERVICE_QUESTION = "Start rootsd at each login, as a service?"


def _can_have_service() -> bool:
    """Return whether a service can be installed and is not yet."""
    from rootsd.cli.answers import installer

    try:
        managing = installer.user_supervisor()
        if managing.is_installed() or not managing.is_available():
            return False
        managing.ensure_reachable()
    except RootsdError:
        return False
    return True


def _start(invocation: Invocation, steps: Questions, chosen: Sequence[bytes]) -> None:
    """Start the daemon, as a service if a person wants one, and watch the chosen folders."""
    from rootsd.cli.answers import config_edit, installer, lifecycle, sync_control

    if _can_have_service() and steps.agrees(_SERVICE_QUESTION):
        installer.install_service(invocation, installer.user_supervisor(), strict=None)
    else:
        lifecycle.ensure_running(invocation)
    sync_control.ensure_running(invocation)
    fresh = config_edit.add_parents(invocation, chosen, {})
    if fresh:
        names = " ".join(map(text_of, fresh))
        lifecycle.reload_if_running(invocation, f"{invocation.command} {names}")
    if not invocation.call(StatusQuery())["parents"]:
        invocation.output.message("No folder is watched yet. To watch one: rootsd up ~/src")
        return
    found = invocation.scan()
    pending = invocation.call(StatusQuery())["counts"]["waiting"]
    invocation.output.message(
        f"Found {pluralize(found['projects'], 'project')}; {pending} to decide: rootsd pending"
    )


_SHELL_QUESTIONS = {
    "completion": "Complete rootsd's words in {shell}, by a line in {file}?",
    "shell-init": "Add rcd, which changes to a root by its name, by a line in {file}?",
}


def _set_up_shell(steps: Questions) -> None:
    """Offer the lines for the start-up file of the shell."""
    if as_typed("rootsd init") != "rootsd init":
        steps.output.message("Your shell gets no completion yet: rootsd is not on its PATH.")
        return
    for script, question in _SHELL_QUESTIONS.items():
        line = shell_line(script, Path.home(), os.environ)
        if line is None or line.is_there():
            continue
        shown = shown_path(line.file)
        if steps.agrees(question.format(shell=line.shell, file=shown)):
            try:
                line.append()
            except OSError as error:
                steps.output.warn([f"{shown} cannot be changed: {error.strerror}"])


def _connect_clients(invocation: Invocation, steps: Questions) -> None:
    """Offer to connect each client that is there, and print how to connect others."""
    from rootsd.cli.answers.connecting import (
        ClientConnector,
        client_environment,
        found_clients,
        is_tried,
        place_variables,
    )
    from rootsd.connect.client_files import Wired, Wiring
    from rootsd.processes.command_path import NoStableCommand, installed_command

    environment = client_environment()
    connector = ClientConnector(invocation, steps, environment)
    output = invocation.output
    try:
        rootsd = str(installed_command())
    except NoStableCommand as error:
        output.warn([f"no client is connected: {error.sentence}"])
        return
    for client in found_clients(environment):
        title, wiring = client.facts.title, connector.wiring(client)
        if wiring.state().wired is Wired.NO:
            shown = shown_path(wiring.settings)
            if not is_tried(client):
                output.message(f"To connect {title}: rootsd connect {client.facts.name}")
                continue
            if steps.agrees(f"Connect {title}, in {shown}?"):
                connector.connect(client, Wiring(rootsd, variables=place_variables()))
            elif not steps.dry_run:
                continue
        connector.offer_worktrees(client)
    output.warn(connector.report.warnings)
    for message in connector.report.messages:
        output.message(message)
    output.message(f"Any other MCP client runs: {shlex.join((rootsd, 'bridge'))}")


def _confine_agents(invocation: Invocation, steps: Questions) -> None:
    """Offer to start each agent that is there behind the wall, whenever it is typed."""
    from rootsd.agents import files_with
    from rootsd.cli.answers.connecting import ClientConnector, client_environment
    from rootsd.cli.answers.typed_agents import agents_now
    from rootsd.connect.trial import has_wall

    programs = [agent.PROGRAMS[0] for agent in files_with("state") if agent.state().is_tried]
    known = agents_now(invocation)
    here = [name for name in programs if name not in known and shutil.which(name)]
    if not (here and has_wall()):
        return
    question = "Start {} behind the wall whenever you type it?"
    if chosen := [name for name in here if steps.agrees(question.format(name))]:
        connector = ClientConnector(invocation, steps, client_environment())
        connector.confine(chosen)
        for message in connector.report.messages:
            invocation.output.message(message)


def _decide_here(invocation: Invocation, steps: Questions) -> int:
    """Offer to approve the project in the working directory, if nothing is decided about it."""
    from rootsd.cli.answers.terminal_face import TerminalFace, confirm_and_send
    from rootsd.wire.decisions import AddRequest, DecideRequest, DecisionVerb

    projects = invocation.call(WhyQuery(invocation.cwd))["items"]
    here = _repository_here(invocation)
    if projects and projects[0]["verdict"] != "pending":
        return Exit.OK
    path: str | None = projects[0]["path"] if projects else str(here) if here else None
    if path is None:
        return Exit.OK
    shown = shown_path(path)
    if not steps.agrees_to_decide(f"Publish the project in {shown} to your MCP clients?"):
        return Exit.OK
    if not projects:  # it lies in no folder that is watched
        projects = invocation.call(AddRequest(path, invocation.cwd))["items"]
    order = DecideRequest(DecisionVerb.APPROVE, cwd=invocation.cwd, refs=(projects[0]["id"],))
    return confirm_and_send(TerminalFace(invocation), order)
