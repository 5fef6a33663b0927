"""Verbs with `--host`: which words go to the other machine, and which never do."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
import pytest

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.main import root
from rootsd.cli.options import remote
from rootsd.cli.options.completion import complete_words
from rootsd.core.errors import ErrorCode, Exit
from rootsd.link import sandbox
from support.fake_daemon import FakeDaemon, Objection, a_listing, an_item
from support.sample_answers import ANSWERS
from support.terminal import Shell

VERBS = ("approve", "deny", "pending", "status", "ui")


@pytest.fixture
def sent(daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program ssh that stores the line for the other machine in the returned file."""
    daemon.answers |= {**ANSWERS, "remote-command": {}}
    program, file = tmp_path / "ssh", tmp_path / "sent"
    program.write_text(f'#!/bin/sh\nfor word; do :; done; printf %s "$word" >{file}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return file


def words_in(file: Path) -> list[str]:
    """Return the words that the other machine runs."""
    line = shlex.split(file.read_text())
    return line[line.index("rootsd") :]


@pytest.mark.parametrize(
    ("typed", "there"),
    [
        ("pending", "pending"),
        ("status", "status"),
        ("ui", "ui"),
        ("--json pending --count", "pending --json --count"),
        ("pending api --sort age --reverse -q", "pending --quiet --sort=age --reverse -- api"),
        ("pending --under ~/src --kind git", "pending --kind=git --under=~/src"),
        ("pending --kind git --kind hg", "pending --kind=git --kind=hg"),
        ("approve api --as x --for 8h", "approve --as=x --for=8h -- api"),
        ("allow api --tag a --tag=b", "approve --tag=a --tag=b -- api"),
        ("approve --all --under /src --dry-run", "approve --all --under=/src --dry-run"),
        ("deny -- -rf ~/x file:///x", "deny -- -rf ~/x file:///x"),
        ("deny 'two words' '*/x-*' --no-input", "deny --no-input -- 'two words' '*/x-*'"),
    ],
)  # fmt: skip
def test_the_same_words_run_there(shell: Shell, sent: Path, typed: str, there: str) -> None:
    verb, *rest = shlex.split(typed)
    done = shell.run(verb, "--host", "build", *rest) if verb[0] != "-" else shell.run(
        verb, rest[0], "--host=build", *rest[1:]
    )  # fmt: skip
    assert done.status == 0, done.err
    assert words_in(sent) == ["rootsd", *shlex.split(there)]


def test_the_value_of_an_option_is_never_taken_for_the_host(
    shell: Shell, sent: Path, daemon: FakeDaemon
) -> None:
    assert shell.run("approve", "api", "--as", "--host", "--host", "build").status == 0
    assert words_in(sent) == ["rootsd", "approve", "--as=--host", "--", "api"]
    sent.unlink()
    shell.run("deny", "--", "--host")
    assert [order["refs"] for order in daemon.asked("decide")] == [["--host"]]
    assert not sent.exists()


@pytest.mark.parametrize("verb", ["approve", "deny", "pending"])
@pytest.mark.parametrize("reference", [".", "..", "./api", "../api", "../.."])
def test_a_folder_of_this_machine_is_refused(
    shell: Shell, sent: Path, daemon: FakeDaemon, verb: str, reference: str
) -> None:
    done = shell.run(verb, reference, "--host=build")
    assert done.status == Exit.USAGE
    assert f"{reference} is a folder of this machine" in done.err
    assert not sent.exists()
    assert not daemon.requests


@pytest.mark.parametrize("path", ["src", ".", "../src", "src/acme"])
def test_a_relative_folder_is_refused(shell: Shell, sent: Path, path: str) -> None:
    for verb in ("pending", "approve"):
        done = shell.run(verb, "--under", path, "--host=build")
        assert done.status == Exit.USAGE
        assert f"{path} is relative to a folder of this machine" in done.err
    assert not sent.exists()


def test_a_path_below_the_home_here_gets_a_note(shell: Shell, sent: Path, home: Path) -> None:
    done = shell.run("deny", f"{home}/src/api", "--host=build")
    assert f"{home}/src/api is a path on build. For your home folder there" in done.err
    assert words_in(sent)[-1] == f"{home}/src/api"
    assert "is a path on" not in shell.run("deny", "/src/api", "--host=build").err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "", "a b", "$(x)"])
