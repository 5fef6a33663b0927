"""Answer an agent's permission hook: may this file tool open this path?

An agent starts `rootsd hook CLIENT` before each call of a tool, and passes the call as JSON on
standard input. The answer is one of four:

* deny, if a person denied the folder that the path leads to;
* allow, if the tool only reads and the path is in the workspace of the session;
* ask, once, if a session behind the wall changed files in this project that tools run outside, and
  the agent is one that a person starts behind the wall by its name. Not all agents have this word;
* no opinion otherwise, also if the input is odd or no daemon answers. Then nothing is printed, and
  the agent decides as it does without this hook.

With `--strict`, a call that cannot be judged is denied: the input is odd, or no daemon answers.
Claude Code can refuse calls whose hook cannot even start, so it is the client for that.

A hook is a convenience and not a boundary. It does not see the paths in shell commands, and a hook
that fails lets the call pass, unless it is strict. An agent waits for it at each call, so it is as
lean as `rootsd.check`: the standard library only, and one short connection.

Each client has its own names for its tools and for its answers (`rootsd.agents`). Sources: the
hooks references of the clients, and runs of Claude Code 2.1, Codex 0.169, and Copilot CLI 1.0, as
of November 2026.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from rootsd.agents import files_with, name_of, named
from rootsd.core.errors import Exit, RootsdError
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.disk.links import final_path
from rootsd.link import rpc
from rootsd.processes.typed_input import explain_wait

TYPE_CHECKING = False  # an import of typing would take a seventh of the whole run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

    from rootsd.agents.forms.hook import HookDialect

TIMEOUT_S = 5.0  # seconds for each answer; an agent must not wait for a daemon that hangs
MAX_INPUT_BYTES = 1 << 24  # a call contains the whole text that a tool writes
_MAX_PATHS = 1000  # one call may name several files

DENIED = "rootsd: a person denied this folder. Do not try another way to open it; ask them."
UNKNOWN = "rootsd cannot tell whether a person denied this folder: {} (try: {})"
ALLOWED = "rootsd: this is in the workspace of the session"
STRICT = "--strict"
_SERVER_TOOLS = "mcp__"
_PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
_INSIDE, _DENIED, _NEITHER = "inside", "denied", "neither"


def main(words: list[str]) -> int:
    """Read one call from standard input, and print the answer for the client in `words`.

    The exit status is 0 with an answer and without one. It is 1 for an unknown client: to the
    agents, 2 would mean that the call is refused.
    """
    names = [word for word in words if word != STRICT]
    is_strict = names != words
    agent = named(names[0], "hook") if len(names) == 1 else None
    client: HookDialect | None = agent.hook() if agent is not None else None
    if agent is None or client is None or (is_strict and not client.can_be_strict):
        known = [name for name, one in dialects().items() if one.can_be_strict or not is_strict]
        sys.stderr.write(f"error: name one client: {', '.join(known)} (try: rootsd hook --help)\n")
        return Exit.FAILED
    explain_wait("hook", "the JSON of a tool call", "rootsd hook --help")
    try:
        call = _read_call()
        if _is_about_a_move(client, call):
            from rootsd.link.move_hook import tell_move  # noqa: PLC0415 - other calls need none

            tell_move(call, names[0])
            return Exit.OK
        if _event_of(call) in client.worktrees:
            return _make_or_delete(call)
        answer = decide(client, call, os.environ)
        if answer in (None, json.dumps(client.answer("allow", ALLOWED))):
            answer = _question(client, agent, call) or answer
    except (RootsdError, Unparsable, OSError, ValueError) as error:
        if not is_strict:
            return Exit.OK  # no opinion; to print anything might be taken as an answer
        answer = json.dumps(client.answer("deny", UNKNOWN.format(*_reason(error))))
    if answer is not None:
        sys.stdout.write(answer + "\n")
    return Exit.OK


def _is_about_a_move(client: HookDialect, call: object) -> bool:
    """Return whether an event says where the agent works, and asks nothing."""
    match call:
        case {"hook_event_name": str() as event, **more} if event in client.moves:
            tool = more.get("tool_name")
            return event not in client.events or (
                isinstance(tool, str) and tool.startswith(_SERVER_TOOLS)
            )
        case _:
            return False


def _event_of(call: object) -> object:
    return call.get("hook_event_name") if isinstance(call, dict) else None


def _make_or_delete(event: object) -> int:
    """Make or delete a worktree, unless a person denied its folder, or where the agent works."""
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - other calls need none
    from rootsd.link import worktree_hook  # noqa: PLC0415

    def refuse_denied(path: str) -> None:
        verdicts: list[str] = []
        with suppress(RootsdError):  # without a daemon, nothing is known to be denied
            verdicts = _verdicts([path], "")
        if _DENIED in verdicts:
            shown = safe_label(os.fsencode(path), limit=None)
            what = f"a person denied {shown}; do not try another way to open it"
            raise worktree_hook.WorktreeRefused(what, "ask them")

    return worktree_hook.answer(event, refuse_denied)


def _question(client: HookDialect, agent: ModuleType, call: object) -> str | None:
    """Return the question about unreviewed changes in the project, or None.

    Nobody is asked twice about the same changes. A failure asks nothing: the call itself was
    judged. Raises ValueError for a call of an unexpected form.
    """
    if not client.asks or (parts := _parts(client, call)) is None:
        return None
    from rootsd.places.base_folders import walls_folder  # noqa: PLC0415 - other calls need none
    from rootsd.wall.git.report_files import has_reports  # noqa: PLC0415

    try:
        if not has_reports(walls := walls_folder()):
            return None
        from rootsd.config.wall_default import typed_agents  # noqa: PLC0415 - rarely needed
        from rootsd.wall.session import unreviewed  # noqa: PLC0415

        if set(typed_agents()).isdisjoint(agent.PROGRAMS):
            return None
        folder = os.environ.get(client.project) or parts[-1]
        changes = unreviewed.find_unreviewed(walls, folder)
        if changes is None or not unreviewed.note_asked(walls, changes):
            return None
    except (RootsdError, OSError):
        return None
    question = f"rootsd: {changes.sentence()}; to look at it: rootsd review --changed"
    return json.dumps(client.answer(client.asks, question))


def dialects() -> dict[str, HookDialect]:
    """Return the words of each client that has hooks, by its name."""
    return {name_of(agent): agent.hook() for agent in files_with("hook")}


def _read_call() -> object:
    """Return the call on standard input. Raises Unparsable."""
    text = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(text) > MAX_INPUT_BYTES:
        raise Unparsable("the call is too long")
    return parse_json(text)


def _reason(error: Exception) -> tuple[str, str]:
    """Return why a call cannot be judged, and a command that helps."""
    if isinstance(error, RootsdError):
        return error.message, error.remedy or "rootsd doctor"
    return "the call has an unexpected form", "rootsd doctor"


def decide(client: HookDialect, call: object, environment: Mapping[str, str]) -> str | None:
    """Return the JSON text to answer `call`, or None for no opinion.

    Raises RootsdError if the daemon does not answer, and ValueError for a path that no file has
    and for a call of an unexpected form.
    """
    parts = _parts(client, call)
    if parts is None:
        return None
    tool, given, cwd = parts
    paths, is_wide = _named_paths(client, tool, given)
    if not paths:
        return None
    workspace = environment.get(client.project, "") if client.project else ""
    if not os.path.isabs(workspace):
        # Relative to which folder, only the client knows. Without a scope, any root would do.
        workspace = ""
    verdicts = _verdicts([form for path in paths for form in _spellings(path, cwd)], workspace)
    if _DENIED in verdicts:
        return json.dumps(client.answer("deny", DENIED))
    may_allow = tool in client.readers and bool(workspace) and not is_wide
    if may_allow and set(verdicts) == {_INSIDE}:
        return json.dumps(client.answer("allow", ALLOWED))
    return None


def _parts(client: HookDialect, call: object) -> tuple[str, dict[str, Any], str] | None:
    """Return the tool, its input, and the working directory of a call; None if it opens no files.

    Raises ValueError for a call of an unexpected form.
    """
    if not isinstance(call, dict) or not isinstance(call.get("hook_event_name"), str):
        raise ValueError("no call")  # noqa: TRY004 - like every other form that is not expected
    if call["hook_event_name"] not in client.events:
        return None
    match _call_in(call):
        case str() as tool, _, _ if not client.opens_files(tool):
            return None
        case str() as tool, dict() as given, str() as cwd if os.path.isabs(cwd):
            return tool, given, cwd
        case _:
            raise ValueError("a call without a tool, its input, or its folder")


def _named_paths(
    client: HookDialect, tool: str, given: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Return the paths in the input of a tool, and whether a pattern may match files elsewhere.

    Raises ValueError for a file tool without a path, and for too many paths.
    """
    keys = client.readers.get(tool) or client.writers.get(tool) or ()
    paths = _paths(given, keys, is_optional=tool in client.searchers)
    if keys and not paths:
        raise ValueError("a file tool without a path")
    patch = given.get(client.patchers.get(tool, ""))
    if isinstance(patch, str):
        paths = [*paths, *_patched(patch)]
    pattern = given.get(client.searchers.get(tool, ""))
    if isinstance(pattern, str):  # its fixed part may lead through a link, too
        fixed = _fixed_part(pattern)
        forms = (fixed, os.path.expanduser(fixed))
        uri = [fixed] if fixed[:5].lower() == "file:" else []
        below = [os.path.join(path, form) for path in paths for form in forms]
        paths = [*paths, *below, *uri]
    return paths, _leads_elsewhere(pattern)


