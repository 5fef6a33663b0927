"""`rootsd hook`: agents ask before they open files, and hostile or odd calls get no opinion."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rootsd import hook
from rootsd.core.errors import ErrorCode
from rootsd.places.call_places import take_note
from support.fake_daemon import FakeDaemon, Objection
from support.repositories import git

ALLOW, DENY = "allow", "deny"
DIALECTS = hook.dialects()
WORKSPACE = "/src/api"
# The fake daemon has a published project, a denied one, and a pending one.
VERDICTS = {"/src/api": "approved", "/src/secret": "denied", "/src/new": "pending"}


PATCH = "*** Begin Patch\n*** Update File: a.md\n@@\n-x\n+y\n*** Move to: %s\n*** End Patch\n"


def checked(params: dict[str, Any]) -> dict[str, Any]:
    real = os.path.normpath(params["path"])
    found = [verdict for path, verdict in VERDICTS.items() if f"{real}/".startswith(f"{path}/")]
    verdict = found[0] if found else None
    inside = verdict == "approved" and params.get("workspace") == WORKSPACE
    return {
        "published": inside, "verdict": verdict, "root": "api" if inside else None,
        "access": "read-write" if inside else None,
    }  # fmt: skip


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(rootsd_dir) as daemon:
        daemon.answers["check"] = checked
        yield daemon


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    for client in DIALECTS.values():
        if client.project:
            monkeypatch.setenv(client.project, WORKSPACE)


_PERMISSION = ("permissionDecision", "permissionDecisionReason")
ANSWER_KEYS = {
    "claude-code": _PERMISSION, "codex": _PERMISSION, "copilot": _PERMISSION,
    "cursor": ("permission", "user_message", "agent_message"),
    "gemini": ("decision", "reason"), "qwen": _PERMISSION,
}  # fmt: skip


class Stdin:
    def __init__(self, text: bytes) -> None:
        self.buffer = io.BytesIO(text)


class Hook:
    """Runs the hook on calls, as an agent does."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def raw(self, text: bytes, client: str = "claude-code") -> str:
        self._monkeypatch.setattr("sys.stdin", Stdin(text))
        assert hook.main([client]) == 0
        out, err = self._capsys.readouterr()
        assert err == ""
        return out

    def __call__(
        self, tool: str, given: Mapping[str, object], client: str = "claude-code"
    ) -> str | None:
        out = self.raw(json.dumps(a_call(tool, given, client)).encode(), client)
        if not out:
            return None
        answer = json.loads(out)
        if specific := answer.get("hookSpecificOutput"):
            assert specific.pop("hookEventName") == "PreToolUse"
            answer = specific
        decision, *reasons = ANSWER_KEYS[client]
        assert answer.keys() == {decision, *reasons}
        assert all("rootsd" in answer[reason] for reason in reasons)
        return str(answer[decision])


def a_call(tool: str, given: Mapping[str, object], client: str) -> dict[str, object]:
    return {
        "session_id": "abc123", "transcript_path": "/t.jsonl", "cwd": "/src/api/lib",
        "permission_mode": "default", "hook_event_name": DIALECTS[client].events[-1],
        "tool_name": tool, "tool_input": given, "tool_use_id": "toolu_1",
    }  # fmt: skip


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hook:
    return Hook(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Read", {"file_path": "/src/api/a.py"}, ALLOW),
        ("Read", {"file_path": "a.py"}, ALLOW),
        ("Read", {"file_path": "/src/secret/a.py"}, DENY),
        ("Read", {"file_path": "../../secret/a.py"}, DENY),
        ("Read", {"file_path": " /src/secret/a.py "}, DENY),
        ("Read", {"file_path": "/src/new/a.py"}, None),
        ("Read", {"file_path": "/etc/passwd"}, None),
        ("Grep", {"pattern": "x"}, ALLOW),
        ("Grep", {"pattern": "x", "path": "/src/api"}, ALLOW),
        ("Grep", {"pattern": "../x", "path": "/src/api"}, ALLOW),
        ("Grep", {"pattern": "x", "path": "/src/secret"}, DENY),
        ("Grep", {"pattern": "x", "path": "/src"}, None),
        ("Glob", {"pattern": "**/*.py"}, ALLOW),
        ("Glob", {"pattern": "/src/secret/**"}, DENY),
        ("Glob", {"pattern": "../../secret/*"}, DENY),
        ("Glob", {"pattern": "../../**"}, None),
        ("Glob", {"pattern": "{/src/secret,x}/*"}, None),
        ("Glob", {"pattern": 7}, None),
        ("Edit", {"file_path": "/src/api/a.py"}, None),
        ("Edit", {"file_path": "/src/secret/a.py"}, DENY),
        ("Write", {"file_path": "/src/secret/new", "content": "x"}, DENY),
        ("MultiEdit", {"file_path": "/src/secret/a.py"}, DENY),
        ("NotebookEdit", {"notebook_path": "/src/secret/a.ipynb"}, DENY),
        ("Bash", {"command": "cat /src/secret/a.py"}, None),
        ("mcp__files__read", {"file_path": "/src/secret/a.py"}, None),
        ("Read", {}, None),
        ("Read", {"file_path": 7}, None),
        ("Read", {"file_path": None}, None),
    ],
)  # fmt: skip
def test_claude_code_gets_an_answer(
    daemon: FakeDaemon, ask: Hook, tool: str, given: dict[str, object], answer: str | None
) -> None:
    assert ask(tool, given) == answer


