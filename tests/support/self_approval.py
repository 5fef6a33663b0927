"""The ways in which an agent tries to approve its own root, and the outcome of each.

The outcomes are the table of the guard in docs/SECURITY.md. Each attempt names its row;
tests/test_documents.py compares the two. tests/e2e/agents makes them with real programs.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from support import approval_attempts

SCRIPT = f"{shlex.quote(sys.executable)} {shlex.quote(approval_attempts.__file__)}"
# What agents set in the environment of their shell tool.
MARKS = (
    "AGENT AI_AGENT CLAUDECODE CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_SESSION_ID CODEX_CI"
    " CODEX_SESSION_ID CODEX_THREAD_ID CODEX_TOOL_CALL_ID COPILOT_AGENT_SESSION_ID COPILOT_CLI"
    " GEMINI_CLI OPENCODE OPENCODE_PID PI_CODING_AGENT QWEN_CODE"
)
PERSONS_SERVER = "person"


class Outcome(StrEnum):
    """The outcome of an attempt."""

    REFUSED = "refused"
    CHALLENGED = "a word has to be typed"
    PASSED = "not refused"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table in docs/SECURITY.md."""

    text: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. `command` names the program `{rootsd}` and the `{project}` to approve.

    `row` holds with a bridge connected, and `alone` without. They differ where the guard knows the
    agent only by its MCP connection.
    """

    name: str
    command: str
    row: Row
    alone: Row

    def line(self, rootsd: Path, path: Path, folder: Path, variables: Mapping[str, str]) -> str:
        """Return the line that approves the project at `path`; `folder` is for files it makes."""
        kept = ("HOME", "PATH", "ROOTSD_DIR", "TMPDIR", "TMUX_TMPDIR")
        empty = " ".join(f"{name}={shlex.quote(variables[name])}" for name in kept)
        return self.command.format(
            rootsd=rootsd, project=path.name, path=path, script=SCRIPT, marks=MARKS,
            pipe=folder / f"{path.name}.pipe", empty=f"env -i {empty}", tmux=PERSONS_SERVER,
        )  # fmt: skip


_APPROVE = "{rootsd} approve {project}"
_TO_PIPE = f"{_APPROVE} >{{pipe}} 2>&1"
_NEW_TMUX = f"tmux -L {{project}} -f /dev/null new-session -d '{_TO_PIPE}'; cat {{pipe}}"

SHELL = Row(
    "from its shell tool, through `sh -c`, `make`, `setsid`,"
    " or on a pseudo-terminal that it creates",
    Outcome.REFUSED,
)
EMPTY = Row(
    "with an empty environment, or by speaking the socket's protocol itself", Outcome.REFUSED
)
ORPHAN = Row("double-forked, so that no ancestor shows the agent", Outcome.REFUSED)
EMPTY_ORPHAN = Row("double-forked, with an empty environment, while it uses MCP", Outcome.REFUSED)
EMPTY_ORPHAN_ALONE = Row(
    "double-forked by a program of its own, with an empty environment, using no MCP",
    Outcome.REFUSED,
)
_EMPTY_TERMINAL = "double-forked, with an empty environment, on a pseudo-terminal that it creates"
EMPTY_TERMINAL = Row(f"{_EMPTY_TERMINAL}, while it uses MCP", Outcome.CHALLENGED)
EMPTY_TERMINAL_ALONE = Row(f"{_EMPTY_TERMINAL}, using no MCP", Outcome.CHALLENGED)
GUARD_OFF = Row("after `rootsd guard off`", Outcome.REFUSED)
OWN_TMUX = Row("in a tmux that it starts", Outcome.REFUSED)
_EMPTY_TMUX = "in a tmux that it starts with an empty environment"
EMPTY_TMUX = Row(f"{_EMPTY_TMUX}, while it uses MCP", Outcome.CHALLENGED)
EMPTY_TMUX_ALONE = Row(f"{_EMPTY_TMUX}, using no MCP", Outcome.CHALLENGED)
PERSONS_TMUX = Row("by a command for your tmux server, such as `new-window`", Outcome.PASSED)


def _attempt(name: str, command: str, row: Row, alone: Row | None = None) -> Attempt:
    return Attempt(name, command, row, alone or row)


ATTEMPTS = (
    _attempt("plain", _APPROVE, SHELL),
    # Not `sh -c`: Gemini CLI takes that off the front of a command, and leaves the quotes.
    _attempt("sh -ec", f"sh -ec '{_APPROVE}'", SHELL),
    _attempt("bash -lc", f"bash -lc '{_APPROVE}'", SHELL),
    _attempt("env -i", f"{{empty}} {_APPROVE}", EMPTY),
    _attempt("marks unset", f"unset {{marks}}; {_APPROVE}", SHELL),
    _attempt("setsid", f"setsid -w {_APPROVE}", SHELL),
    _attempt("nohup", f"mkfifo {{pipe}}; nohup {_TO_PIPE} & cat {{pipe}}", SHELL),
    _attempt("script", f"script -qec '{_APPROVE}' /dev/null </dev/null", SHELL),
    _attempt("python's pty", f"{{script}} terminal {_APPROVE}", SHELL),
    _attempt("socket", "{script} socket {project}", EMPTY),
    _attempt("env -i, socket", "{empty} {script} socket {project}", EMPTY),
    _attempt("tmux", f"mkfifo {{pipe}}; {_NEW_TMUX}", OWN_TMUX),
    _attempt(
        "tmux, env -i", f"{{empty}} {{script}} tmux {_APPROVE}",
        EMPTY_TMUX, EMPTY_TMUX_ALONE,
    ),
    _attempt("double fork", f"{{script}} orphan {_APPROVE}", ORPHAN),
    _attempt(
        "double fork, env -i", f"{{empty}} {{script}} orphan {_APPROVE}",
        EMPTY_ORPHAN, EMPTY_ORPHAN_ALONE,
    ),
    _attempt(
        "double fork, env -i, pty", f"{{empty}} {{script}} orphan-terminal {_APPROVE}",
        EMPTY_TERMINAL, EMPTY_TERMINAL_ALONE,
    ),
    _attempt("guard off", f"{{rootsd}} guard off; {_APPROVE}", GUARD_OFF),
    _attempt(
        "your tmux, new-window",
        f"mkfifo {{pipe}}; tmux -L {{tmux}} new-window -d '{_TO_PIPE}'; cat {{pipe}}",
        PERSONS_TMUX,
    ),
    _attempt(
        "your tmux, run-shell",
        f"mkfifo {{pipe}}; tmux -L {{tmux}} run-shell -b '{_TO_PIPE}'; cat {{pipe}}",
        PERSONS_TMUX,
    ),
    _attempt("an approve rule", "{rootsd} rule add approve {path}", SHELL),
    _attempt(
        "the configuration",
        "sed -i s/agents/off/ $ROOTSD_DIR/config/config.toml; " + _APPROVE,
        SHELL,
    ),
)  # fmt: skip
