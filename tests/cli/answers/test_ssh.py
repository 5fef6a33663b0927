"""The command of ssh: one program with exactly these words, whatever shell runs it there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rootsd.cli.answers import ssh
from rootsd.cli.answers.ssh import (
    HostUnreachable,
    Prompts,
    RemoteTerminal,
    check_host,
    remote_line,
    ssh_command,
)
from rootsd.core.errors import RootsdError
from rootsd.wire.request import BadRequest

HOSTILE = (
    "", "-oProxyCommand=touch x", "two words", "it's", '"quoted"', "back\\slash\\\\", "\\'", "a!b",
    "!!", "$(touch x)", "`touch x`", "$HOME", "~", "*", "?", "[a]", "{a,b}", ";touch x", "&", "|x",
    ">x", "#x", "=sh", "%self", "^", "line\nbreak", "\n", "end\n", "tab\there", "\x1b[2J", "é",
    "\udcff", "%s%b", "\\0101", "--",
)  # fmt: skip
SHELLS = ("sh", "bash", "zsh", "fish", "tcsh")


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program that prints its words, each with a NUL after it."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "print-words"
    program.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    program.chmod(0o755)
    return folder


def words_seen_by(shell: str, folder: Path, *words: str) -> list[str]:
    """Have a login shell run the line as sshd does, and return the words that arrive."""
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(
        [shell, "-c", remote_line(["print-words", *words])],
        env=environment, cwd=folder, capture_output=True, check=True,
    )  # fmt: skip
    assert not (folder / "x").exists()
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize(
    "shell", [pytest.param(each, marks=pytest.mark.needs(each)) for each in SHELLS[1:]] + ["sh"]
)
def test_each_shell_passes_hostile_words_on_unchanged(shell: str, printer: Path) -> None:
    assert words_seen_by(shell, printer, *HOSTILE) == [*HOSTILE]
    for word in HOSTILE:
        assert words_seen_by(shell, printer, word) == [word]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1
    )
)
@example(["'; touch x; '"])
def test_any_words_pass_a_shell_unchanged(printer: Path, words: list[str]) -> None:
    assert words_seen_by("sh", printer, *words) == words


def test_a_plain_quoting_would_not_pass_every_shell(printer: Path) -> None:
    """The control: ssh alone joins the words, and the shell splits them again."""
    line = " ".join(("print-words", "two words"))
    done = subprocess.run(
        ["sh", "-c", line], env={"PATH": f"{printer}:{os.environ['PATH']}"},
        capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout == b"two\0words\0"


def test_usual_words_stay_readable() -> None:
    line = remote_line(["rootsd", "approve", "--under=~/my src", "--", "acme/api"])
    assert line.endswith("rootsd approve '--under=~/my src' -- acme/api")


@pytest.mark.parametrize(
    "host", ["build", "ann@build", "ann@10.0.0.7", "ssh://ann@build:2222", "ssh://[::1]:22"]
)
def test_hosts_that_ssh_accepts(host: str) -> None:
    assert check_host(host) == host


@pytest.mark.parametrize(
    "host",
    ["", "-oProxyCommand=touch x", "-l", "ann@-oProxyCommand=x", "ssh://-oX", "@build", "ann@",
     "a b", "a;b", "$(x)", "`x`", "a\nb", "a'b", "%h", "ann@build@", "build\n"],
)  # fmt: skip
def test_a_host_is_never_an_option_or_shell_text(host: str) -> None:
    with pytest.raises(BadRequest, match="is not a host"):
        check_host(host)
    with pytest.raises(BadRequest):
        ssh_command(host, ["rootsd"], RemoteTerminal.NONE, Prompts.ALLOWED, "/log")


def test_the_host_follows_the_end_of_the_options() -> None:
    command = ssh_command("build", ["x"], RemoteTerminal.PSEUDO, Prompts.FORBIDDEN, "/log")
    assert command[-3:-1] == ["--", "build"]
    assert "-t" in command
    assert "BatchMode=yes" in command
    command = ssh_command("build", ["x"], RemoteTerminal.NONE, Prompts.ALLOWED, "/log")
    assert "-T" in command
    assert "BatchMode=yes" not in command


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program ssh in front of all others. Its script gets the log of ssh as $2."""
    program = tmp_path / "ssh"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return program


def script(program: Path, text: str) -> None:
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(("said", "reason"), ssh._REASONS.items())
def test_a_known_failure_of_ssh_is_explained(fake_ssh: Path, said: str, reason: str) -> None:
    script(fake_ssh, f"echo 'ssh: {said}.' >>\"$2\"; exit 255")
    with pytest.raises(HostUnreachable) as raised:
        ssh.run_on("build", ["rootsd"], Prompts.ALLOWED)
    assert raised.value.message == f"ssh to build failed: {reason}\nssh says: ssh: {said}."


def test_the_page_explains_the_failures_that_happen() -> None:
    page = (Path(__file__).parent.parent.parent.parent / "docs" / "HOSTS.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    quoted = [text for row in rows for text in row.split("`")[1::2]]
    from_ssh = [text for text in quoted if any(text in why for why in ssh._REASONS.values())]
    assert len(from_ssh) == 5
    assert [text for text in quoted if text not in from_ssh] == [
        "there is no program rootsd on HOST", "the daemon is not running", "has no option",
    ]  # fmt: skip


def test_an_unknown_failure_of_ssh_shows_its_message(fake_ssh: Path) -> None:
    script(fake_ssh, 'echo odd >>"$2"; exit 255')
    with pytest.raises(HostUnreachable, match="ssh says: odd"):
        ssh.run_on("build", ["rootsd"], Prompts.ALLOWED)
    script(fake_ssh, "exit 255")
    with pytest.raises(HostUnreachable, match="the connection was lost"):
        ssh.run_on("build", ["rootsd"], Prompts.ALLOWED)


def test_statuses_of_the_remote_program_pass_through(fake_ssh: Path) -> None:
    for status in (0, 3, 7, 69, 130):
        script(fake_ssh, f"exit {status}")
        assert ssh.run_on("build", ["rootsd"], Prompts.ALLOWED) == status
    script(fake_ssh, "kill -TERM $$")
    assert ssh.run_on("build", ["rootsd"], Prompts.ALLOWED) == 143


def test_without_ssh_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RootsdError, match="there is no program ssh here"):
        ssh.run_on("build", ["rootsd"], Prompts.ALLOWED)
