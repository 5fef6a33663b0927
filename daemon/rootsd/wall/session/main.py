"""Run `rootsd confine`: subscribe, build the wall, start the program in it, and wait.

This process is the *front*. It forks the warden, then the program's waiter. It holds neither roots
nor privileges; if it dies, the kernel ends the program.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rootsd.agents import with_program
from rootsd.config.policy_file import POLICY_FILE, wall_requirement
from rootsd.core.errors import Exit, RootsdError, exit_of
from rootsd.core.labels import first_of, safe_label
from rootsd.core.mount_plan import ConfinedRoot, RemovedRoot
from rootsd.core.paths import text_of
from rootsd.core.wall import PushPolicy, WallUse
from rootsd.link.sandbox import CONFINED_VARIABLE
from rootsd.places.base_folders import walls_folder
from rootsd.places.runtime_dir import home_folder
from rootsd.wall.git.session_baseline import SessionBaseline
from rootsd.wall.git.session_report import SessionEnd
from rootsd.wall.git.session_reports import conclude_killed
from rootsd.wall.git.wall_folders import LOCK
from rootsd.wall.kernel.orders import PauseNews, PauseState, RootNews
from rootsd.wall.kernel.own_storage import KEPT
from rootsd.wall.kernel.pause import ProgramPause
from rootsd.wall.kernel.supervision import Layer, TerminalUse
from rootsd.wall.kernel.warden import (
    FollowRoots,
    GiveFile,
    SetRoots,
    WallSetupFailed,
    Warden,
    WardenFeed,
    WardenNews,
    WardenSettings,
)
from rootsd.wall.session.daily_work import explain_missing
from rootsd.wall.session.engines import CannotConfine, WallKind, engine_for, unshown_git
from rootsd.wall.session.kept_names import folder_name, remove_left
from rootsd.wall.session.messages import (
    MAX_ROOTS,
    PREFIX,
    describe_news,
    print_line,
    print_lines,
    untold,
)
from rootsd.wall.session.options import (
    USAGE,
    ConfineOptions,
    ConfineUsageError,
    Opening,
    parse_arguments,
    scope_of,
)
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.relay_questions import Asked
from rootsd.wall.session.required_wall import refuse_opening
from rootsd.wall.session.running_walls import claim
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.start_folder import AskAboutStart, hidden_start, start_again
from rootsd.wall.session.terminal import TerminalFront, wait_with_news
from rootsd.wall.session.user_terminal import UserTerminal
from rootsd.wall.session.view_feed import ViewFeed, WallSubscription, subscribe
from rootsd.wall.session.worktree_front import worktree_entries
from rootsd.wall.system_calls import close_from, is_supported_machine
from rootsd.wall.view.default_view import CACHE_VARIABLES, DEFAULTS, SCRUBBED_VARIABLES
from rootsd.wall.view.standard_files import (
    STANDARD,
    fill_closed_files,
    is_in_pipeline,
    let_go,
    refused_kind,
    terminals,
)
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope

if TYPE_CHECKING:
    from rootsd.wall.session.agent_state import PlannedAgent

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit statuses of shells
_MISSING = b"missing"  # what the program's process reports if there is no such program
_ORIGINS = b"/origins.json"
_MAX_SLOTS = 256
_MAX_FAILURE = 4096
_TEMPORARY_FOLDERS = ("TMPDIR", "TMP", "TEMP", "TMUX_TMPDIR")
_NO_ROOT = "no root is approved for this session yet; approve one outside the wall"
_NO_FOCUS = "no root has the tag of the focus yet; outside the wall, run rootsd focus TAG"


class OwnedWall(NamedTuple):
    """A wall that its owner changes by orders over `warden.channel`.

    `subscription` still has its connection, for the owner to follow. Programs run `without` some
    layers. The `relay` serves git inside, and outlives a warden.
    """

    label: str
    kind: WallKind
    view: ComposedView
    warden: Warden
    subscription: WallSubscription
    without: frozenset[Layer] = frozenset()
    relay: PushRelay | None = None

    def sentences(self) -> Iterator[str]:
        """Yield what people need to know at the start."""
        return _sentences(self.warden, self.view)

    def end(self) -> None:
        """End the warden and the relay, and print what the programs have left behind."""
        for sentence in _end(self.warden, self.relay):
            print_line(sentence)

    def renewed(self, roots: tuple[ConfinedRoot, ...], denied: frozenset[bytes]) -> OwnedWall:
        """End the warden, and return the wall with another one that shows `roots`.

        It shows nothing of the `denied` folders.

        Raises RootsdError.
        """
        self.warden.close_gate()
        for sentence in _end(self.warden, None):
            print_line(sentence)
        self.warden.reap()
        settings = _warden_settings(self.view, denied, self.without)
        folder = _claim_folder(self.label)
        warden = _start(self.kind, settings, roots, None, folder, self.relay)
        return self._replace(warden=warden)


def main(argv: list[str], ask: AskAboutStart | None = None) -> int:
    """Run the program with the arguments after `confine`. Return its exit status.

    `ask` asks about a pending project in which the program is about to start.
    """
    if argv[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return Exit.OK
    fill_closed_files()
    try:
        options = parse_arguments(argv)
        if (requirement := wall_requirement(POLICY_FILE)) is not None:
            refuse_opening(options, requirement)
        _check_platform()
        return _confine(options, ask)
    except ConfineUsageError as error:
        sys.stderr.write(f"{PREFIX}{error}\n{USAGE}\n")
        return Exit.USAGE
    except RootsdError as error:
        print_line(f"{error.message}; try: {error.remedy}")
        return exit_of(error.code)


def build_owned_wall(options: ConfineOptions, scope: RequestedScope) -> OwnedWall:
    """Build a wall whose owner orders each change. Raises RootsdError.

    The owner is `rootsd run`, so the daemon lists its server as a session, too.
    """
    fill_closed_files()
    _check_platform()
    _check_standard_files((2,))  # the owner makes pipes for the others
    kind = engine_for(options)
    subscription = _subscribe(options, scope, kind, WallUse.SERVER)
    denied = subscription.view.denied
    view = kind.compose(options, subscription).without_denied(denied)
    roots = tuple(view.with_hidden(root) for root in subscription.roots)
    kind.check(options, view)
    without = _disabled_layers(options)
    settings = _warden_settings(view, denied, without)
    folder = _claim_folder(options.label)
    relay = _relay_for(view, folder[0], ())
    relay.start()  # the proxy has no time for it
    warden = _start(kind, settings, roots, None, folder, relay)
    return OwnedWall(options.label, kind, view, warden, subscription, without, relay)


def _check_platform() -> None:
    if sys.platform != "linux":
        raise CannotConfine(
            "confine works on Linux only: macOS cannot take a folder away from a running program",
            "rootsd run, without --confine",
        )
    if not is_supported_machine():
        raise CannotConfine("confine does not know this processor's system calls", "uname -m")
    if os.environ.get(CONFINED_VARIABLE):
        raise CannotConfine(
            "this program is confined already", "the program itself, without rootsd confine"
        )


def _confine(options: ConfineOptions, ask: AskAboutStart | None) -> int:
    kind = engine_for(options)
    scope = scope_of(options)
    home = os.path.realpath(home_folder())
    subscription = _subscribe(options, scope, kind, WallUse.PROGRAM)
    start = hidden_start(scope, subscription.roots, home)
    if ask is not None and start is not None and start.can_be_asked_about(options):
        return ask(text_of(start.project), os.getpid()) or start_again()
    denied = subscription.view.denied
    agent = _plan_agent(options, home, subscription.roots, denied)
    extra = () if agent is None else agent.entries
    view = kind.compose(options, subscription, extra).without_denied(denied)
    if start is not None:
        view = view.with_start(start.path)
    roots = tuple(view.with_hidden(root) for root in subscription.roots)
    if Opening.SHOW in options.flags:
        _show(kind, view, roots, denied)
        return Exit.OK
    kind.check(options, view)
    _check_standard_files(STANDARD)
    if agent is not None:
        _say(options, *agent.prepare())

    # The warden starts no daemon, because that would run inside the warden's namespaces.
    subscription.feed.link.starts_daemons = False

    def follow(set_roots: SetRoots, programs: ProgramPause, give: GiveFile) -> WardenFeed:
        def set_with_hidden(
            found: Sequence[ConfinedRoot],
            closed: frozenset[bytes],
            removed: Mapping[bytes, RemovedRoot],
        ) -> None:
            set_roots([view.with_hidden(root) for root in found], closed, removed)

        return ViewFeed(subscription, set_with_hidden, view.state, programs, give)

    settings = _warden_settings(view, denied, _disabled_layers(options))
    folder = _claim_folder(options.label)
    # In a pipeline, another program may read the keys, and with them an answer.
    relay = _relay_for(view, folder[0], () if is_in_pipeline() else terminals())
    warden = _start(kind, settings, roots, follow, folder, relay)
    subscription.feed.close()
    _introduce(options, warden, view)
    with suppress(FileNotFoundError):
        _say(options, *unshown_git(roots, os.getcwdb()))
    if start is not None and (sentence := start.sentence(view.entries)):
        print_line(sentence)
    elif not roots:
        _say(options, _NO_FOCUS if scope.focus else _NO_ROOT)
    try:
        return _run_program(options, view, agent, kind, warden, relay)
    finally:
        _say(options, *_end(warden, relay))


def _plan_agent(
    options: ConfineOptions, home: bytes, roots: Sequence[ConfinedRoot], denied: frozenset[bytes]
) -> PlannedAgent | None:
    """Return what the program gets as an agent, or None if it is none. Raises RootsdError."""
    if not options.words or with_program(os.path.basename(options.words[0]), "state") is None:
        return None
    # Only agents need these modules.
    from rootsd.agents.forms.state import OwnSandbox  # noqa: PLC0415
    from rootsd.wall.session.agent_state import plan_agent  # noqa: PLC0415

    state = _state_folder(options.label)
    own = OwnSandbox.ALLOWED if Opening.NESTED in options.flags else OwnSandbox.OFF
    return plan_agent(options.words, home, state, options.label, roots, own, denied)


def _end(warden: Warden, relay: PushRelay | None) -> list[str]:
    """End the warden, and with it the programs. Return what they left behind, and were refused."""
    return [*warden.end(), *(relay.end() if relay is not None else ())]


def _known_origins() -> bytes:
    return os.path.dirname(walls_folder()) + _ORIGINS


def _relay_for(view: ComposedView, folder: bytes, own: tuple[int, ...]) -> PushRelay:
    """Return the relay for git. `own` are the terminals to ask on."""
    asked = Asked.PERSON if own else Asked.NOBODY
    try:
        return PushRelay(folder, _known_origins(), view.push, asked, view.writable())
    except OSError as error:
        raise CannotConfine(f"git cannot be served: {error.strerror}", "rootsd doctor") from error


def _start(
    kind: WallKind,
    settings: WardenSettings,
    roots: tuple[ConfinedRoot, ...],
    follow: FollowRoots | None,
    place: tuple[bytes, int],
    relay: PushRelay | None,
) -> Warden:
    """Start the warden in the folder that `_claim_folder` returned. Raises CannotConfine."""
    folder, lock = place
    kept = os.path.dirname(folder) + KEPT
    settings = settings._replace(folder=folder, kept=kept, lock=lock)
    if relay is not None:
        entries = (*settings.entries, *relay.entries)
        settings = settings._replace(entries=entries, listener=relay.listener)
    try:
        if settings.has_new_worktrees:
            entries = (*settings.entries, *worktree_entries(folder))
            settings = settings._replace(entries=entries)
        return kind.engine.start(settings, roots, follow, relay.find_until if relay else None)
    except WallSetupFailed as error:
        raise kind.explain(error) from error
    finally:
        os.close(lock)


def _warden_settings(
    view: ComposedView, denied: frozenset[bytes], without: frozenset[Layer]
) -> WardenSettings:
    """Return the settings of a warden, which gets its folder later."""
    return WardenSettings(
        b"", view.entries, view.home, view.protection, view.on_revoke, denied, without,
        has_new_worktrees=view.has_new_worktrees,
    )  # fmt: skip


def _subscribe(
    options: ConfineOptions, scope: RequestedScope, kind: WallKind, use: WallUse
) -> WallSubscription:
    """Follow the roots in `scope`, and register the program. Raises RootsdError."""
    program: dict[str, object] = {
        "pid": os.getpid(),
        "program": options.words[0] if options.words else "",
        "engine": kind.engine.kind.value,
        "landlock": kind.landlock(options),
        "network": Opening.NO_NETWORK not in options.flags,
    }
    return subscribe(Hello(client=options.label, scope=scope), program, use)


def _state_folder(label: str) -> bytes:
    """Return the folder for what the confined programs with this name keep."""
    return walls_folder() + b"/" + folder_name(label)


def _claim_folder(label: str) -> tuple[bytes, int]:
    """Return a folder for this wall, and the lock that reserves it while the warden lives.

    Before that, print what killed sessions have left. Two programs of one name that run at once
    get two folders, because each start has private ones.
    """
    for report in conclude_killed(walls_folder()):
        for sentence in report.sentences():
            print_line(sentence)
    remove_left(walls_folder())
    for slot in range(_MAX_SLOTS):
        folder = _state_folder(label) + b"/%d" % slot
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder + LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (killed := SessionBaseline.read(folder)) is not None:  # since the look above
                killed.conclude(SessionEnd.KILLED)
        except OSError:
            os.close(lock)
            continue
        claim(lock)
        return folder, lock
    raise CannotConfine(f"{_MAX_SLOTS} programs named {label} are confined", "--name NAME")


def _run_program(
    options: ConfineOptions,
    view: ComposedView,
    agent: PlannedAgent | None,
    kind: WallKind,
    warden: Warden,
    relay: PushRelay | None,
) -> int:
    ours, theirs = socket.socketpair()
    own = terminals()
    user = UserTerminal.of(own) if own else None
    use = TerminalUse.FOREGROUND if user is None else user.first_use()
    cell = view.cell(_disabled_layers(options))._replace(
        terminal=theirs if own else None, terminal_fds=own, terminal_use=use
    )
    start = cell.folder
    failure, failing = os.pipe2(os.O_CLOEXEC)
    waiter = os.fork()
    if waiter == 0:
        status = NOT_EXECUTABLE
        try:
            kind.engine.enter(warden, cell)
            os.dup2(failing, 3)
            close_from(4)
            fcntl.fcntl(3, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
            _execute(options, view, agent, kind, warden)
        except FileNotFoundError:
            status = NOT_FOUND
            os.write(3, _MISSING)
        except BaseException as error:  # noqa: BLE001 - this process must never return
            with suppress(OSError):
                os.write(failing, _reason(error).encode())
        finally:
            os._exit(status)
    os.close(failing)
    theirs.close()
    warden.close_gate()
    let_go((0, 1))  # this process still prints to standard error
    news = warden.news()

    def describe(each: PauseNews | RootNews) -> list[str]:
        if isinstance(each, PauseNews):
            return [PREFIX + describe_pause(each, options.label)]
        return [] if Opening.QUIET in options.flags else describe_news(each, start)

    if user is None:
        status = wait_with_news(waiter, news, lambda each: print_lines(describe(each)), relay)
    else:
        status = TerminalFront(ours, waiter, user, use, news, describe, relay).run()
    _explain_end(os.read(failure, _MAX_FAILURE), options, warden, news)
    return status


def _explain_end(
    message: bytes, options: ConfineOptions, warden: Warden, news: WardenNews
) -> None:
    """Print why the program did not start, or why the wall has ended, if one of these is so."""
    news.take()
    if message == _MISSING:
        missing = explain_missing(options.words[0])
        print_line(f"{missing.message}; try: {missing.remedy}")
    elif message:
        print_line(message.decode("utf-8", "replace"))
    elif news.lost:
        print_line(_revoked(news.lost))
    elif os.waitpid(warden.pid, os.WNOHANG)[0]:
        print_line("the warden ended, so the program was ended, too; try: rootsd doctor")


def _check_standard_files(fds: Iterable[int]) -> None:
    """Raise CannotConfine if one of these standard files would lead out of the wall."""
    for fd in fds:
        if kind := refused_kind(fd):
            remedy = "the same with < FILE" if fd == 0 else f"the same with {fd}> FILE"
            raise CannotConfine(f"{STANDARD[fd]} is {kind}", remedy)


def _disabled_layers(options: ConfineOptions) -> frozenset[Layer]:
    """Return the layers to leave out, which would forbid the mounts of a nested sandbox."""
    is_nested = Opening.NESTED in options.flags
    return frozenset({Layer.LANDLOCK, Layer.MOUNT_CALLS} if is_nested else ())


def _execute(
    options: ConfineOptions,
    view: ComposedView,
    agent: PlannedAgent | None,
    kind: WallKind,
    warden: Warden,
) -> None:
    inside = environment_inside(os.environ, options.label, view, warden)
    for name in _TEMPORARY_FOLDERS:
        if not os.access(inside.get(name, "/"), os.W_OK):
            inside.pop(name, None)  # it names a folder outside
    for name in map(os.fsdecode, CACHE_VARIABLES):
        if not _is_or_can_be(inside.get(name, "")):
            del inside[name]  # or a tool would fail, and not use its usual place
    words = options.words
    if agent is not None:
        inside.update(kind.placed(agent.variables(inside), view))
        words = agent.words(words)
    os.execvpe(words[0], words, inside)  # noqa: S606 - the user's command


def _is_or_can_be(path: str) -> bool:
    """Return whether a folder exists, or can be made."""
    above = path
    while above and not os.path.lexists(above):
        above = os.path.dirname(above)
    return above in ("", path) or os.access(above, os.W_OK)


def environment_inside(
    outside: Mapping[str, str], label: str, view: ComposedView, warden: Warden
) -> dict[str, str]:
    """Return the environment of a program, without the variables that lead outside."""
    scrubbed = {os.fsdecode(name) for name in SCRUBBED_VARIABLES}
    inside = {name: text for name, text in outside.items() if name not in scrubbed}
    own = {os.fsdecode(name): os.fsdecode(text) for name, text in view.variables.items()}
    home = os.fsdecode(view.home)
    if "XDG_RUNTIME_DIR" in inside:  # it may be elsewhere: WSLg has its own
        inside["XDG_RUNTIME_DIR"] = f"/run/user/{os.geteuid()}"
    return {
        **DEFAULTS,
        **inside,
        **own,
        CONFINED_VARIABLE: label,
        "HOME": home,
        **warden.variables,
    }


def describe_pause(news: PauseNews, label: str) -> str:
    """Return a sentence for people: why the program was stopped, or that it continues."""
    shown = safe_label(label)
    if news.state is PauseState.STOPPED:
        return f"{news.why}, so {shown} waits; try: {news.remedy}"
    return f"{shown} continues"


def _revoked(lost: Sequence[bytes]) -> str:
    shown = first_of([safe_label(path, limit=None) for path in lost], MAX_ROOTS)
    return f"the program was ended, since it may no longer reach {shown}; start it again"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"the program cannot be started: {error.strerror}; try: rootsd doctor"
    return f"the program cannot be started: {error!r}; try: rootsd doctor"


def _introduce(options: ConfineOptions, warden: Warden, view: ComposedView) -> None:
    """Print what people need to know at the start, and once in each terminal what is open."""
    for sentence in warden.notes:
        print_line(sentence)
    _say(options, *view.notes)
    if Opening.QUIET not in options.flags:
        _say(options, *untold(_open_and_closed(view)))


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

        for sentence in describe_origins(roots, _known_origins()):
            print_line(f"open: {sentence}")
    for part in (*view.closed, *view.left_out):
        print_line(f"closed: {part}")


def _sentences(warden: Warden, view: ComposedView) -> Iterator[str]:
    yield from warden.notes
    yield from view.notes
    yield from _open_and_closed(view)


def _open_and_closed(view: ComposedView) -> Iterator[str]:
    yield from view.stays_open
    if view.closed:
        yield f"closed: {'; '.join(view.closed)}"
