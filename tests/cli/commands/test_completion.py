"""`rootsd completion`: the scripts in real shells, with TAB pressed on a terminal."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from rootsd.service.shell_scripts import SHELLS, script
from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.sizes import Sizes
from support.terminal import HANG_GUARD, Shell

START = {"bash": "bash --norc --noprofile -i", "zsh": "zsh -f -i", "fish": "fish --no-config -i"}
LOAD = {
    "bash": 'eval "$(rootsd completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(rootsd completion zsh)"',
    "fish": "rootsd completion fish | source",
}
# A fake rootsd. It prints the script without a start of Python, answers the requests of the
# script, and otherwise only prints its arguments.
PROGRAM = """\
#!/bin/sh
test "$*" = "completion $SCRIPT" && exec cat "$HOME/script"
test "$1" = completion && exec {program} "$@"
printf 'words:'
printf '<%s>' "$@"
echo .
"""
# The first ones show each kind of candidate, and each kind of quoting.
DIFFERENT_WORDS = {
    "rootsd appr\t": "<approve>",
    "rootsd approve acme@\t": "<approve><acme@home>",
    "rootsd --json deny x\t": "<--json><deny><x1x1>",
    "rootsd ls --tag=w\t": "<ls><--tag=work>",
    "rootsd up my\\ f\t": "<up><my folder>",
}
TYPED = DIFFERENT_WORDS | {
    "rootsd approve acme/\t": "<approve><acme/api>",
    "rootsd ls --verd\tapproved": "<ls><--verdict><approved>",
    "rootsd bridge --only tag:w\t": "<bridge><--only><tag:work>",
    "rootsd show ./sub\t": "<show><./subfolder>",
}


@pytest.fixture
def projects(daemon: FakeDaemon) -> FakeDaemon:
    daemon.answers["projects"] = a_listing(
        an_item("acme/api", tags=["work"]),
        an_item("beta", id="b3b3"),
        an_item("acme@home", id="m2m2"),
        an_item("$(touch x)", id="x1x1"),
    )
    return daemon


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in START])
def typist(
    request: pytest.FixtureRequest, tmp_path: Path, program: str
) -> Iterator[pexpect.spawn[str]]:
    """A person at a terminal, in a shell that has loaded only the script."""
    file = tmp_path / "bin" / "rootsd"
    file.parent.mkdir()
    file.write_text(PROGRAM.format(program=program))
    file.chmod(0o755)
    (tmp_path / "script").write_text(script("completion", request.param))
    for folder in ("subfolder", "my folder"):
        Path(tmp_path, folder).mkdir()
    variables = {
        "HOME": str(tmp_path), "TERM": "xterm", "PATH": f"{file.parent}:{os.environ['PATH']}",
        "SCRIPT": request.param,
    }  # fmt: skip
    child = pexpect.spawn(
        START[request.param], env={**os.environ, **variables}, cwd=str(tmp_path),
        timeout=HANG_GUARD, encoding="utf-8", dimensions=(40, 200),
    )  # fmt: skip
    child.send(f"{LOAD[request.param]}; echo loa''ded\r")
    child.expect_exact("loaded")
    yield child
    child.close(force=True)


def words_given(typist: pexpect.spawn[str]) -> str:
    """Return the arguments of the command after Enter."""
    typist.expect(r"words:(.*?)\.\r?\n")
    return str(typist.match.group(1)) if isinstance(typist.match, re.Match) else ""


def test_tab_completes_verbs_flags_projects_tags_and_folders(
    projects: FakeDaemon, typist: pexpect.spawn[str], tmp_path: Path, sizes: Sizes
) -> None:
    for typed, words in sizes.pick(test=DIFFERENT_WORDS, check=TYPED, soak=TYPED).items():
        typist.send(f"{typed}\r")
        # zsh removes the slash that it added after a folder.
        assert words_given(typist).replace("/>", ">") == words
    assert not Path(tmp_path, "x").exists()


def test_without_a_daemon_tab_is_silent(typist: pexpect.spawn[str]) -> None:
    typist.send("rootsd approve ac\tme\r")
    assert words_given(typist) == "<approve><acme>"
    assert "daemon" not in str(typist.before)


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_is_printed_as_it_is_shipped(shell: Shell, name: str) -> None:
    done = shell.run("completion", name)
    assert (done.status, done.out, done.err) == (0, script("completion", name), "")
    assert json.loads(shell.run("completion", name, "--json").out)["script"] == done.out


def test_the_candidates_are_printed_for_scripts(projects: FakeDaemon, shell: Shell) -> None:
    done = shell.run("completion", "bash", "--", "approve", "b")
    assert (done.status, done.out) == (0, "plain\tbeta\tpending /src/beta\n")
    found = json.loads(shell.run("completion", "bash", "--json", "--", "approve", "b").out)
    assert found["items"] == [{"kind": "plain", "word": "beta", "help": "pending /src/beta"}]


def test_an_unknown_shell_is_refused_with_the_known_ones(shell: Shell) -> None:
    done = shell.run("completion", "tcsh")
    assert done.status == 2
    assert "SHELL cannot be tcsh: use bash, zsh, or fish" in done.err
