"""The guesses of `rootsd init`: folders with repositories, and the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.cli.answers import first_run
from rootsd.cli.answers.first_run import guess_parents, shell_line


def make(home: Path, *repositories: str) -> None:
    for name in repositories:
        (home / name / ".git" / "refs").mkdir(parents=True)


def guessed(home: Path, cwd: Path | None = None) -> list[tuple[str, int]]:
    guesses = guess_parents(home, cwd or home)
    return [(str(guess.path.relative_to(home)), guess.repositories) for guess in guesses]


def test_folders_with_most_repositories_come_first(home: Path) -> None:
    make(home, "src/one", "src/acme/two", "clients/acme/api", "Documents/GitHub/x", "go/src/y")
    assert sorted(guessed(home)) == [
        ("Documents/GitHub", 1), ("clients", 1), ("go/src", 1), ("src", 2),
    ]  # fmt: skip
    assert guessed(home)[0] == ("src", 2)


def test_the_folder_around_the_working_directory_comes_first(home: Path) -> None:
    make(home, "src/one", "src/two", "clients/acme/api")
    assert guessed(home, home / "clients/acme/api")[0] == ("clients", 1)
    deep = home / "far/a/b/c/d/e/repo"
    make(home, "far/a/b/c/d/e/repo")
    (deep / "lib").mkdir()
    assert guessed(home, deep / "lib")[0] == ("far", 1)


def test_the_home_folder_is_never_guessed(home: Path) -> None:
    make(home, "api", ".dotfiles", "src")
    assert guessed(home, home / "api") == []
    (home / ".git" / "refs").mkdir(parents=True)
    assert guessed(home, home) == []


def test_a_repository_outside_the_home_folder_counts_for_the_folder_around_it(home: Path) -> None:
    make(home, "mnt/work/api", "me/.x")
    guesses = guess_parents(home / "me", home / "mnt/work/api")
    assert [guess.path for guess in guesses] == [home / "mnt/work"]


def test_repositories_in_repositories_and_links_do_not_count(home: Path) -> None:
    make(home, "src/one", "src/one/vendor/two", "other/real")
    (home / "src" / "link").symlink_to(home / "other")
    assert sorted(guessed(home)) == [("other", 1), ("src", 1)]


def test_an_empty_marker_is_no_repository(home: Path) -> None:
    (home / "src" / "one" / ".git").mkdir(parents=True)
    assert guessed(home, home / "src" / "one") == []


def test_the_search_ends_on_a_huge_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "MAX_SECONDS", 0)
    make(home, "a/b/c", "b/c", "d/e")
    assert guessed(home) == []


@pytest.mark.parametrize("verb", ["completion", "shell-init"])
@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")],
)
def test_the_line_for_a_shell_is_added_once(home: Path, shell: str, file: str, verb: str) -> None:
    line = shell_line(verb, home, {"SHELL": f"/bin/{shell}"})
    assert line is not None
    assert (line.file, line.is_there()) == (home / file, False)
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text("mine")
    line.append()
    assert line.is_there()
    assert (home / file).read_text() == f"mine\n{line.line}\n"


def test_other_shells_get_no_line(home: Path) -> None:
    assert shell_line("completion", home, {"SHELL": "/bin/tcsh"}) is None
    assert shell_line("completion", home, dict[str, str]()) is None
