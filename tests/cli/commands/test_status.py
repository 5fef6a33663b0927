"""`rootsd status`: the same facts on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import pytest

from rootsd.wall.git.facts import Fact, FactKind, describe
from support.fake_daemon import FakeDaemon, a_status
from support.terminal import Shell

PARENT = {
    "path": "/src", "depth": 4, "nested": "none", "state": "watching", "note": None, "projects": 1,
}  # fmt: skip
SESSION = {"client": "cursor", "pid": 9, "since": "2026-11-20T09:00:00Z"}


def test_lapsed_rules_are_shown_with_the_next_command(daemon: FakeDaemon, shell: Shell) -> None:
    status = a_status()
    daemon.answers["status"] = {**status, "counts": {**status["counts"], "lapsed_rules": 2}}
    lines = shell.run_on_terminal("status").out.splitlines()
    assert "rules     2 lapsed                       → rootsd rule" in lines
    assert "count\tlapsed_rules\t2" in shell.run("status").out


def test_changed_files_are_shown_with_the_next_command(daemon: FakeDaemon, shell: Shell) -> None:
    status = a_status(changed_files=["api: .mcp.json", "web: .envrc"])
    daemon.answers["status"] = {**status, "counts": {**status["counts"], "changed": 3}}
    shown = shell.run_on_terminal("status", columns=120).out
    assert "changed   api: .mcp.json; web: .envrc; and 1 more   → rootsd review --changed" in shown
    assert "changed\tweb: .envrc" in shell.run("status").out.splitlines()


def test_refused_commands_and_another_guard_are_shown(daemon: FakeDaemon, shell: Shell) -> None:
    refused = {
        "count": 2, "at": "2026-11-20T09:00:00Z", "what": "approve \x1b", "by": "pid 7, claude",
        "why": "Claude Code started it (claude, pid 7)",
    }  # fmt: skip
    daemon.answers["status"] = a_status(guard="off", refused=refused, focus="wo\x1brk")
    lines = shell.run_on_terminal("status", columns=120).out.splitlines()
    assert "guard     off" in lines
    (focus,) = (line for line in lines if line.startswith("focus "))
    assert focus.split() == ["focus", "wo\\u{1b}rk", "→", "rootsd", "focus", "--clear"]
    told = next(line for line in lines if line.startswith("refused "))
    assert told.startswith("refused   2 commands, the last ")
    assert told.endswith(
        ": approve \\u{1b}, because Claude Code started it (claude, pid 7)   → rootsd log"
    )
    assert daemon.asked("status")[-1] == {"is_look": True}
    rows = shell.run("status").out.splitlines()
    assert "focus\two\\u{1b}rk" in rows
    assert "guard\toff" in rows
    assert any(row.startswith("refused\t2\t2026-11-20T09:00:00Z\tapprove ") for row in rows)
    assert daemon.asked("status")[-1] == {}


def test_commands_of_agents_are_shown(daemon: FakeDaemon, shell: Shell) -> None:
    commands = {
        "count": 1, "at": "2026-11-20T09:00:00Z", "what": "down\x1b", "by": "pid 7, claude",
        "why": "Claude Code started it (claude, pid 7)",
    }  # fmt: skip
    daemon.answers["status"] = a_status(agent_commands=commands)
    lines = shell.run_on_terminal("status", columns=120).out.splitlines()
    told = next(line for line in lines if line.startswith("agents "))
    assert told.startswith("agents    1 command, ")
    assert ": down\\u{1b}, because Claude Code started it" in told
    rows = shell.run("status").out.splitlines()
    assert any(row.startswith("agent command\t1\t2026-11-20T09:00:00Z\tdown") for row in rows)


def test_connections_that_were_closed_are_counted(daemon: FakeDaemon, shell: Shell) -> None:
    closed = {"of another user": 1, "too many of one process": 1203}
    daemon.answers["status"] = a_status(closed_connections=closed)
    told = "closed    connections 1203 too many of one process, 1 of another user"
    assert told in shell.run_on_terminal("status").out.splitlines()
    rows = shell.run("status").out.splitlines()
    assert "closed\t1203\ttoo many of one process" in rows


def test_a_daemon_without_parents_says_what_to_do(daemon: FakeDaemon, shell: Shell) -> None:
    counts = dict.fromkeys(a_status()["counts"], 0)
    daemon.answers["status"] = a_status(parents=[], counts=counts, sessions=[])
    assert shell.run_on_terminal("status").out.splitlines()[1:] == [
        "parents   none                           → rootsd up ~/src",
        "projects  none decided",
        "pending   0",
        "clients   none",
    ]


def test_many_clients_are_summed_up(daemon: FakeDaemon, shell: Shell) -> None:
    clients = ["c0", "c0", "a\x1b[2J", *(f"c{n}" for n in range(1, 6))]
    daemon.answers["status"] = a_status(
        sessions=[{**SESSION, "client": client} for client in clients]
    )
    told = "clients   c0 (2), a\\u{1b}[2J, c1, c2, c3 and 2 more"
    assert told in shell.run_on_terminal("status").out
    daemon.answers["status"] = a_status(sessions=[{**SESSION, "client": None}])
    assert "session\t?\t9\t2026-11-20T09:00:00Z\n" in shell.run("status").out


def test_a_parent_has_its_state_and_a_note(daemon: FakeDaemon, shell: Shell) -> None:
    gone = {**PARENT, "path": "/mnt\t", "state": "unreachable", "note": "gone\n"}
    daemon.answers["status"] = a_status(parents=[PARENT, gone], warnings=["mind"])
    done = shell.run("status")
    assert "parent\tfile:///mnt%09\t4\t1\tunreachable\tgone\\u{a}\n" in done.out
    assert done.err == "warning: mind\n"
    shown = shell.run_on_terminal("status").out
    assert "unreachable: gone" in shown
    assert "/src (depth 4)  watching  1 project\n" in shown


@pytest.mark.parametrize("words", [(), ("status",)])
def test_without_a_daemon_it_ends_with_status_69(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run(*words)
    assert (done.status, done.out) == (69, "")
    assert done.err == "error: the daemon is not running\n  try: rootsd up\n"


def test_what_a_program_left_behind_is_escaped_once(daemon: FakeDaemon, shell: Shell) -> None:
    fact = Fact(FactKind.LINK, b"/src/a  b\n\xe2\x80\xae\x1b[2J\\\xff/HEAD", b" /home/x\n ")
    sentence = describe(fact)
    daemon.answers["status"] = a_status(left_behind=[sentence, "raw\x1b[2J\n"])
    lines = shell.run("status").out.splitlines()
    assert f"left\t{sentence}" in lines
    assert "left\traw\\u{1b}[2J\\u{a}" in lines
    assert sentence in shell.run_on_terminal("status", columns=400).out
