"""`rootsd help`, `rootsd --version` and `rootsd -V`."""

from __future__ import annotations

import pytest

from rootsd import __version__
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.main import root
from rootsd.cli.man_page import render_man_page
from rootsd.cli.options.completion import complete_words
from support.terminal import Shell


@pytest.mark.parametrize("words", [(), ("approve",), ("allow",), ("parent",), ("parent", "add")])
def test_help_prints_what_the_flag_prints(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run("help", *words)
    assert (done.status, done.err) == (0, "")
    assert done.out == shell.run(*words, "--help").out.replace("rootsd allow", "rootsd approve")


@pytest.mark.parametrize("words", [("nonsense",), ("approve", "add"), ("parent", "nonsense")])
def test_help_for_an_unknown_verb_is_a_usage_error(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run("help", *words)
    assert (done.status, done.out) == (2, "")
    assert f"there is no command {' '.join(words)}" in done.err


def test_the_man_page_is_printed_as_it_is_installed(shell: Shell) -> None:
    done = shell.run("help", "--man")
    assert (done.status, done.err) == (0, "")
    assert done.out == render_man_page()
    assert shell.run("help", "--man", "approve").status == 2


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_needs_no_daemon(shell: Shell, flag: str) -> None:
    done = shell.run(flag)
    assert (done.status, done.out, done.err) == (0, f"rootsd {__version__}\n", "")
    assert shell.run("approve", flag).status == 2


def test_verbs_are_completed() -> None:
    def offered(*words: str) -> set[str]:
        return {word for _, word, _ in complete_words(root, ("help", *words), Invocation())}

    assert {"parent", "pending"} <= offered("p")
    assert offered("parent", "") == {"add", "ls", "rm", "set"}
    assert offered("approve", "") == set()
