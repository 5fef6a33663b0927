"""The output of each verb on terminals of 40, 80, and 120 columns, in a pipe, and as JSON.

The expected output is in `golden/`. To change it, or to add a command, leave only the first line
of a file, run this test once, and review the file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rootsd import __version__
from rootsd.cli.answers import doctor
from rootsd.cli.answers.doctor import DoctorCheck
from rootsd.cli.text.verb_names import verb_names
from rootsd.core.doctor import error, ok
from support.fake_daemon import FakeDaemon
from support.golden_files import GOLDEN_FILES, command_line, golden_commands
from support.key_presses import Keys
from support.sample_answers import ANSWERS
from support.terminal import Shell
from support.user_session import UserSession

COMMANDS = golden_commands()
WIDTHS = (40, 80, 120)
CONFIG = """\
# mine
[[parent]]
path = "/home/ann/src"
"""
# `down` ends a process, which a fake does not have, and `give` and `add-to-session` need a wall.
# `connect` and its like edit files of other programs, and `exposure` reads them. The output of the
# others is for programs.
ELSEWHERE = {
    "down", "init", "bridge", "confine", "hook", "run", "daemon", "give",
    "connect", "disconnect", "clients", "exposure", "ui", "acp", "add-to-session",
}  # fmt: skip
# Lines of several kinds with different columns.
RAGGED = {"show", "status", "up", "service-status", "export"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
SEEN = (
    DoctorCheck(ok("command", "clients can run /home/ann/.local/bin/rootsd")),
    DoctorCheck(
        error("state", "/home/ann/st\u202eate is open to others", "chmod 700 /home/ann/state")
    ),
)


@pytest.fixture
def rootsd_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a temporary folder whose path has the same length everywhere, because lines wrap by
    it.
    """
    with tempfile.TemporaryDirectory(prefix="rootsd-", dir="/tmp") as folder:
        monkeypatch.setenv("ROOTSD_DIR", folder)
        yield Path(folder)


@pytest.fixture
def facts(daemon: FakeDaemon, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up the same environment on every machine, and return the folder shown."""
    daemon.answers |= ANSWERS
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(rootsd_dir)
    (rootsd_dir / "config").mkdir()
    (rootsd_dir / "config" / "config.toml").write_text(CONFIG)
    monkeypatch.setattr(doctor, "run_checks", lambda invocation: iter(SEEN))
    person = partial(Keys, "?", "r", "api", "s")  # who asks for help, renames, and then skips
    monkeypatch.setattr("rootsd.cli.commands.review.Keyboard", person)
    schema = Path("/opt/rootsd/config.schema.json")
    monkeypatch.setattr("rootsd.cli.answers.config_edit.schema_file", lambda: schema)
    return rootsd_dir


def _printed(shell: Shell, words: tuple[str, ...]) -> str:
    parts = [command_line(words)]
    for width in WIDTHS:
        shown = ESCAPES.sub("", shell.run_on_terminal(*words, columns=width).out)
        parts.append(f"--- {width} columns\n{shown}")
    piped = shell.run(*words)
    parts.append(f"--- pipe\n{piped.out}--- standard error\n{piped.err}")
    parts.append(f"--- json\n{shell.run(*words, '--json').out}")
    return "".join(parts)


@pytest.fixture
def service(facts: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install and start the service."""
    desktop = UserSession(facts / "home", monkeypatch)
    with desktop.daemon():
        assert shell.run("service", "install").status == 0
    desktop.service_runs()


def test_every_verb_has_a_golden_file() -> None:
    shown = {words[0] for words in COMMANDS.values()}
    missing = verb_names() - ELSEWHERE - shown
    assert not missing, f"write `$ rootsd VERB` into tests/cli/golden/VERB.txt for {missing}"
    assert shown <= verb_names() - ELSEWHERE


@pytest.mark.parametrize("name", COMMANDS)
def test_a_verb_prints_its_golden_output(
    facts: Path, shell: Shell, name: str, request: pytest.FixtureRequest
) -> None:
    words = COMMANDS[name]
    if words[0] == "service":
        request.getfixturevalue("service")
    printed = _printed(shell, words)
    printed = printed.replace(str(facts), "/tmp/rootsd-example").replace(__version__, "VERSION")
    golden = GOLDEN_FILES[name]
    if golden.read_text() == command_line(words):
        golden.write_text(printed)
        pytest.fail(f"{golden} is new: review it, and run this test again")
    assert printed == golden.read_text(), (
        f"to accept this output, leave only the first line of {golden}, run this test, and review"
        " the file"
    )


@pytest.mark.parametrize("golden", GOLDEN_FILES.values(), ids=lambda path: path.stem)
def test_no_hostile_text_reaches_a_terminal_a_pipe_or_a_parser(golden: Path) -> None:
    text = golden.read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert (
        r"\u{a}" not in text
    )  # no answer contains a newline, so this one is an escaped newline of our own
    pipe = text.partition("--- pipe\n")[2].partition("--- standard error")[0]
    counts = {line.count("\t") for line in pipe.splitlines() if golden.stem not in RAGGED}
    assert len(counts) <= 1
