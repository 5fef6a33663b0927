"""The findings: secrets, files that agents run, settings that run programs, nested projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.core.risks import FindingKind
from rootsd.vcs import facts
from rootsd.vcs.facts import scan_content
from rootsd.vcs.git.config import read_git_config
from rootsd.vcs.origin import git_dirs_of
from support.repositories import fake_repository, git, make_repository, raw

SENSITIVE, EXECUTED, NESTED = FindingKind.SENSITIVE, FindingKind.EXECUTED, FindingKind.NESTED


def _found(top: Path, concern: FindingKind) -> set[str]:
    found = scan_content(raw(top), b"", None).findings
    return {each["path"] for each in found if each["concern"] == concern}


def _touch(top: Path, *names: str) -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()


def test_secrets_are_found_by_their_names(tmp_path: Path) -> None:
    secrets = {".env", ".env.local", "deploy/id_ed25519", "tls/server.pem", ".netrc", "a.tfvars"}
    _touch(tmp_path, *secrets, ".env.example", "id_rsa.pub", "README", "keys.py", "environment")
    _touch(tmp_path, "tls/fullchain.pem", "CA.pem", "server.crt")
    assert _found(tmp_path, SENSITIVE) == secrets


def test_dependencies_and_git_data_only_count_toward_the_size(tmp_path: Path) -> None:
    _touch(tmp_path, "node_modules/a/.env", ".git/x.key", "src/.env")
    assert _found(tmp_path, SENSITIVE) == {"src/.env"}
    assert scan_content(raw(tmp_path), b"", None).size["files"] == 3


def test_files_that_agents_run_are_found(tmp_path: Path) -> None:
    _touch(tmp_path, ".mcp.json", ".envrc", ".claude/settings.json", ".claude/hooks/stop.sh")
    _touch(tmp_path, "sub/.mcp.json")
    expected = {".mcp.json", ".envrc", ".claude/settings.json", ".claude/hooks/"}
    assert _found(tmp_path, EXECUTED) == expected


def test_git_settings_and_hooks_that_run_programs_are_found(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    for key, value in (
        ("core.fsmonitor", "evil"), ("core.sshCommand", "evil"), ("filter.lfs.smudge", "evil"),
        ("alias.st", "!evil"), ("merge.x.driver", "evil"), ("pager.log", "false"), ("a.b", "c"),
    ):  # fmt: skip
        git("config", key, value, cwd=repository)
    hooks = repository / ".git" / "hooks"
    (hooks / "pre-commit").write_text("evil")
    (hooks / "pre-push").symlink_to("../../evil")
    (hooks / "docs.url").write_text("jj puts this here, and git never runs it")
    place = git_dirs_of(raw(repository), ProjectKind.GIT)
    assert place is not None
    found = scan_content(
        raw(repository), read_git_config(place), place.common + b"/hooks"
    ).findings
    seen = {(each["path"], each["detail"]) for each in found}
    assert seen == {
        (".git/config", "alias.st"),
        (".git/config", "core.fsmonitor"),
        (".git/config", "core.sshcommand"),
        (".git/config", "filter.lfs.smudge"),
        (".git/config", "merge.x.driver"),
        (".git/hooks/pre-commit", ""),
        (".git/hooks/pre-push", ""),
    }


def test_nested_projects_are_found_with_their_kinds(tmp_path: Path) -> None:
    fake_repository(tmp_path / "libs" / "one")
    _touch(tmp_path, "packages/a/package.json", "package.json")
    found = scan_content(raw(tmp_path), b"", None).findings
    nested = {(each["path"], each["detail"]) for each in found if each["concern"] == NESTED}
    assert nested == {("libs/one", "git"), ("packages/a", "project")}


def test_submodules_that_are_not_there_are_found(tmp_path: Path) -> None:
    fake_repository(tmp_path / "libs" / "one")
    lines = (f'[submodule "{n}"]\n\tpath = {n}\n' for n in ("libs/one", "libs/two", "../up"))
    (tmp_path / ".gitmodules").write_text("".join(lines))
    assert _found(tmp_path, FindingKind.ABSENT) == {"libs/two"}


def test_links_are_not_followed_and_their_targets_not_measured(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "out").symlink_to("/usr")
    found = scan_content(raw(tmp_path), b"", None)
    assert found.size["files"] == 2
    assert found.size["whole"]


def test_the_size_of_a_large_project_is_a_lower_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "MAX_SCAN_ENTRIES", 20)
    _touch(tmp_path, *(f"a/{number}.pem" for number in range(15)))
    _touch(tmp_path, *(f"b/{number}" for number in range(15)))
    size = scan_content(raw(tmp_path), b"", None).size
    assert not size["whole"]
    monkeypatch.setattr(facts, "MAX_SCAN_SECONDS", -1.0)
    assert not scan_content(raw(tmp_path), b"", None).size["whole"]


def test_findings_above_the_maximum_are_counted(tmp_path: Path) -> None:
    _touch(tmp_path, *(f"{number}.pem" for number in range(120)))
    found = scan_content(raw(tmp_path), b"", None)
    assert (len(found.findings), found.more) == (100, 20)


def test_a_missing_folder_has_no_findings(tmp_path: Path) -> None:
    found = scan_content(raw(tmp_path / "none"), b"", None)
    assert found.findings == []
    assert found.size["files"] == 0
