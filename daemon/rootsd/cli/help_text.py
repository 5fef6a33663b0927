"""Hold the help text that `rootsd --help`, the man page, and docs/reference/cli.md share."""

from __future__ import annotations

from collections.abc import Mapping

from rootsd.core.errors import Exit

DESCRIPTION = (
    "rootsd is one daemon per user. It finds the repositories and project folders below the "
    "folders that you name, and proposes each one. You approve or deny it, once. rootsd "
    "publishes the approved ones, by name, to every MCP client and server on the machine. "
    "Changes take effect at once. Without a verb, rootsd shows rootsd status."
)

EXAMPLES: Mapping[str, str] = {
    "rootsd up ~/src": "find the projects below ~/src, from now on",
    "rootsd pending": "list the projects that need your decision",
    "rootsd approve acme/api": "publish one of them",
}

EXIT_STATUSES: Mapping[Exit, tuple[str, str]] = {
    Exit.OK: ("ok", "The command succeeded, or there was nothing to do."),
    Exit.FAILED: ("failed", "The reason is on standard error; a bug also leaves a log file."),
    Exit.USAGE: ("usage", "The arguments are wrong."),
    Exit.PENDING: ("pending", "The project is undecided, or its approval has lapsed."),
    Exit.DENIED: ("denied", "The project is denied."),
    Exit.NOTHING_MATCHED: ("nothing matched", "No project, rule, or path matches."),
    Exit.AMBIGUOUS: ("ambiguous", "Several projects match; the error lists them."),
    Exit.REFUSED: ("refused", "Only a person may do this, on their own terminal."),
    Exit.UNREACHABLE: ("no daemon", "No daemon answers; try: rootsd up."),
    Exit.BUSY: ("busy", "Another process holds a lock; try again."),
    Exit.BAD_CONFIG: ("bad configuration", "config.toml is invalid; try: rootsd config check."),
    Exit.INTERRUPTED: ("interrupted", "Ctrl-C ended the command."),
    Exit.BROKEN_PIPE: ("broken pipe", "The reader of the output is gone."),
}

REF_SYNTAX = (
    "REF is a name from rootsd ls, an id, a path, . for the working directory, or a glob over "
    "names and paths. The end of a name, after a slash, is enough if only one project has it. "
    "With --host, REF and all paths are that machine's: a path is absolute, or begins with a "
    "quoted ~/ for the home folder there. A word that is no name there is a path in that folder."
)

OUTPUT_FORMATS = (
    "On a terminal, commands print tables. In a pipe, they print tab-separated lines with full "
    "paths and no header. With --json, they print one object of the schema rootsd/1. Standard "
    "output holds data; messages go to standard error. Commands ask questions only on a terminal."
)

_FIRST_SIGNAL_STATUS = 128  # shells add the number of the signal that ended a command to this

ENVIRONMENT_VARIABLES: Mapping[str, str] = {
    "ROOTSD_DIR": "Keep configuration, state, and sockets below this folder, to try things out "
    "beside the real daemon. Clients need this variable, too. It must not be in a project or in "
    "a root.",
    "NO_COLOR": "If not empty, the same as --no-color.",
    "VISUAL, EDITOR": "The editor that rootsd config edit starts.",
}

FILES: Mapping[str, str] = {
    "~/.config/rootsd/config.toml": "The configuration; rootsd config path prints its path.",
    "~/.local/state/rootsd/": "Decisions and their history.",
    "~/.local/share/rootsd/": "A second record of the latest decision. It detects an older state "
    "folder that was restored.",
    "/run/user/UID/rootsd/pub/mcp.sock": "The socket for clients. A sandbox may get the folder "
    "pub.",
    "/run/user/UID/rootsd/ctl/control.sock": "The socket for the command line.",
}


def exit_status_summary() -> str:
    """Return `Exit status: 0 ok, 1 failed, ….`, without the statuses that stand for signals."""
    statuses = (
        f"{status} {short}"
        for status, (short, _) in EXIT_STATUSES.items()
        if status < _FIRST_SIGNAL_STATUS
    )
    return f"Exit status: {', '.join(statuses)}."
