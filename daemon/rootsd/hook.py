"""Answer an agent's permission hook: may this file tool open this path?

An agent starts `rootsd hook CLIENT` before each call of a tool, and passes the call as JSON on
standard input. The answer is one of three:

* deny, if a person denied the folder that the path leads to;
* allow, if the tool only reads and the path is in the workspace of the session;
* no opinion otherwise, also if the input is odd or no daemon answers. Then nothing is printed, and
  the agent decides as it does without this hook.

A hook is a convenience and not a boundary. It does not see the paths in shell commands, and a hook
that fails lets the call pass. An agent waits for it at each call, so it is as lean as
`rootsd.check`: the standard library only, and one short connection.

Each client has its own names for its tools and for its answers; see `CLIENTS`. Sources: the hooks
references of Claude Code, Gemini CLI, and Qwen Code, as of November 2026.
"""

from __future__ import annotations

import json
import os
import sys

from rootsd.core.errors import Exit, RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.system.ipc import rpc

TYPE_CHECKING = False  # an import of typing would take a seventh of the whole run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TIMEOUT_S = 5.0  # seconds for each answer; an agent must not wait for a daemon that hangs
MAX_INPUT_BYTES = 1 << 24  # a call contains the whole text that a tool writes
_MAX_PATHS = 64  # one call may name several files

DENIED = "rootsd: a person denied this folder. Do not try another way to open it; ask them."
ALLOWED = "rootsd: this is in the workspace of the session"
_INSIDE, _DENIED, _NEITHER = "inside", "denied", "neither"


class HookClient:
    """What rootsd knows about the hooks of one client.

    * `event`: the name of the event before a tool runs.
    * `can_allow`: whether an answer can spare the person a question, and the client says where
      the session began.
    * `project`: the variable with the folder in which the session began. Without it, nothing is
      allowed: the working directory of the call may be another one.
    * `readers` and `writers`: tool -> the keys of its input that hold a path or a list of paths.
    * `searchers`: tools among `readers` that search below a path, and the key of their pattern.
      Without a path, they search the working directory.
    """

    def __init__(
        self,
        *,
        event: str,
        can_allow: bool,
        project: str,
        readers: Mapping[str, tuple[str, ...]],
        writers: Mapping[str, tuple[str, ...]],
        searchers: Mapping[str, str],
    ) -> None:
        self.event = event
        self.can_allow = can_allow
        self.project = project
        self.readers = readers
        self.writers = writers
        self.searchers = searchers


_CLAUDE_CODE = HookClient(
    event="PreToolUse",
    can_allow=True,
    project="CLAUDE_PROJECT_DIR",
    readers={
        "Read": ("file_path",),
        "NotebookRead": ("notebook_path",),
        "Grep": ("path",),
        "Glob": ("path",),
        "LS": ("path",),
    },
    writers={
        "Edit": ("file_path",),
        "MultiEdit": ("file_path",),
        "Write": ("file_path",),
        "NotebookEdit": ("notebook_path",),
    },
    searchers={"Grep": "glob", "Glob": "pattern", "LS": ""},
)
# Qwen Code began as a copy of Gemini CLI, so most tools have the same names.
_GEMINI_READERS = {
    "read_file": ("file_path", "absolute_path"),
    "read_many_files": ("include", "paths"),
    "list_directory": ("dir_path", "path"),
    "glob": ("dir_path", "path"),
    "grep_search": ("dir_path", "path"),
    "search_file_content": ("dir_path", "path"),
}
_GEMINI_WRITERS = {
    "edit": ("file_path",),
    "notebook_edit": ("notebook_path",),
    "replace": ("file_path",),
    "write_file": ("file_path",),
}
_GEMINI_SEARCHERS = {
    "glob": "pattern",
    "grep_search": "glob",
    "list_directory": "",
    "search_file_content": "include",
}
# In these two clients, the variable has the working directory of the call. So nothing is allowed.
_GEMINI = HookClient(
    event="BeforeTool",
    can_allow=False,
    project="GEMINI_PROJECT_DIR",
    readers=_GEMINI_READERS,
    writers=_GEMINI_WRITERS,
    searchers=_GEMINI_SEARCHERS,
)
_QWEN = HookClient(
    event="PreToolUse",
    can_allow=False,
    project="QWEN_PROJECT_DIR",
    readers=_GEMINI_READERS,
    writers=_GEMINI_WRITERS,
    searchers=_GEMINI_SEARCHERS,
)

CLIENTS = {"claude-code": _CLAUDE_CODE, "gemini": _GEMINI, "qwen": _QWEN}