def test_a_host_is_checked_before_anything_happens(
    shell: Shell, sent: Path, daemon: FakeDaemon, verb: str, host: str
) -> None:
    references = ("api",) if verb in ("approve", "deny") else ()
    done = shell.run(verb, *references, "--host", host)
    assert done.status == Exit.USAGE
    assert "is not a host" in done.err
    assert not sent.exists()
    assert not daemon.requests


def test_the_guard_here_is_asked_first(shell: Shell, sent: Path, daemon: FakeDaemon) -> None:
    shell.run("approve", "a b", "--host=ann@build")
    shell.run("pending", "--host=build")
    assert daemon.asked("remote-command") == [
        {"command": "approve --host=ann@build -- 'a b'"},
        {"command": "pending --host=build", "effect": "dry-run"},
    ]
    sent.unlink()
    daemon.answers["remote-command"] = Objection(ErrorCode.REFUSED, "this command is refused: x")
    for verb in ("deny", "pending", "status", "ui"):
        references = ("api",) if verb == "deny" else ()
        assert shell.run(verb, *references, "--host=build").status == Exit.REFUSED
    daemon.answers["remote-command"] = Objection(ErrorCode.USAGE, "this daemon does not know it")
    assert shell.run("deny", "api", "--host=build").status == Exit.USAGE
    assert not sent.exists()


def test_without_a_daemon_the_ancestors_are_judged_here(
    tmp_path: Path, rootsd_dir: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no ssh
    monkeypatch.setenv("OUR_AGENT", "1")
    config = rootsd_dir / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[approval]\nmarkers = ["OUR_AGENT"]\n')
    refused = shell.program("approve", "api", "--host=build", environment=os.environ)
    assert refused.status == Exit.REFUSED
    assert "this command is refused:" in refused.err
    assert "OUR_AGENT is set" in refused.err


def test_a_sandbox_without_a_daemon_reaches_no_other_machine(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process namespace of its own, the ancestors of a program are not all visible."""
    monkeypatch.setenv("PATH", str(tmp_path))  # no ssh
    monkeypatch.setattr(sandbox, "in_sandbox", lambda: True)
    done = shell.run("approve", "api", "--host=build")
    assert done.status == Exit.UNREACHABLE
    assert "runs in a sandbox" in done.err
    assert "ssh" not in done.err


def test_bare_rootsd_and_verbs_without_a_host_stay_here(
    shell: Shell, sent: Path, daemon: FakeDaemon
) -> None:
    shell.run()
    shell.run("pending")
    assert {method for method, _ in daemon.requests} >= {"status", "projects"}
    assert not daemon.asked("remote-command")
    assert not sent.exists()


def test_completion_offers_nothing_of_this_machine(daemon: FakeDaemon) -> None:
    daemon.answers["projects"] = a_listing(an_item("acme/api", tags=["work"]))

    def candidates(*words: str) -> list[list[str]]:
        return complete_words(root, words, Invocation())

    for before in (("approve", ""), ("deny", ""), ("pending", ""), ("deny", "/"), ("deny", "~/")):
        verb, typed = before
        assert candidates(verb, typed), "the control"
        assert candidates(verb, "--host", "build", typed) == []
        assert candidates(verb, "--host=build", typed) == []
    for option in ("--under", "--tag"):
        assert candidates("pending", "--host=build", option, "") == []
    assert [word for _, word, _ in candidates("pending", "--host=build", "--ex")] == [
        "--exit-code"
    ]


def test_the_verbs_with_a_host_are_these_and_each_is_judged() -> None:
    top = click.Context(root, obj=Invocation())
    remote_verbs = {
        name
        for name in root.list_commands(top)
        if isinstance(root.get_command(top, name), remote.RemoteVerbCommand)
    }
    assert remote_verbs == {*VERBS}
    assert sorted(remote._ONLY_SHOWING) == ["pending", "status"]


def test_json_of_the_other_machine_is_not_touched(
    shell: Shell, sent: Path, tmp_path: Path
) -> None:
    (tmp_path / "ssh").write_text('#!/bin/sh\necho \'{"schema": "rootsd/1"}\'; exit 69\n')
    done = shell.program("status", "--host=build", "--json")
    assert (done.status, done.out, done.err) == (69, '{"schema": "rootsd/1"}\n', "")
    done = shell.program("status", "--host=build")
    assert "This was rootsd on build." in done.err
