"""`rootsd hook` makes and deletes the worktrees of Claude Code, and says why it does not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.core.errors import Exit
from rootsd.link.worktree_hook import answer

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def api(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    path = tmp_path / "api"
    path.mkdir()
    git(path, "init", "-q")
    commit(path)
    return path


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode().strip()


def commit(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")


@pytest.fixture
def create(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Return what the hook does and says about a new worktree."""

    def ask(here: Path, name: str) -> tuple[int, str, str]:
        event = {"hook_event_name": "WorktreeCreate", "name": name, "cwd": str(here)}
        return answer(event, lambda _: None), *capsys.readouterr()

    return ask


@pytest.fixture
def delete(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Return what the hook does and says about the end of a worktree."""

    def ask(tree: Path) -> tuple[int, str, str]:
        event = {"hook_event_name": "WorktreeRemove", "worktree_path": str(tree)}
        return answer(event, lambda _: None), *capsys.readouterr()

    return ask


def test_a_worktree_lies_where_claude_code_would_make_it_until_it_is_deleted(
    api: Path, create: Ask, delete: Ask
) -> None:
    tree = api / ".claude" / "worktrees" / "fix"
    assert create(api, "fix") == (Exit.OK, f"{tree}\n", "")
    assert git(tree, "branch", "--show-current") == "worktree-fix"
    beside = tree.parent / "a+b"
    assert create(tree, "a/b") == (Exit.OK, f"{beside}\n", "")
    assert create(api, "fix") == (Exit.OK, f"{tree}\n", ""), "it is there already"
    commit(beside)
    (tree / "new").touch()
    assert delete(tree) == delete(beside) == (Exit.OK, "", "")
    assert list(tree.parent.iterdir()) == []
    branches = git(api, "branch", "--format=%(refname:short)").split()
    assert "worktree-fix" not in branches
    assert "worktree-a+b" in branches, "it has a commit of its own"
    assert create(api, "a/b")[0] == Exit.OK


@pytest.mark.parametrize("name", ["", "..", ".git", "a b", "a/b c", "x" * 65, "a\nb"])
def test_a_name_that_is_no_plain_word_is_refused(api: Path, create: Ask, name: str) -> None:
    status, out, error = create(api, name)
    assert (status, out) == (Exit.FAILED, "")
    assert "is no name of a worktree" in error


@pytest.mark.parametrize("name", ["a\u2028b", "a\x0bb", "a\x85b", "a\rb"])
def test_a_repository_may_have_a_separator_of_lines_in_its_path(
    api: Path, create: Ask, delete: Ask, name: str
) -> None:
    odd = api.rename(api.with_name(name))
    tree = odd / ".claude" / "worktrees" / "fix"
    assert create(odd, "fix") == (Exit.OK, f"{tree}\n", "")
    assert delete(tree) == (Exit.OK, "", "")


@pytest.mark.parametrize("name", [b"a\nb", b"a\n", b"a\xffb"])
def test_a_path_that_the_agent_could_not_read_is_refused_before_anything_is_made(
    api: Path, create: Ask, name: bytes
) -> None:
    odd = api.rename(api.with_name(os.fsdecode(name)))
    status, out, error = create(odd, "fix")
    assert (status, out, (odd / ".claude").exists()) == (Exit.FAILED, "", False)
    assert "has a newline or is not UTF-8" in error


def test_a_refusal_of_git_is_told(api: Path, tmp_path: Path, create: Ask) -> None:
    git(api, "switch", "-qc", "worktree-fix")
    for here, why in ((api, "already"), (tmp_path, "not a git repository")):
        status, out, error = create(here, "fix")
        assert (status, out) == (Exit.FAILED, "")
        assert why in error


def test_nothing_is_made_or_deleted_outside_of_the_checkout(
    api: Path, tmp_path: Path, create: Ask, delete: Ask
) -> None:
    """The first one is refused for its link alone: `beside` is no worktree of Claude Code."""
    beside = tmp_path / "beside"
    git(api, "worktree", "add", "-q", str(beside))
    assert delete(beside)[0] == delete(api)[0] == Exit.FAILED
    assert (beside / ".git").exists()
    (api / ".claude").mkdir()
    (api / ".claude" / "worktrees").symlink_to(tmp_path)
    status, _, error = create(api, "fix")
    assert status == Exit.FAILED
    assert "through a link" in error
    assert not (tmp_path / "fix").exists()
