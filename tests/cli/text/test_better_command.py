"""The commands that a person gets after a slip."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.cli.text import better_command
from rootsd.cli.text.better_command import about_glob, better_commands
from rootsd.core.errors import ErrorCode, RootsdError, UnknownProject


def test_there_is_a_command_for_each_choice_up_to_a_limit() -> None:
    many = [f"p{number}" for number in range(20)]
    slip = RootsdError("?", "rootsd ls p", typed="p", choices=many)
    commands = better_commands(["show", "-q", "p"], slip)
    assert commands[0] == "rootsd show -q p0"
    assert (len(commands), commands[-1]) == (9, "rootsd ls p")


def test_words_that_a_shell_would_change_are_quoted() -> None:
    slip = RootsdError("?", typed="a b", choices=["$(x)"])
    assert better_commands(["approve", "a b", "c d"], slip) == ["rootsd approve '$(x)' 'c d'"]


@pytest.mark.parametrize("typed", ["", "elsewhere"])
def test_a_word_that_is_not_in_the_command_leaves_the_remedy(typed: str) -> None:
    slip = RootsdError("?", "rootsd ls", typed=typed, choices=["api"])
    assert better_commands(["show", "p"], slip) == ["rootsd ls"]


@pytest.mark.parametrize("pattern", ["*", "a*", "*.md", "sub/*"])
def test_a_glob_that_the_shell_replaced_is_recognized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for name in ("a.md", "a.txt", "b.md", "sub/x", "sub/y z"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob(pattern))
    unknown = UnknownProject("no project is called a.md", "rootsd ls")
    about = about_glob(["show", "-q", *names], unknown)
    assert about.message.startswith("no project is called a.md. Your shell replaced ")
    assert about.remedy.startswith("rootsd show -q '")
    assert about.code is ErrorCode.NOTHING_MATCHED
    assert about_glob(["show", *names[:-1]], unknown) is unknown
    refused = RootsdError("the caller may not")
    refused.code = ErrorCode.REFUSED
    assert about_glob(["show", *names], refused) is refused


def test_words_that_are_no_files_cost_no_read_of_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(better_command, "glob", pytest.fail)
    unknown = UnknownProject("no project is called 1", "rootsd ls")
    assert about_glob(["approve", "1", "2", "3"], unknown) is unknown
