"""The console entry point: run the fast commands directly, and all others by the command line.

Every MCP client starts `bridge` and `run`, editors start `acp`, agents start `hook` before each
call of a tool, `confine` starts agents, every shell prompt starts `check` and `pending --count`,
every shell starts `completion` and `shell-init`, and `AGENT --outside` starts `review --before`.
For these, an import of click would take longer than their work. `daemon` runs for a long time, and
click would stay in its memory.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable

TYPE_CHECKING = False  # see `rootsd.check`
if TYPE_CHECKING:
    from typing import NoReturn

LIBRARY_PATH = "ROOTSD_LIBRARY_PATH"
"""Where the command `bin/rootsd` keeps LD_LIBRARY_PATH of an AppImage for what rootsd starts."""
INTERRUPTED = 130
BROKEN_PIPE = 141
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Global flags without effect on a command that prints little and never prompts.
_INERT = frozenset(("-q", "--quiet", "-v", "--verbose", "--no-color", "--no-pager", "--no-input"))
_HELP = frozenset(("--help", "-h"))


def main() -> int:
    """Run the command in `sys.argv`. Return its exit status."""
    if (libraries := os.environ.pop(LIBRARY_PATH, None)) is not None:
        os.environ["LD_LIBRARY_PATH"] = libraries
    _fill_closed_streams()
    try:
        # Modules that load make no garbage worth looking for, and all of them stay. Looking takes
        # a twentieth of the time of `check`.
        gc.disable()
        run = _load(sys.argv[1:])
        gc.freeze()
        gc.enable()
        status = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _status_of_lost_output(error)
    else:
        return status
    finally:
        # Otherwise, the interpreter looks for garbage at its end, among all that was loaded. That
        # takes a sixth of the time of a command, and 0.3 s for a daemon with the MCP SDK.
        gc.freeze()


def _fill_closed_streams() -> None:
    """Open something for each standard file that the caller closed."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from rootsd.proxy.stdio import fill_closed_files

        fill_closed_files()
        sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
        sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
        sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _status_of_lost_output(error: OSError) -> int:
    """Drop the output that could not be written, and return the status. Raise any other error."""
    is_closed = isinstance(error, BrokenPipeError)
    if not is_closed and (error.errno not in _FULL or error.filename is not None):
        raise error
    # Otherwise, the interpreter would report that at its last flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if is_closed:
        return BROKEN_PIPE
    sys.stderr.write(f"error: the output could not be written: {error.strerror}\n")
    return 1


def leave(status: int) -> NoReturn:
    """End this process. Without other threads, there is nothing to wait for or to take apart."""
    threads = sys.modules.get("threading")
    if "atexit" not in sys.modules and (threads is None or threads.active_count() == 1):
        try:  # noqa: SIM105 - contextlib takes time to load
            sys.stderr.flush()  # `main` has flushed the other one
        except OSError:
            pass  # nobody reads it
        os._exit(status)
    sys.exit(status)


def _load(words: list[str]) -> Callable[[], int]:
    """Load the modules of a command, and return the function that runs it."""
    start = next((n for n, word in enumerate(words) if word not in _INERT), len(words))
    match words[start:]:
        case ["bridge", *rest] if _HELP.isdisjoint(rest):
            _lose_messages()
            from rootsd.proxy.bridge import main as bridge

            return lambda: bridge.main(rest)
        case ["run" | "acp" as verb, *rest] if _HELP.isdisjoint(_flags_of_run(rest)):
            _lose_messages()
            relay = _load_run() if verb == "run" else _load_acp()
            return lambda: relay(rest)
        case ["confine", *rest] if (_HELP | {"--clean"}).isdisjoint(_flags_of_run(rest)):
            _lose_messages()
            from rootsd.wall.session import main as confine

            return lambda: confine.main([*words[:start], *rest], _ask_about_start)
        case ["check", *rest] if (path := _only_path(rest)) is not None:
            _lose_messages()
            from rootsd import check

            return lambda: check.main(path, write="--write" in rest)
        case ["hook", *rest] if _HELP.isdisjoint(rest):
            _lose_messages()
            from rootsd import hook

            return lambda: hook.main([word for word in rest if word not in _INERT])
        case ["pending", *rest] if "--count" in rest and _is_only_count(rest):
            _lose_messages()
            from rootsd import check

            return lambda: check.count_pending(exit_code="--exit-code" in rest)
        case ["completion" | "shell-init" as verb, "bash" | "zsh" | "fish" as shell]:
            from rootsd.service import shell_scripts

            return lambda: shell_scripts.main(verb, shell)
        case ["review", "--before", _] if _has_reviewed_all():
            return lambda: 0
        case ["daemon", *rest] if start == 0 and _is_launch(rest):
            _find_packages()
            from rootsd.cli.answers import run_daemon

            return lambda: run_daemon.main(rest)
    _find_packages()
    from rootsd.cli import main as command_line

    return lambda: command_line.main(words)


def _load_run() -> Callable[[list[str]], int]:
    from rootsd.proxy.run import main

    return main.main


def _load_acp() -> Callable[[list[str]], int]:
    from rootsd.proxy.acp import main

    return main.main


def _has_reviewed_all() -> bool:
    """Return whether sessions behind the wall left nothing to review in this project."""
    from rootsd.core.errors import RootsdError
    from rootsd.places.base_folders import walls_folder
    from rootsd.wall.git.report_files import has_reports

    try:
        walls, here = walls_folder(), os.getcwd()
    except (RootsdError, OSError):
        return False  # the command line says why
    if not has_reports(walls):
        return True
    from rootsd.wall.session.unreviewed import find_unreviewed

    return find_unreviewed(walls, here) is None


def _find_packages() -> None:
    """Let Python find the packages that rootsd needs. The command starts without them."""
    if sys.flags.no_site:
        import site

        site.main()


def _ask_about_start(path: str, front: int) -> int:
    """Ask about the pending project in which a program is about to start behind the wall."""
    _find_packages()
    from rootsd.cli.answers import start_folder

    return start_folder.ask_about_start(path, front)


def _lose_messages() -> None:
    """Let a program go on, and exit with its own status, if nobody reads its standard error."""
    from rootsd.proxy import stdio

    stdio.install_lossy_errors()


def _flags_of_run(rest: list[str]) -> list[str]:
    """Return the arguments that belong to `run` or `confine` itself, not to the program."""
    return rest[: rest.index("--")] if "--" in rest else rest[:1]


def _only_path(rest: list[str]) -> str | None:
    """Return the path to check, or None if the command line must parse the arguments."""
    paths = [word for word in rest if word != "--write" and word not in _INERT]
    return paths[0] if len(paths) == 1 and not paths[0].startswith("-") else None


def _is_launch(rest: list[str]) -> bool:
    """Whether these are the arguments that a service unit or a background start passes."""
    match rest:
        case ["--ready-fd", descriptor] | ["--detach", "--ready-fd", descriptor]:
            return descriptor.isdecimal()
        case _:
            return not rest


def _is_only_count(rest: list[str]) -> bool:
    return _INERT.issuperset(word for word in rest if word not in ("--count", "--exit-code"))


if __name__ == "__main__":
    leave(main())
