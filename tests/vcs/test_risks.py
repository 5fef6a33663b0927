"""The risks of a project, read for a listing: a few names, whatever is in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.core.typed_json import encode_typed
from rootsd.vcs import facts
from rootsd.vcs.facts import collect_facts, collect_risks
from support.hostile_projects import HostileProjects
from support.repositories import git, make_repository, raw


def _found(project: Path, kind: ProjectKind = ProjectKind.GIT) -> set[tuple[str, str]]:
    return {(each["concern"], each["path"]) for each in collect_risks(raw(project), kind).findings}


def test_the_risks_of_a_repository_are_among_its_facts(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "origin", "https://ann:s3cr3t@example.org/one", cwd=repository)
    git("config", "core.fsmonitor", "x", cwd=repository)
    (repository / ".mcp.json").touch()
    (repository / ".git" / "hooks" / "pre-commit").touch()
    (repository / "web").mkdir()
    (repository / "web" / ".env").touch()
    risks = collect_risks(raw(repository), ProjectKind.GIT)
    whole = collect_facts(raw(repository), ProjectKind.GIT).facts
    assert risks.is_whole
    assert risks.origin == whole["origin"] == "https://example.org/one"
    assert len(risks.findings) == 4
    assert all(finding in (whole["findings"] or ()) for finding in risks.findings)


def test_secrets_deeper_below_and_in_folders_of_dependencies_are_left_out(tmp_path: Path) -> None:
    for name in ("a/b/.env", "node_modules/.env", ".git/.env", "a/.env", "b.pem/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert _found(tmp_path, ProjectKind.PROJECT) == {("sensitive", "a/.env")}
    assert collect_risks(raw(tmp_path), ProjectKind.PROJECT).is_whole


def test_a_project_with_too_many_names_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "MAX_RISK_NAMES", 5)
    for number in range(5):
        (tmp_path / f"{number}.pem").touch()
    assert collect_risks(raw(tmp_path), ProjectKind.PROJECT).is_whole
    (tmp_path / "6.pem").touch()
    risks = collect_risks(raw(tmp_path), ProjectKind.PROJECT)
    assert not risks.is_whole
    assert len(risks.findings) == 5


def test_many_findings_of_one_kind_do_not_hide_those_of_another(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    for number in range(100):
        (repository / ".git" / "hooks" / f"h{number}").touch()
    (repository / ".env").touch()
    risks = collect_risks(raw(repository), ProjectKind.GIT)
    assert ("sensitive", ".env") in _found(repository)
    assert len(risks.findings) + risks.left_out == 101


def test_git_data_of_another_repository_is_a_risk(tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(f"gitdir: {other / '.git'}\n")
    assert _found(tmp_path / "one") == {("elsewhere", ".git")}


def test_a_folder_that_cannot_be_read_leaves_the_risks_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").touch()
    listing = os.scandir

    def scan(path: bytes) -> object:
        if path.endswith(b"/closed"):
            raise PermissionError(path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", scan)
    assert not collect_risks(raw(tmp_path), ProjectKind.PROJECT).is_whole
    assert _found(tmp_path, ProjectKind.PROJECT) == {("sensitive", "open/.env")}


def test_a_folder_that_is_gone_leaves_the_risks_open() -> None:
    risks = collect_risks(b"/none", ProjectKind.GIT)
    assert (risks.findings, risks.is_whole) == ([], False)


def test_the_risks_of_hostile_projects_are_small_and_can_be_sent(tmp_path: Path) -> None:
    corpus = HostileProjects(Path(os.path.realpath(tmp_path)))
    projects = sorted(corpus.parent.iterdir())
    assert len(projects) >= 200
    for project in projects:
        text = encode_typed(collect_risks(raw(project), ProjectKind.GIT))
        assert len(text) < 60_000
    assert not corpus.fired.exists()
