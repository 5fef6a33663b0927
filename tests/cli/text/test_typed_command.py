"""Hints name rootsd in the way in which the shell of the person finds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rootsd.cli.text.typed_command import as_typed
from support.terminal import Shell


@pytest.fixture
def checkout(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command of a checkout, which started this process and is not on the PATH."""
    own = home / "src" / "rootsd" / ".venv" / "bin" / "rootsd"
    own.parent.mkdir(parents=True)
    own.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(own)])
    monkeypatch.setenv("PATH", str(home / "bin"))
    return own


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("rootsd up ~/src", "OWN up ~/src"),
        ("1 to decide: rootsd pending", "1 to decide: OWN pending"),
        ("rootsd approve a   |   rootsd deny a", "OWN approve a   |   OWN deny a"),
        ("try rootsd up, then 'rootsd ls'", "try OWN up, then 'OWN ls'"),
        ("rootsd is not on your PATH", "rootsd is not on your PATH"),
        ("rootsd updates nothing", "rootsd updates nothing"),
        ("/usr/bin/rootsd up", "/usr/bin/rootsd up"),
        ("nothing", "nothing"),
    ],
)
def test_a_command_that_is_not_on_the_path_is_named_by_its_path(
    checkout: Path, text: str, typed: str
) -> None:
    assert as_typed(text) == typed.replace("OWN", "~/src/rootsd/.venv/bin/rootsd")


def test_a_command_on_the_path_is_named_by_its_name(checkout: Path, home: Path) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "rootsd").symlink_to(checkout)
    assert as_typed("rootsd up") == "rootsd up"


def test_a_program_of_another_name_is_not_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/rootsd/__main__.py"])
    assert as_typed("rootsd up") == "rootsd up"


def test_a_path_that_a_shell_would_split_is_quoted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{home}/my tools/rootsd"])
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert as_typed("rootsd up") == f"'{home}/my tools/rootsd' up"


def test_errors_and_hints_name_the_command_but_json_does_not(checkout: Path, shell: Shell) -> None:
    assert "try: ~/src/rootsd/.venv/bin/rootsd up" in shell.run("status").err
    assert '"rootsd up"' in shell.run("status", "--json").out
