"""The console entry point: fast commands stay fast, all others reach the command line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd import __main__ as entry
from rootsd.core.errors import Exit
from support.fake_daemon import FakeDaemon, a_listing, a_status, an_item
from support.terminal import read_until

HANG_GUARD = 60
HEAVY = (
    "click", "rich", "mcp", "msgspec", "pydantic", "asyncio", "anyio", "dataclasses",
    "platformdirs",
)  # fmt: skip
# Runs the entry point for each command as the console script does, in a fork of its own, and
# reports the loaded heavy modules.
PROBE = """
import os, sys
for words in {commands!r}:
    if not os.fork():
        sys.argv = ["rootsd", *words]
        try:
            from rootsd.__main__ import main
            main()
        except SystemExit:
            pass
        sys.stdout.flush()
        found = sorted(name for name in {heavy!r} if name in sys.modules)
        print("loaded:", repr((words, found)), file=sys.stderr, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(rootsd_dir) as daemon:
        daemon.answers["status"] = a_status()
        daemon.answers["projects"] = a_listing()
        daemon.answers["check"] = {
            "published": True, "verdict": "approved", "root": "api", "access": "read-write",
        }  # fmt: skip
        yield daemon


def loaded(
    *commands: tuple[str, ...], heavy: tuple[str, ...] = HEAVY
) -> dict[tuple[str, ...], set[str]]:
    """Return the heavy modules that each command loads."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(commands=commands, heavy=heavy)],
        input="", capture_output=True, text=True, check=True, timeout=HANG_GUARD,
    )  # fmt: skip
    lines = re.findall("loaded: (.*)", done.stderr)
    return {words: {*names} for words, names in map(literal_eval, lines)}


QUICK = (
    ("check", "/src"), ("check", "--write", "/src"), ("check", "/src", "--write", "-q"),
    ("-q", "check", "/src"), ("--no-input", "--no-color", "-v", "check", "/src"),
    ("pending", "--count"), ("-q", "pending", "--exit-code", "--count", "--no-color"),
    ("bridge",), ("-q", "bridge", "--client", "x"), ("run", "--nonsense"),
    ("hook", "claude-code"), ("hook", "nonsense"), ("confine", "--nonsense"),
    ("completion", "zsh"), ("-q", "shell-init", "bash"),
)  # fmt: skip


def test_a_quick_command_loads_nothing_heavy(daemon: FakeDaemon) -> None:
    assert loaded(*QUICK) == {words: set() for words in QUICK}
    quickest = (("check", "/src"), ("hook", "claude-code"))
    found = loaded(*quickest, heavy=("typing", "inspect", "subprocess"))
    assert found == {words: set() for words in quickest}


def test_the_command_line_loads_neither_the_sdk_nor_unused_modules(daemon: FakeDaemon) -> None:
    found = loaded(("--help",), ("approve", "--help"), ("ls",), ("status",))
    assert len(found) == 4
    for modules in found.values():
        assert "click" in modules, "the control"
        assert modules <= {"click", "dataclasses", "msgspec"}


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "check", "/src"), ("check", "/src", "--json"), ("check", "--", "/src"),
        ("check", "--help"), ("check",), ("check", "/a", "/b"), ("check", "--wirte", "/src"),
        ("pending", "--count", "--json"), ("pending",), ("bridge", "--help"), ("--json", "bridge"),
        ("run", "--help"), ("run", "--only", "x", "--help", "--", "server"),
        ("--json", "run", "server"), ("confine", "--help"), ("daemon", "--help"),
        ("daemon", "--ready-fd", "nine"), ("-v", "daemon"),
    ],
)  # fmt: skip
def test_other_arguments_go_to_the_command_line_unchanged(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["rootsd", *words])
    monkeypatch.setattr("rootsd.cli.main.main", seen.append)
    entry.main()
    assert seen == [list(words)]


@pytest.mark.parametrize(
    ("words", "program", "given"),
    [
        (("-q", "bridge", "--client", "-v"), "proxy.bridge.main", ["--client", "-v"]),
        (("run", "--", "server", "--help"), "proxy.run.main", ["--", "server", "--help"]),
        (("run", "server", "--help"), "proxy.run.main", ["server", "--help"]),
        (("run", "-q", "--", "-v", "--json"), "proxy.run.main", ["-q", "--", "-v", "--json"]),
        (("daemon",), "cli.answers.run_daemon", []),
        (("daemon", "--ready-fd", "9"), "cli.answers.run_daemon", ["--ready-fd", "9"]),
        (("daemon", "--detach", "--ready-fd", "9"), "cli.answers.run_daemon",
         ["--detach", "--ready-fd", "9"]),
    ],
)  # fmt: skip
def test_a_program_gets_its_arguments_unchanged_and_without_the_command_line(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], program: str, given: list[str]
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["rootsd", *words])
    monkeypatch.setattr(f"rootsd.{program}.main", lambda words: seen.append([*words]))
    entry.main()
    assert seen == [given]


def test_a_quick_command_gives_the_same_answer_as_the_full_one(daemon: FakeDaemon) -> None:
    for words in (("check", "/src"), ("check", "/src", "--json")):
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", *words],
            capture_output=True, check=False, timeout=HANG_GUARD,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_ends_a_quick_command_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: str, *, write: bool) -> int:
        signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr(sys, "argv", ["rootsd", "check", "/src"])
    monkeypatch.setattr("rootsd.check.main", interrupted)
    assert entry.main() == 130


@pytest.mark.parametrize("words", [("shell-init", "bash"), ("completion", "zsh"), ("--help",)])
def test_a_reader_that_leaves_early_is_no_error(rootsd_dir: Path, words: tuple[str, ...]) -> None:
    del rootsd_dir
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", *words],
            stdout=output, stderr=subprocess.PIPE, check=False, timeout=HANG_GUARD,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (Exit.BROKEN_PIPE, b"")


@pytest.mark.parametrize("words", [("shell-init", "bash"), ("pending", "--count"), ("ls",)])
@pytest.mark.parametrize(
    ("output", "status", "message"),
    [
        (">&-", Exit.BROKEN_PIPE, ""),
        (">&- <&- 2>&-", Exit.BROKEN_PIPE, ""),
        (">/dev/full", 1, "error: the output could not be written: No space left on device\n"),
        (">/dev/null", 0, ""),
    ],
)
def test_output_that_cannot_be_written_is_no_bug(
    daemon: FakeDaemon, words: tuple[str, ...], output: str, status: int, message: str
) -> None:
    daemon.answers["projects"] = a_listing(an_item())
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {output}', "sh", sys.executable, "-m", "rootsd", *words],
        stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_GUARD,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, message)


@pytest.mark.parametrize(
    "words", [("bridge",), ("run", "--", "true"), ("hook", "claude-code")], ids=" ".join
)
def test_a_program_for_programs_tells_a_person_what_it_waits_for(
    daemon: FakeDaemon, words: tuple[str, ...]
) -> None:
    ours, theirs = os.openpty()
    command = (sys.executable, "-m", "rootsd", *words)
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True
    )
    try:
        shown = read_until(ours, "  try: rootsd ")
        assert shown.startswith(f"rootsd {words[0]} waits for ")
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)
    in_a_pipe = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert b" waits for " not in in_a_pipe.stderr