def _call_in(call: Mapping[str, Any]) -> tuple[object, object, object]:
    """Return the tool, its input, and the working directory of a call.

    `beforeReadFile` of Cursor has no tool, and the path is in the call itself.
    """
    roots = call.get("workspace_roots")
    cwd = call.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    if call["hook_event_name"] == "beforeReadFile":
        return "beforeReadFile", call, cwd
    return call.get("tool_name"), call.get("tool_input"), cwd


def _patched(patch: str) -> list[str]:
    """Return the paths in a patch for the tool `apply_patch`, or in a command that calls it.

    Raises ValueError for too many.
    """
    if not patch.lstrip().startswith(("*** Begin Patch", "apply_patch")):
        return []
    found = [
        line.removeprefix(mark).strip()
        for line in patch.splitlines()
        for mark in _PATCH_MARKS
        if line.startswith(mark)
    ]
    if len(found) > _MAX_PATHS:
        raise ValueError("too many paths")
    return found


def _paths(given: Mapping[str, Any], keys: tuple[str, ...], *, is_optional: bool) -> list[str]:
    """Return the paths in the input of a tool. A search without a path is one of `.`.

    Raises ValueError for too many.
    """
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
        raise ValueError("too many paths")
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

    Clients expand `~`, and some remove spaces at the ends or normalize Unicode. Some take the URI
    of a file (RFC 8089), with and without `%` escapes.
    """
    forms = [path]
    if (trimmed := path.strip()) != path:
        forms.append(trimmed)
    if trimmed[:5].lower() == "file:":
        forms += _paths_of_uri(trimmed)
    if trimmed.startswith("~"):
        forms.append(os.path.expanduser(trimmed))
    if not path.isascii():
        from unicodedata import normalize  # noqa: PLC0415 - rarely needed

        forms.append(normalize("NFC", forms[-1]))
    joined = [os.path.join(cwd, form) for form in dict.fromkeys(forms)]
    return joined + [_of_process(each) for each in joined if each.startswith("/proc/")]


def _of_process(path: str) -> str:
    """Return where a path in /proc leads. The daemon may not read the links of other processes."""
    return os.fsdecode(final_path(os.fsencode(path)))


def _paths_of_uri(uri: str) -> list[str]:
    """Return the paths that `file:PATH`, `file:///PATH`, or `file://HOST/PATH` may mean."""
    from urllib.parse import unquote  # noqa: PLC0415 - rarely needed

    rest = uri[len("file:") :]
    if rest.startswith("//"):
        rest = rest[2 + len(rest[2:].partition("/")[0]) :]
    plain = [rest, rest.partition("#")[0].partition("?")[0]]
    return [form for text in plain for form in (text, unquote(text)) if form]


def _verdicts(paths: list[str], workspace: str) -> list[str]:
    """Return for each path whether it is inside the workspace, denied, or neither.

    Raises RootsdError if the daemon does not answer.
    """
    found = []
    scope = {"workspace": workspace} if workspace else {}
    with rpc.connect_control() as channel:
        channel.settimeout(TIMEOUT_S)
        for path in paths:
            checked = rpc.ask(channel, "check", {"path": path, **scope})
            if checked.get("published") is True:
                found.append(_INSIDE)
            else:
                found.append(_DENIED if checked.get("verdict") == _DENIED else _NEITHER)
    return found
