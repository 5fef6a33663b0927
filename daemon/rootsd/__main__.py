"""The console entry point: quick commands run at once, all others through the command line.

`bridge`, `run`, `check` and `pending --count` are started by every MCP client and every shell
prompt; importing click for them would cost more than their work. `daemon` would keep it in memory.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130
# Global flags that change nothing about a command that is silent and does not ask.
_INERT = frozenset(("-q", "--quiet", "-v", "--verbose", "--no-color", "--no-input"))
_HELP = frozenset(("--help", "-h"))


def main() -> int:
    """Run the command in `sys.argv`; returns its exit status."""
    try:
        return _dispatch(sys.argv[1:])
    except KeyboardInterrupt:
        return INTERRUPTED


def _dispatch(words: list[str]) -> int:
    start = next((n for n, word in enumerate(words) if word not in _INERT), len(words))
    match words[start:]:
        case ["bridge", *rest] if _HELP.isdisjoint(rest):
            from rootsd.proxy.bridge import main as bridge

            return bridge.main(rest)
        case ["run", *rest] if _HELP.isdisjoint(_flags_of_run(rest)):
            from rootsd.proxy.run import main as relay

            return relay.main(rest)
        case ["check", *rest] if (path := _only_path(rest)) is not None:
            from rootsd import check

            return check.main(path, write="--write" in rest)
        case ["pending", *rest] if "--count" in rest and _is_only_count(rest):
            from rootsd import check

            return check.count_pending(exit_code="--exit-code" in rest)
        case ["daemon", *rest] if start == 0 and _is_launch(rest):
            from rootsd.cli import run_daemon

            return run_daemon.main(rest)
    from rootsd.cli import main as command_line

    return command_line.main(words)


def _flags_of_run(rest: list[str]) -> list[str]:
    """The words of our own; those after them are the server's."""
    return rest[: rest.index("--")] if "--" in rest else rest[:1]


def _only_path(rest: list[str]) -> str | None:
    """The path to check; None where the command line has to sort the words out."""
    paths = [word for word in rest if word != "--write" and word not in _INERT]
    return paths[0] if len(paths) == 1 and not paths[0].startswith("-") else None


def _is_launch(rest: list[str]) -> bool:
    """Whether a service unit, or who starts the daemon in the background, says this."""
    match rest:
        case ["--ready-fd", descriptor] | ["--detach", "--ready-fd", descriptor]:
            return descriptor.isdecimal()
        case _:
            return not rest


def _is_only_count(rest: list[str]) -> bool:
    return _INERT.issuperset(word for word in rest if word not in ("--count", "--exit-code"))


if __name__ == "__main__":
    sys.exit(main())
