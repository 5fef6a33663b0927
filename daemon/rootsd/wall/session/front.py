"""Show a program what its session may see, start it behind the wall, and wait for its end."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rootsd.agents import with_program
from rootsd.core.errors import Exit
from rootsd.core.labels import first_of, safe_label
from rootsd.core.launchers import launched_program
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import text_of
from rootsd.core.wall import PushPolicy
from rootsd.places.runtime_dir import home_folder
from rootsd.wall.kernel.orders import PauseNews, RootNews
from rootsd.wall.kernel.supervision import TerminalUse
from rootsd.wall.kernel.warden import WardenNews
from rootsd.wall.session.added_roots import with_added
from rootsd.wall.session.begin import BegunWall
from rootsd.wall.session.built_wall import BuiltWall, build, check_standard_files, known_origins
from rootsd.wall.session.claimed_folder import state_folder
from rootsd.wall.session.daily_work import explain_missing
from rootsd.wall.session.engines import WallKind, engine_for, unshown_git
from rootsd.wall.session.messages import (
    MAX_ROOTS,
    PREFIX,
    describe_news,
    print_line,
    print_lines,
    untold,
)
from rootsd.wall.session.options import ConfineOptions, Opening
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.start_folder import AskAboutStart, hidden_start, start_again
from rootsd.wall.session.terminal import TerminalFront, wait_with_news
from rootsd.wall.session.user_terminal import UserTerminal
from rootsd.wall.session.view_feed import WallSubscription, answered
from rootsd.wall.system_calls import close_from
from rootsd.wall.view.default_view import CACHE_VARIABLES
from rootsd.wall.view.standard_files import STANDARD, is_in_pipeline, let_go, terminals

if TYPE_CHECKING:
    from rootsd.wall.session.agent_state import PlannedAgent

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit statuses of shells
_MISSING = b"missing"  # what the program's process reports if there is no such program
_MAX_FAILURE = 4096
_TEMPORARY_FOLDERS = ("TMPDIR", "TMP", "TEMP", "TMUX_TMPDIR")
_NO_ROOT = "no root is approved for this session yet; approve one outside the wall"
_NO_FOCUS = "no root has the tag of the focus yet; outside the wall, run rootsd focus TAG"


def confine(begun: BegunWall, ask: AskAboutStart | None) -> int:
    """Run a program behind a wall that has `begun`. Return its exit status. Raises RootsdError."""
    options, scope = begun.options, begun.scope
    kind = engine_for(options)
    home = os.path.realpath(home_folder())
    subscription = answered(begun.feed)
    start = hidden_start(scope, subscription.roots, home)
    if ask is not None and start is not None and start.can_be_asked_about(options):
        begun.warden.close()  # the feed stays: an approval may be for this session
        return ask(text_of(start.project), os.getpid()) or start_again()
    agent = _plan_agent(options, home, subscription)
    view = kind.compose(options, subscription, () if agent is None else agent.entries)
    if start is not None:
        view = view.with_start(start.path)
    roots = view.masked(subscription.roots)
    if Opening.SHOW in options.flags:
        _show(kind, view, roots, subscription.view.denied)
        return Exit.OK
    kind.check(options, view)
    check_standard_files(STANDARD)
    if agent is not None:
        _say(options, *agent.prepare())
    named, sentences = with_added(options, roots)
    _say(options, *sentences)
    begun = begun._replace(options=named)
    # In a pipeline, another program may read the keys, and with them an answer.
    wall = build(begun, kind, view, subscription, () if is_in_pipeline() else terminals())
    _introduce(wall)
    with suppress(FileNotFoundError):
        _say(options, *unshown_git(roots, os.getcwdb()))
    if start is not None and (sentence := start.sentence(view.entries)):
        print_line(sentence)
    elif not roots:
        _say(options, _NO_FOCUS if scope.focus else _NO_ROOT)
    try:
        return _run_program(wall, agent)
    finally:
        _say(options, *wall.end())


def _plan_agent(
    options: ConfineOptions, home: bytes, subscription: WallSubscription
) -> PlannedAgent | None:
    """Return what the program gets as an agent, or None if it is none. Raises RootsdError."""
    if not options.words or with_program(launched_program(options.words), "state") is None:
        return None
    # Only agents need these modules.
    from rootsd.agents.forms.state import OwnSandbox  # noqa: PLC0415
    from rootsd.wall.session.agent_state import plan_agent  # noqa: PLC0415

    state = state_folder(options.label)
    own = OwnSandbox.ALLOWED if Opening.NESTED in options.flags else OwnSandbox.OFF
    roots, denied = subscription.roots, subscription.view.denied
    return plan_agent(options.words, home, state, options.label, roots, own, denied)


def _run_program(wall: BuiltWall, agent: PlannedAgent | None) -> int:
    warden, relay = wall.warden, wall.relay
    ours, theirs = socket.socketpair()
    own = terminals()
    user = UserTerminal.of(own) if own else None
    use = TerminalUse.FOREGROUND if user is None else user.first_use()
    cell = wall.view.cell()._replace(
        terminal=theirs if own else None, terminal_fds=own, terminal_use=use
    )
    failure, failing = os.pipe2(os.O_CLOEXEC)
    waiter = os.fork()
    if waiter == 0:
        status = NOT_EXECUTABLE
        shown, remedy = "the program", "rootsd doctor"
        try:
            wall.kind.engine.enter(warden, cell)
            shown = safe_label(os.fsencode(wall.options.words[0]), limit=None)
            remedy = f"ls -l {shown}"
            failing = os.dup2(failing, 3)
            close_from(4)
            fcntl.fcntl(3, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
            _execute(wall, agent)
        except FileNotFoundError:
            status = NOT_FOUND
            os.write(failing, _MISSING)
        except BaseException as error:  # noqa: BLE001 - this process must never return
            with suppress(OSError):
                why = error.strerror if isinstance(error, OSError) else repr(error)
                os.write(failing, f"{shown} cannot be started: {why}; try: {remedy}".encode())
        finally:
            os._exit(status)
    os.close(failing)
    theirs.close()
    warden.close_gate()
    let_go((0, 1))  # this process still prints to standard error
    news = WardenNews(warden.channel)

    def describe(each: PauseNews | RootNews) -> list[str]:
        if isinstance(each, PauseNews):
            return [PREFIX + wall.describe_pause(each)]
        is_quiet = Opening.QUIET in wall.options.flags
        return [] if is_quiet else describe_news(each, cell.folder)

    if user is None:
        status = wait_with_news(waiter, news, lambda each: print_lines(describe(each)), relay)
    else:
        status = TerminalFront(ours, waiter, user, use, news, describe, relay).run()
    _explain_end(os.read(failure, _MAX_FAILURE), wall, news)
    return status


def _explain_end(message: bytes, wall: BuiltWall, news: WardenNews) -> None:
    """Print why the program did not start, or why the wall has ended, if one of these is so."""
    news.take()
    if message == _MISSING:
        missing = explain_missing(wall.options.words[0])
        print_line(f"{missing.message}; try: {missing.remedy}")
    elif message:
        print_line(message.decode("utf-8", "replace"))
    elif news.lost:
        print_line(_revoked(news.lost))
    elif os.waitpid(wall.warden.pid, os.WNOHANG)[0]:
        print_line("the warden ended, so the program was ended, too; try: rootsd doctor")


def _execute(wall: BuiltWall, agent: PlannedAgent | None) -> None:
    inside = wall.environment(os.environ)
    for name in _TEMPORARY_FOLDERS:
        if not os.access(inside.get(name, "/"), os.W_OK):
            inside.pop(name, None)  # it names a folder outside
    for name in map(os.fsdecode, CACHE_VARIABLES):
        if not _is_or_can_be(inside.get(name, "")):
            del inside[name]  # or a tool would fail, and not use its usual place
    words = wall.options.words
    if agent is not None:
        inside.update(wall.kind.placed(agent.variables(inside), wall.view))
        words = agent.words(words)
    os.execvpe(words[0], words, inside)  # noqa: S606 - the user's command


def _is_or_can_be(path: str) -> bool:
    """Return whether a folder exists, or can be made."""
    above = path
    while above and not os.path.lexists(above):
        above = os.path.dirname(above)
    return above in ("", path) or os.access(above, os.W_OK)


def _revoked(lost: Sequence[bytes]) -> str:
    shown = first_of([safe_label(path, limit=None) for path in lost], MAX_ROOTS)
    return f"the program was ended, since it may no longer reach {shown}; start it again"


def _introduce(wall: BuiltWall) -> None:
    """Print what people need to know at the start, and once in each terminal what is open."""
    for sentence in wall.warden.notes:
        print_line(sentence)
    _say(wall.options, *wall.view.notes)
    if Opening.QUIET not in wall.options.flags:
        _say(wall.options, *untold(wall.open_and_closed()))


def _say(options: ConfineOptions, *sentences: str) -> None:
    """Print what is no error, unless the person asked for quiet."""
    if Opening.QUIET not in options.flags:
        for sentence in sentences:
            print_line(sentence)


def _show(
    kind: WallKind,
    view: ComposedView,
    roots: Sequence[ConfinedRoot],
    denied: frozenset[bytes],
) -> None:
    """Print the view: one line for each path, with the reason."""
    for path, inside, reason in sorted(kind.rows(view, roots, denied)):
        sys.stdout.write(f"{safe_label(path, limit=None)}\t{inside}\t{reason}\n")
    for note in view.notes:
        print_line(note)
    print_line(f"engine: {kind.engine.kind.value}")
    for sentence in view.stays_open:
        print_line(f"open: {sentence}")
    if view.push is not PushPolicy.OFF:
        from rootsd.wall.session.origins import describe_origins  # noqa: PLC0415 - only here

        for sentence in describe_origins(roots, known_origins()):
            print_line(f"open: {sentence}")
    for part in (*view.closed, *view.left_out):
        print_line(f"closed: {part}")
