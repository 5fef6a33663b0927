"""Hold the help text that `rootsd --help` and the man page share."""

from __future__ import annotations

from collections.abc import Mapping

from rootsd.core.errors import Exit

EXAMPLES: Mapping[str, str] = {
    "rootsd up ~/src": "find the projects below ~/src, from now on",
    "rootsd pending": "what waits for your decision",
    "rootsd approve acme/api": "publish one of them",
}

EXIT_STATUSES: Mapping[Exit, tuple[str, str]] = {
    Exit.OK: ("ok", "Done; also where nothing had to be done, which is then said."),
    Exit.FAILED: ("failed", "What failed is said on standard error; a bug leaves a log file."),
    Exit.USAGE: ("usage", "The words make no sense together."),
    Exit.PENDING: ("pending", "The project waits for a decision, or its approval has lapsed."),
    Exit.DENIED: ("denied", "The project is denied."),
    Exit.NOTHING_MATCHED: ("nothing matched", "No project, rule or path fits what was named."),
    Exit.AMBIGUOUS: ("ambiguous", "Several projects fit; the choices are listed."),
    Exit.REFUSED: ("refused", "A person has to say this, on a terminal of their own."),
    Exit.UNREACHABLE: ("no daemon", "No daemon answers: rootsd up."),
    Exit.BUSY: ("busy", "Somebody else holds what is needed; try again."),
    Exit.BAD_CONFIG: ("bad configuration", "config.toml cannot be used: rootsd config check."),
    Exit.INTERRUPTED: ("interrupted", "Ctrl-C ended it."),
    Exit.BROKEN_PIPE: ("broken pipe", "Nobody read the output any more."),
}

REF_SYNTAX = (
    "REF is a name as rootsd ls shows it, an id, a path, . for the working directory, or a glob "
    "over names and paths. A name may be shortened to its last components where only one project "
    "ends so."
)

OUTPUT_FORMATS = (
    "On a terminal a table is printed; on a pipe, tab-separated lines without a header and with "
    "full paths; with --json, one object of the schema rootsd/1. Standard output is data; what is "
    "said to a person goes to standard error. Where there is no terminal nothing asks."
)

_FIRST_SIGNAL_STATUS = 128  # from here on, shells tell which signal ended a command

ENVIRONMENT_VARIABLES: Mapping[str, str] = {
    "ROOTSD_DIR": "Keeps configuration, state and sockets below this folder, for trying things "
    "out beside the real daemon. Clients have to be given it, too.",
    "NO_COLOR": "Does what --no-color does, if it is not empty.",
    "VISUAL, EDITOR": "What rootsd config edit opens the configuration with.",
}

FILES: Mapping[str, str] = {
    "~/.config/rootsd/config.toml": "The configuration; rootsd config path tells where it is.",
    "~/.local/state/rootsd/": "Decisions and their history.",
    "~/.local/share/rootsd/": "A second record of the latest decision, which shows that an older "
    "state folder was put back.",
    "/run/user/UID/rootsd/pub/mcp.sock": "What clients connect to; a sandbox may be given the "
    "folder pub.",
    "/run/user/UID/rootsd/ctl/control.sock": "What the command line connects to.",
}


def exit_status_summary() -> str:
    """`0 ok, 1 failed, …`, but for the ways in which a shell says that a command was ended."""
    told = (
        f"{status} {short}"
        for status, (short, _) in EXIT_STATUSES.items()
        if status < _FIRST_SIGNAL_STATUS
    )
    return f"Exit status: {', '.join(told)}."
