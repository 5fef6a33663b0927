"""Every way that a command can end: its exit status and its messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.cli.answers.error_handler import run_with_error_handler
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.render import Flags
from rootsd.core.errors import ErrorCode, RootsdError
from support.fake_daemon import FakeDaemon, Objection, a_listing, an_item
from support.terminal import HANG_GUARD, Shell

# The program with a bug planted in one command.
BUGGY = """
import sys
from rootsd.cli import main
from rootsd.cli.commands import ls
def boom(**_):
    raise ZeroDivisionError("a\\x1b[2J bug")
ls.command.callback = boom
sys.exit(main.main(sys.argv[1:]))
"""


def buggy(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUGGY, *words],
        capture_output=True, text=True, check=False, timeout=HANG_GUARD,
    )  # fmt: skip


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_of_the_daemon_has_its_exit_status(
    daemon: FakeDaemon, shell: Shell, code: ErrorCode
) -> None:
    expected = {
        "failed": 1, "usage": 2, "pending": 3, "denied": 4, "nothing-matched": 5,
        "ambiguous": 6, "refused": 7, "unreachable": 69, "busy": 75, "bad-config": 78,
    }  # fmt: skip
    daemon.answers["projects"] = Objection(code, "no", "rootsd ls")
    done = shell.run("ls")
    assert (done.status, done.out) == (expected[code.value], "")
    assert done.err == "error: no\n  try: rootsd ls\n"


def test_an_ambiguous_reference_gets_a_command_for_each_candidate(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["decide"] = Objection(
        ErrorCode.AMBIGUOUS, "api fits two projects", "rootsd ls api",
        ("acme/api", "beta/\x1bapi"), typed="api",
    )  # fmt: skip
    done = shell.run("approve", "api")
    assert done.status == 6
    assert done.err.splitlines() == [
        "error: api fits two projects",
        "  try: rootsd approve acme/api",
        "       rootsd approve 'beta/\\u{1b}api'",
    ]


def test_an_error_with_json_is_one_object_on_stdout(shell: Shell) -> None:
    done = shell.run("--json", "ls")
    assert (done.status, done.err) == (69, "")
    assert json.loads(done.out) == {
        "schema": "rootsd/1",
        "command": "ls",
        "error": {
            "code": "unreachable",
            "message": "the daemon is not running",
            "remedy": "rootsd up",
        },
    }


@pytest.mark.parametrize(
    ("words", "command"),
    [(("ls", "--zzz"), "ls"), (("parent", "add"), "parent add"), (("ls", "--kind"), "ls")],
)
def test_a_usage_error_names_the_help_of_its_verb(
    shell: Shell, words: tuple[str, ...], command: str
) -> None:
    done = shell.run(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith(f"  try: rootsd {command} --help\n")
    as_json = json.loads(shell.run(*words, "--json").out)
    assert (as_json["command"], as_json["error"]["code"]) == (command, "usage")


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (("approve", "--yse", "api"), "approve has no option --yse; did you mean --yes?",
         "rootsd approve --yes api"),
        (("ls", "--kind=gti"), "--kind cannot be gti; did you mean git?", "rootsd ls --kind=git"),
        (("connect", "claude-cod"), "CLIENT cannot be claude-cod; did you mean claude-code?",
         "rootsd connect claude-code"),
        (("ls", "--format", "nme"), "--format cannot be nme; did you mean name?",
         "rootsd ls --format name"),
        (("parent", "delete", "a b"), "there is no command parent delete; did you mean rm?",
         "rootsd parent rm 'a b'"),
        (("log", "--since", "x"), "log has no option --since", "rootsd log --help"),
        (("rename", "a", "b", "c"), "rename does not take c", "rootsd rename --help"),
        (("--host", "ls", "pending", "api"), "--host comes after pending",
         "rootsd pending --host ls api"),
        (("--tag", "ls", "pending"), "--tag comes after pending", "rootsd pending --tag ls"),
        (("rule", "approve", "*"), "there is no command rule approve; did you mean add approve?",
         "rootsd rule add approve '*'"),
        (("rule", "--dry-run", "rm", "3"), "--dry-run comes after rule rm",
         "rootsd rule rm --dry-run 3"),
        (("--lasped", "approve"), "approve has no option --lasped; did you mean --lapsed?",
         "rootsd approve --help"),
        (("--nothing",), "rootsd has no option --nothing", "rootsd --help"),
        (("undo", "x"), "SEQ has to be a whole number, 1 or more", "rootsd undo --help"),
        (("parent", "set", "a", "--depth", "9" * 20),
         "--depth has to be a whole number from 1 to 64", "rootsd parent set --help"),
        (("rule", "add", "~/src/**", "--deny"), "rule add has no option --deny; it is an argument",
         "rootsd rule add deny '~/src/**'"),
        (("service",), "name what to do: install, logs, print, restart, start, status, stop, or"
         " uninstall", "rootsd service --help"),
        (("ls", "--published=x"), "--published takes no value", "rootsd ls --help"),
        (("ls", "--since", "x"),
         "--since: 'x' is not a duration or a date such as 2d or 2026-11-20",
         "rootsd ls --help"),
    ],
)  # fmt: skip
def test_a_usage_error_says_what_is_wrong_and_what_to_type(
    shell: Shell, words: tuple[str, ...], message: str, remedy: str
) -> None:
    assert shell.run(*words).err == f"error: {message}\n  try: {remedy}\n"


def test_a_missing_choice_lists_the_choices(shell: Shell) -> None:
    error, remedy = shell.run("rule", "add").err.splitlines()
    assert error == "error: VERB is missing: use approve or deny"
    assert remedy == "  try: rootsd rule add --help"


def test_a_bug_ends_with_1_and_its_traceback_is_in_a_private_file(rootsd_dir: Path) -> None:
    done = buggy("ls")
    log = rootsd_dir / "state" / "log" / "bugs.log"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: this is a bug in rootsd: ZeroDivisionError: a\\u{1b}[2J bug",
        f"  try: report it, and attach {log}",
    ]
    assert "in boom" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0
    as_json = buggy("ls", "--json")
    assert (as_json.returncode, as_json.stderr) == (1, "")
    assert json.loads(as_json.stdout)["error"]["code"] == "bug"


@pytest.mark.parametrize("words", [("ls",), ("ls", "-v")])
def test_without_a_file_or_with_verbose_the_traceback_of_a_bug_is_printed(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    is_verbose = "-v" in words
    if not is_verbose:
        monkeypatch.setenv("ROOTSD_DIR", "/dev/null/nowhere")
    done = buggy(*words)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert ("report it with the text above" in done.stderr) is not is_verbose


@pytest.mark.parametrize("end", [KeyboardInterrupt, lambda: signal.raise_signal(signal.SIGINT)])
def test_an_interrupt_ends_with_130_and_says_nothing(
    shell: Shell, capsys: pytest.CaptureFixture[str], end: object
) -> None:
    def action() -> int:
        if end is KeyboardInterrupt:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)
        return 0

    assert run_with_error_handler(Invocation(), action) == 130
    assert capsys.readouterr() == ("", "")


def test_a_closed_pipe_is_not_reported_as_a_bug(daemon: FakeDaemon, rootsd_dir: Path) -> None:
    daemon.answers["projects"] = a_listing(*(an_item(f"p{n}") for n in range(5_000)))
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "rootsd", "ls"],
        stdout=write, stderr=subprocess.PIPE, check=False, timeout=HANG_GUARD,
    )  # fmt: skip
    os.close(write)
    assert (process.returncode, process.stderr) == (141, b"")
    assert not (rootsd_dir / "state").exists()


def test_a_locale_that_lacks_a_letter_does_not_fail(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(an_item("naïve-宽"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = shell.program("ls", environment=environment)
    assert done.status == 0
    assert "na\\xefve-\\u5bbd" in done.out


def test_a_deleted_working_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RootsdError, match="working directory is gone"):
        _ = Invocation().cwd


def test_an_error_keeps_its_code_whatever_raises_it(capsys: pytest.CaptureFixture[str]) -> None:
    class Full(RootsdError):
        code = ErrorCode.BUSY

    def action() -> int:
        raise Full("no room", "rootsd status")

    assert run_with_error_handler(Invocation(Flags(quiet=True)), action) == 75
    assert capsys.readouterr().err == "error: no room\n  try: rootsd status\n"