@pytest.mark.parametrize(
    ("client", "tool", "given", "answer"),
    [
        ("gemini", "read_file", {"file_path": "/src/api/a.py"}, None),
        ("gemini", "read_file", {"file_path": "../../secret/a.py"}, DENY),
        ("gemini", "write_file", {"file_path": "/src/secret/a.py", "content": ""}, DENY),
        ("gemini", "read_many_files", {"include": ["a.py", "/src/secret/a.py"]}, DENY),
        ("gemini", "list_directory", {"dir_path": "/src/secret"}, DENY),
        ("qwen", "read_file", {"file_path": "/src/api/a.py"}, None),
        ("qwen", "read_file", {"absolute_path": "/src/secret/a.py"}, DENY),
        ("qwen", "edit", {"file_path": "/src/secret/a.py"}, DENY),
        ("copilot", "Read", {"path": "/src/api/a.py"}, None),
        ("copilot", "Read", {"path": "../../secret/a.py"}, DENY),
        ("copilot", "Write", {"path": "/src/secret/a.py", "file_text": ""}, DENY),
        ("copilot", "Grep", {"pattern": "x", "paths": ["/src/new", "/src/secret"]}, DENY),
        ("copilot", "Glob", {"pattern": "*", "paths": "/src/secret"}, DENY),
        ("copilot", "Bash", {"command": "cat /src/secret/a.py"}, None),
        ("codex", "apply_patch", {"command": PATCH % "/src/secret/a.py"}, DENY),
        ("codex", "apply_patch", {"command": PATCH % "../../secret/a.py"}, DENY),
        ("codex", "apply_patch", {"command": PATCH % "/src/api/a.py"}, None),
        ("codex", "Bash", {"command": f"apply_patch <<E\n{PATCH % '/src/secret/a.py'}E\n"}, DENY),
        ("codex", "Bash", {"command": "cat /src/secret/a.py"}, None),
        ("codex", "Bash", {"command": f"echo '{PATCH % '/src/secret/a.py'}'"}, None),
        ("codex", "apply_patch", {"command": ["/src/secret/a.py"]}, None),
        ("cursor", "Read", {"file_path": "/src/api/a.py"}, None),
        ("cursor", "Write", {"file_path": "/src/secret/a.py"}, DENY),
        ("cursor", "Delete", {"path": "../../secret/a.py"}, DENY),
        ("cursor", "Shell", {"command": "cat /src/secret/a.py"}, None),
    ],
)
def test_other_clients_get_an_answer_in_their_format(
    daemon: FakeDaemon,
    ask: Hook,
    client: str,
    tool: str,
    given: dict[str, object],
    answer: str | None,
) -> None:
    assert ask(tool, given, client) == answer


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"file_path": "/src/secret/a.py", "workspace_roots": ["/src/api"]}, DENY),
        ({"file_path": "../secret/a.py", "workspace_roots": ["/src/api"]}, DENY),
        ({"file_path": "/src/api/a.py", "workspace_roots": ["/src/api"]}, None),
        ({"file_path": "/src/secret/a.py", "workspace_roots": []}, None),
        ({"file_path": "/src/secret/a.py", "workspace_roots": "/src"}, None),
        ({"workspace_roots": ["/src/api"]}, None),
    ],
)
def test_cursor_asks_before_it_reads_a_file(
    daemon: FakeDaemon, ask: Hook, given: dict[str, object], answer: str | None
) -> None:
    out = ask.raw(json.dumps({"hook_event_name": "beforeReadFile", **given}).encode(), "cursor")
    assert (json.loads(out)["permission"] if out else None) == answer


