"""A look finds each file that runs by itself, opens nothing without need, and trusts no name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.core.model import Inspection, ProjectKind
from rootsd.helper import inspections
from rootsd.helper.inspections import inspect
from rootsd.wall.git import tool_files
from support.repositories import git, make_repository, raw


@pytest.fixture
def api(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "api")


def look(project: Path) -> Inspection:
    found = inspect(raw(project), ProjectKind.GIT)
    assert found is not None
    return found


def new_or_changed(project: Path, change: Callable[[], object]) -> list[str]:
    """Return the files that differ after `change`, which makes the state another one."""
    before = look(project)
    change()
    after = inspect(raw(project), ProjectKind.GIT, before.state)
    assert after is not None, "the state is the same"
    return [name for name, content in after.files if (name, content) not in before.files]


def write(file: Path, text: str = "x") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        ".mcp.json", ".envrc", ".claude/settings.json", ".claude/hooks/deep/er", ".husky/pre-push",
        ".git/hooks/pre-commit", ".env", "deploy/server.pem",
    ],
)  # fmt: skip
def test_a_new_file_that_runs_by_itself_or_a_secret_is_found(api: Path, name: str) -> None:
    (api / "deploy").mkdir()
    assert new_or_changed(api, lambda: write(api / name)) == [name]


@pytest.mark.parametrize("name", ["src/main.py", ".git/hooks/pre-commit.sample", "README.md"])
def test_other_files_are_not_found(api: Path, name: str) -> None:
    before = look(api)
    write(api / name)
    assert look(api).files == before.files


def test_a_setting_that_runs_a_program_is_found(api: Path) -> None:
    def set_monitor(value: str) -> Callable[[], object]:
        return lambda: git("config", "core.fsmonitor", value, cwd=api)

    assert new_or_changed(api, set_monitor("/tmp/a")) == [".git/config"]
    assert new_or_changed(api, set_monitor("/tmp/b")) == [".git/config"]
    assert new_or_changed(api, lambda: git("config", "user.name", "Ann", cwd=api)) == []


def test_hooks_are_found_where_git_runs_them(api: Path) -> None:
    def link_hooks() -> None:
        shutil.rmtree(api / ".git/hooks")
        (api / ".git/hooks").symlink_to("../scripts")

    def set_hooks_path() -> None:
        git("config", "core.hooksPath", "tools/hooks", cwd=api)

    write(api / "scripts/pre-push", "1")
    assert new_or_changed(api, link_hooks) == [".git/hooks", "scripts/pre-push"]
    assert new_or_changed(api, lambda: write(api / "scripts/pre-push", "2")) == [
        "scripts/pre-push"
    ]
    assert new_or_changed(api, set_hooks_path) == [".git/config"]
    assert new_or_changed(api, lambda: write(api / "tools/hooks/pre-push")) == [
        "tools/hooks/pre-push"
    ]


def test_hooks_are_found_from_a_worktree(api: Path) -> None:
    tree = api.parent / "tree"
    git("worktree", "add", "-q", tree, cwd=api)
    assert new_or_changed(tree, lambda: write(api / ".git/hooks/pre-push")) == [
        ".git/hooks/pre-push"
    ]


def test_settings_below_a_linked_folder_are_found(api: Path) -> None:
    write(api / "shared/settings.json", "1")
    assert new_or_changed(api, lambda: (api / ".claude").symlink_to("shared")) == [
        ".claude",
        "shared/settings.json",
    ]
    assert new_or_changed(api, lambda: write(api / "shared/settings.json", "2")) == [
        "shared/settings.json"
    ]


def test_a_setting_of_one_worktree_is_found(api: Path) -> None:
    git("config", "extensions.worktreeConfig", "true", cwd=api)
    assert look(api).risk == ""

    def set_monitor() -> None:
        git("config", "--worktree", "core.fsmonitor", "/tmp/a", cwd=api)

    assert new_or_changed(api, set_monitor) == [".git/config"]
    assert look(api).risk == "runs code: git config"


def test_a_switch_there_and_back_changes_nothing(api: Path) -> None:
    git("checkout", "-qb", "other", cwd=api)
    write(api / ".envrc", "other")
    git("add", ".", cwd=api)
    git("commit", "-qm", "x", cwd=api)
    git("checkout", "-q", "-", cwd=api)
    before = look(api)
    git("checkout", "-q", "other", cwd=api)
    assert look(api).files != before.files
    git("checkout", "-q", "-", cwd=api)
    assert look(api).files == before.files


def test_a_secret_counts_by_its_name_and_is_never_opened(
    api: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(api / ".env", "one")
    write(api / ".envrc", "one")
    opened: list[bytes] = []
    read = tool_files.fingerprint

    def note(root: int, path: bytes) -> bytes:
        opened.append(path)
        return read(root, path)

    monkeypatch.setattr(tool_files, "fingerprint", note)
    before = look(api)
    write(api / ".env", "three")
    assert look(api).files == before.files
    assert set(opened) == {b".envrc"}


def test_without_a_change_nothing_is_opened(api: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(api / ".mcp.json")
    state = look(api).state

    def refuse(*_: object) -> None:
        raise AssertionError("it looked for more")

    monkeypatch.setattr(inspections, "collect_risks", refuse)
    monkeypatch.setattr(inspections, "fingerprints_at", refuse)
    assert inspect(raw(api), ProjectKind.GIT, state) is None
    write(api / ".mcp.json", "y")
    with pytest.raises(AssertionError, match="looked for more"):
        inspect(raw(api), ProjectKind.GIT, state)


def test_a_full_folder_hides_no_file_outside_of_it(api: Path) -> None:
    for number in range(2000):
        write(api / ".husky" / f"{number:04}")
    assert new_or_changed(api, lambda: write(api / ".mcp.json")) == [".mcp.json"]
    assert len(look(api).files) < 300
    assert "(more files)" in dict(look(api).files)


def test_a_link_is_its_target_and_leads_nowhere_outside(api: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret", "s3cret")
    assert new_or_changed(api, lambda: (api / ".mcp.json").symlink_to("../secret")) == [
        ".mcp.json"
    ]
    before = look(api)
    write(tmp_path / "secret", "another")
    assert look(api).files == before.files
    os.mkfifo(api / ".envrc")  # nothing waits for a writer
    write(api / ".claude")
    assert "runs code" in look(api).risk


def test_what_cannot_be_read_is_a_risk(tmp_path: Path) -> None:
    found = look(tmp_path / "gone")
    assert (found.origin, found.risk) == (None, "?")