def main(words: list[str]) -> int:
    """Read one call from standard input, and print the answer for the client in `words`.

    The exit status is 0 with an answer and without one. It is 1 for an unknown client: to the
    agents, 2 would mean that the call is refused.
    """
    client = CLIENTS.get(words[0]) if len(words) == 1 else None
    if client is None:
        sys.stderr.write(
            f"error: name one client: {', '.join(CLIENTS)} (try: rootsd hook --help)\n"
        )
        return Exit.FAILED
    text = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(text) > MAX_INPUT_BYTES:
        return Exit.OK
    try:
        answer = decide(client, parse_json(text), os.environ)
    except (RootsdError, Unparsable, OSError, ValueError):
        return Exit.OK  # no opinion; to print anything might be taken as an answer
    if answer is not None:
        sys.stdout.write(answer + "\n")
    return Exit.OK


def decide(client: HookClient, call: object, environment: Mapping[str, str]) -> str | None:
    """Return the JSON text to answer `call`, or None for no opinion.

    Raises RootsdError if the daemon does not answer, and ValueError for a path that no file has.
    """
    if not isinstance(call, dict) or call.get("hook_event_name") != client.event:
        return None
    tool, given, cwd = call.get("tool_name"), call.get("tool_input"), call.get("cwd")
    if not isinstance(tool, str) or not isinstance(given, dict) or not isinstance(cwd, str):
        return None
    keys = client.readers.get(tool) or client.writers.get(tool)
    if keys is None or not os.path.isabs(cwd):
        return None
    paths = _paths(given, keys, is_optional=tool in client.searchers)
    pattern = given.get(client.searchers.get(tool, ""))
    wide = _leads_elsewhere(pattern)
    if wide and isinstance(pattern, str):
        paths = [*paths, _fixed_part(pattern)]
    if not paths:
        return None
    workspace = environment.get(client.project, "")
    verdicts = _verdicts([form for path in paths for form in _spellings(path, cwd)], workspace)
    if _DENIED in verdicts:
        return _answer(client, "deny", DENIED)
    may_allow = client.can_allow and tool in client.readers and bool(workspace) and not wide
    if may_allow and set(verdicts) == {_INSIDE}:
        return _answer(client, "allow", ALLOWED)
    return None


def _paths(given: Mapping[str, Any], keys: tuple[str, ...], *, is_optional: bool) -> list[str]:
    """Return the paths in the input of a tool. A search without a path is one of `.`."""
    found: list[str] = []
    for key in keys:
        match given.get(key):
            case str() as path:
                found.append(path)
            case list() as several:
                found += [path for path in several if isinstance(path, str)]
            case _:
                pass
    if len(found) > _MAX_PATHS:
        return []
    return found or (["."] if is_optional else [])


def _leads_elsewhere(pattern: object) -> bool:
    """Return whether a search pattern may match files outside the folder that is searched."""
    if pattern is None:
        return False
    if not isinstance(pattern, str):
        return True
    return pattern.startswith(("/", "~")) or ".." in pattern or "{" in pattern


def _fixed_part(pattern: str) -> str:
    """Return the folder before the first special character of a pattern."""
    ends = [at for mark in "*?[{" if (at := pattern.find(mark)) >= 0]
    return os.path.dirname(pattern[: min(ends)]) if ends else pattern


def _spellings(path: str, cwd: str) -> list[str]:
    """Return the absolute paths that a client may open for `path`.

    Clients expand `~`, and some remove spaces at the ends or normalize Unicode.
    """
    forms = [path]
    if (trimmed := path.strip()) != path:
        forms.append(trimmed)
    if trimmed.startswith("~"):
        forms.append(os.path.expanduser(trimmed))
    if not path.isascii():
        from unicodedata import normalize  # noqa: PLC0415 - rarely needed

        forms.append(normalize("NFC", forms[-1]))
    return [os.path.join(cwd, form) for form in dict.fromkeys(forms)]


def _verdicts(paths: list[str], workspace: str) -> list[str]:
    """Return for each path whether it is inside the workspace, denied, or neither.

    Raises RootsdError if the daemon does not answer.
    """
    found = []
    scope = {"workspace": workspace} if os.path.isabs(workspace) else {}
    with rpc.connect_control() as channel:
        channel.settimeout(TIMEOUT_S)
        for path in paths:
            checked = rpc.ask(channel, "check", {"path": path, **scope})
            if checked.get("published") is True:
                found.append(_INSIDE)
            else:
                found.append(_DENIED if checked.get("verdict") == _DENIED else _NEITHER)
    return found


def _answer(client: HookClient, decision: str, reason: str) -> str:
    if client.event == "BeforeTool":
        return json.dumps({"decision": decision, "reason": reason})
    specific = {
        "hookEventName": client.event,
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }
    return json.dumps({"hookSpecificOutput": specific})