def test_a_path_in_the_home_folder_is_expanded_as_the_client_does(
    daemon: FakeDaemon, ask: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/src/secret")
    assert ask("Read", {"file_path": "~/a.py"}) == DENY
    monkeypatch.setenv("HOME", "/src/api")
    assert ask("Read", {"file_path": "~/a.py"}) == ALLOW


def test_without_the_folder_of_the_session_nothing_is_allowed(
    daemon: FakeDaemon, ask: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory of a call may be another project, which the agent chose itself."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR")
    assert ask("Read", {"file_path": "/src/api/a.py"}) is None
    assert ask("Read", {"file_path": "/src/secret/a.py"}) == DENY
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/src/new")
    assert ask("Read", {"file_path": "/src/api/a.py"}) is None


def test_a_relative_folder_of_the_session_allows_nothing(
    daemon: FakeDaemon, ask: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a scope, the daemon counts each root as inside."""
    daemon.answers["check"] = lambda params: checked(
        {**params, "workspace": params.get("workspace", WORKSPACE)}
    )
    for folder in (".", "api", "", "~", "~/api"):
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", folder)
        assert ask("Read", {"file_path": "/src/api/a.py"}) is None
        assert ask("Read", {"file_path": "/src/secret/a.py"}) == DENY
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", WORKSPACE)
    assert ask("Read", {"file_path": "/src/api/a.py"}) == ALLOW


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Glob", {"pattern": "link/**"}, DENY),
        ("Glob", {"pattern": "link/a.py"}, DENY),
        ("Glob", {"pattern": "link/../secret/*"}, DENY),
        ("Glob", {"pattern": "lib/**", "path": "/src/api/link"}, DENY),
        ("Glob", {"pattern": "link/**", "path": "/src/api/lib"}, DENY),
        ("Glob", {"pattern": "outside/*"}, None),
        ("Grep", {"pattern": "x", "glob": "link/*.py"}, DENY),
        ("Grep", {"pattern": "x", "glob": "outside/*.py"}, None),
        ("Grep", {"pattern": "link/", "glob": "*.py"}, ALLOW),
        ("Glob", {"pattern": "plain/**"}, ALLOW),
    ],
)
def test_a_pattern_may_lead_through_a_link(
    daemon: FakeDaemon, ask: Hook, tool: str, given: dict[str, object], answer: str | None
) -> None:
    daemon.answers["check"] = lambda params: checked({**params, "path": followed(params["path"])})
    assert ask(tool, given) == answer


def followed(path: str) -> str:
    """Return where a path leads if /src/api/lib has two links: the daemon resolves it so."""
    path = path.replace("/./", "/")
    for link, target in (("link", "/src/secret"), ("outside", "/etc")):
        for folder in ("/src/api/lib", "/src/api"):
            path = f"{path}/".replace(f"{folder}/{link}/", f"{target}/").rstrip("/")
    return os.path.normpath(path)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("file:///src/secret/a.py", DENY),
        ("file://localhost/src/secret/a.py", DENY),
        ("FILE:///src/secret/a.py", DENY),
        ("file:/src/secret/a.py", DENY),
        ("file:///src/s%65cret/a.py", DENY),
        (" file:///src/secret/a.py", DENY),
        ("file:///src/secret/a.py#L1", DENY),
        ("file:///src/new/a.py", None),
        ("file:///etc/passwd", None),
        ("file:///src/api/a.py", ALLOW),
    ],
)
def test_the_uri_of_a_file_is_resolved(
    daemon: FakeDaemon, ask: Hook, path: str, answer: str | None
) -> None:
    assert ask("Read", {"file_path": path}) == answer


@pytest.mark.parametrize(
    "pattern", ["file:///src/secret/*", "FILE:/src/secret/**", "file://localhost/src/s%65cret/*"]
)
def test_the_uri_in_a_pattern_is_resolved(daemon: FakeDaemon, ask: Hook, pattern: str) -> None:
    assert ask("Glob", {"pattern": pattern}) == DENY
    assert ask("Glob", {"pattern": pattern.replace("/src/", "/src/api/")}) == ALLOW


def test_a_denied_path_among_many_is_denied(daemon: FakeDaemon, ask: Hook) -> None:
    several = [f"/src/api/{number}" for number in range(100)]
    patch = "".join(f"*** Add File: {path}\n" for path in (*several, "/src/secret/a"))
    given = {"command": f"*** Begin Patch\n{patch}*** End Patch\n"}
    assert ask("apply_patch", given, "codex") == DENY
    paths = {"paths": [*several, "/src/secret/a"]}
    assert ask("read_many_files", paths, "gemini") == DENY


@pytest.mark.needs("linux")
def test_a_path_through_a_process_is_resolved(daemon: FakeDaemon, ask: Hook) -> None:
    """The daemon has no right to read the links of another process."""
    assert ask("Read", {"file_path": f"/proc/{os.getpid()}/root/src/secret/a.py"}) == DENY
    assert ask("Read", {"file_path": f"/proc/{os.getpid()}/root/src/api/a.py"}) is None


def test_only_a_strict_hook_denies_what_it_cannot_judge(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(text: bytes, *flags: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert hook.main(["claude-code", *flags]) == 0
        return capsys.readouterr().out

    inside = json.dumps(a_call("Read", {"file_path": "/src/api/a.py"}, "claude-code")).encode()
    other = json.dumps(a_call("Bash", {"command": "ls"}, "claude-code")).encode()
    assert said(inside, hook.STRICT) == said(inside)
    assert said(other, hook.STRICT) == said(other) == ""
    changes: list[dict[str, object]] = [
        {"cwd": ""}, {"cwd": "api"}, {"cwd": None}, {"tool_name": 1}, {"tool_input": []},
        {"tool_input": {}}, {"hook_event_name": None},
        {"tool_input": {"file_path": ["/src/api/a.py"] * 1001}},
    ]  # fmt: skip
    call = json.loads(inside)
    odd = [json.dumps({**call, **change}).encode() for change in changes]
    for text in (b"[]", b"null", b"{}", *odd):
        assert said(text) == ""
        assert DENY in said(text, hook.STRICT)
    daemon.answers["check"] = Objection(ErrorCode.BUSY, "it is busy")
    for text in (inside, b"", b"{", b" " * (hook.MAX_INPUT_BYTES + 1)):
        assert said(text) == ""
        answer = json.loads(said(text, hook.STRICT))["hookSpecificOutput"]
        assert answer["permissionDecision"] == DENY
        assert "(try: " in answer["permissionDecisionReason"]


def test_a_strict_hook_denies_without_a_daemon(
    rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CALL.encode())))
    assert hook.main([hook.STRICT, "claude-code"]) == 0
    answer = json.loads(capsys.readouterr().out)["hookSpecificOutput"]
    assert answer["permissionDecision"] == DENY
    assert "(try: rootsd up)" in answer["permissionDecisionReason"]


def test_a_client_that_lets_failed_hooks_pass_has_no_strict_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert hook.main(["codex", hook.STRICT]) == 1
    assert "name one client: claude-code (" in capsys.readouterr().err


def test_without_a_daemon_there_is_no_opinion(ask: Hook) -> None:
    assert ask("Read", {"file_path": "/src/secret/a.py"}) is None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"jsonrpc":"2.0","id":1,"result":7}\n', b"\xff\n", b"[]\n"]
)
def test_an_invalid_answer_of_the_daemon_gives_no_opinion(
    daemon: FakeDaemon, ask: Hook, raw: bytes
) -> None:
    daemon.raw = raw
    assert ask("Read", {"file_path": "/src/secret/a.py"}) is None


def test_an_error_of_the_daemon_gives_no_opinion(daemon: FakeDaemon, ask: Hook) -> None:
    daemon.answers["check"] = Objection(ErrorCode.USAGE, "unknown: workspace")
    assert ask("Read", {"file_path": "/src/api/a.py"}) is None


CALL = json.dumps(a_call("Read", {"file_path": "/src/secret/a.py"}, "claude-code"))


@pytest.mark.parametrize(
    "text",
    [
        b"", b"null", b"[]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"tool_name": 1e999}',
        CALL.replace("PreToolUse", "PostToolUse").encode(),
        CALL.replace('"/src/api/lib"', '"src"').encode(),
        CALL.replace('"/src/api/lib"', "null").encode(),
        CALL.replace("/src/secret/a.py", r"\ud800").encode(),
        CALL.replace('{"file_path": "/src/secret/a.py"}', "[]").encode(),
        CALL.encode() + b" " * hook.MAX_INPUT_BYTES,
    ],
    ids=range(14),  # each worker sends the names of all tests, and one text has 16 MB
)  # fmt: skip
def test_an_invalid_call_gives_no_opinion(daemon: FakeDaemon, ask: Hook, text: bytes) -> None:
    daemon.answers["check"] = lambda params: (
        checked(params) if params["path"].isprintable() else refuse()
    )
    assert ask.raw(text) == ""


def refuse() -> dict[str, Any]:
    raise Objection(ErrorCode.USAGE, "that is no path")


def test_control_the_valid_form_of_these_calls_is_denied(daemon: FakeDaemon, ask: Hook) -> None:
    assert json.loads(ask.raw(CALL.encode()))["hookSpecificOutput"]["permissionDecision"] == DENY


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    name=st.sampled_from(sorted(DIALECTS)),
    call=st.fixed_dictionaries(
        {
            "hook_event_name": st.sampled_from(["PreToolUse", "BeforeTool", "beforeReadFile"]),
            "cwd": st.sampled_from(["/", "/src/api"]) | JSON,
            "tool_name": st.sampled_from(["Read", "Glob", "Grep", "Edit", "Write", "apply_patch"])
            | JSON,
            "tool_input": st.dictionaries(
                st.sampled_from(["file_path", "path", "pattern", "glob", "command"]),
                JSON | st.text(),
            )
            | JSON,
        }
    ),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_call_makes_it_fail_and_only_reading_tools_are_allowed(
    daemon: FakeDaemon, name: str, call: dict[str, Any]
) -> None:
    try:
        answer = hook.decide(DIALECTS[name], call, os.environ)
    except ValueError:
        return  # `main` turns this into no opinion
    if answer is not None and '"allow"' in answer:
        assert (name, call["tool_name"] in ("Read", "Glob", "Grep")) == ("claude-code", True)


def test_an_unknown_client_does_not_block_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2 would refuse each call of a tool."""
    assert hook.main(["clade-code"]) == hook.main([]) == 1
    assert "claude-code" in capsys.readouterr().err


def test_a_call_of_another_agent_leaves_a_note_and_one_of_the_main_agent_none(
    rootsd_dir: Path, ask: Hook
) -> None:
    """No daemon runs, and the agent waits for nothing."""
    runtime = os.fsencode(rootsd_dir / "run")
    os.makedirs(runtime, 0o700)
    for call, more in (("toolu_1", {"agent_id": "a1"}), ("toolu_2", {})):
        made = a_call("mcp__git__git_status", {}, "claude-code") | {"tool_use_id": call} | more
        assert ask.raw(json.dumps(made).encode()) == ""
    assert take_note(runtime, "toolu_1") == b"/src/api/lib"
    assert take_note(runtime, "toolu_2") is None


@pytest.mark.parametrize(
    "more",
    [
        {"tool_use_id": "../x", "agent_id": "a", "tool_name": "mcp__a__b"},
        {"tool_use_id": 1, "agent_id": "a", "tool_name": "mcp__a__b"},
        {"cwd": "relative", "agent_id": "a", "tool_name": "mcp__a__b"},
        {"hook_event_name": "DirectoryAdded", "directory": "/src/new"},
        {"hook_event_name": "DirectoryAdded", "directory": 7},
    ],
)
def test_a_move_that_cannot_be_told_refuses_nothing(ask: Hook, more: dict[str, object]) -> None:
    made = a_call("mcp__a__b", {}, "claude-code") | more
    assert ask.raw(json.dumps(made).encode()) == ""


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(("folder", "why"), [("/src/secret", "denied"), ("/src/api", "git")])
def test_no_worktree_is_made_in_a_denied_folder(
    folder: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the other one, only git refuses it: the folder does not exist."""
    event = {"hook_event_name": "WorktreeCreate", "name": "fix", "cwd": folder}
    monkeypatch.setattr("sys.stdin", Stdin(json.dumps(event).encode()))
    assert hook.main(["claude-code"]) == 1
    out, err = capsys.readouterr()
    assert (out, why in err) == ("", True), err


@pytest.mark.parametrize("is_denied", [True, False])
def test_no_worktree_is_made_in_a_denied_main_checkout(
    is_denied: bool,
    daemon: FakeDaemon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The agent works in another worktree, which is approved."""
    (main := tmp_path / "main").mkdir()
    git("init", main)
    git("commit", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", beside := tmp_path / "beside", cwd=main)

    def denied_below(params: dict[str, Any]) -> dict[str, Any]:
        is_there = params["path"].startswith(f"{main}/")
        return {"published": False, "verdict": "denied" if is_there and is_denied else None}

    daemon.answers["check"] = denied_below
    event = {"hook_event_name": "WorktreeCreate", "name": "fix", "cwd": str(beside)}
    monkeypatch.setattr("sys.stdin", Stdin(json.dumps(event).encode()))
    assert hook.main(["claude-code"]) == (1 if is_denied else 0)
    assert (main / ".claude").exists() is not is_denied
    assert ("a person denied" in capsys.readouterr().err) is is_denied
