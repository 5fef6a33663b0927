"""All facts of a project, as fields of an item."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rootsd.core.model import ProjectKind
from rootsd.vcs.facts import collect_facts
from support.repositories import git, make_repository, raw


def test_the_facts_of_a_repository(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "origin", "https://ann:s3cr3t@example.org/one", cwd=repository)
    (repository / "package.json").write_text('{"name": "web"}')
    (repository / "Cargo.toml").write_text('[package]\nname = "core"')
    (repository / "x.csproj").touch()
    (repository / ".env").touch()
    collected = collect_facts(raw(repository), ProjectKind.GIT)
    facts = collected.facts
    size = facts.pop("size")
    assert facts == {
        "origin": "https://example.org/one",
        "branch": "main",
        "project_files": ["Cargo.toml", "package.json", "x.csproj"],
        "declared_names": ["core", "web"],
        "ecosystems": ["dotnet", "node", "rust"],
        "findings": [{"concern": "sensitive", "path": ".env", "detail": ""}],
        "findings_left_out": 0,
        "git_directory": str(repository / ".git"),
    }
    assert collected.has_history
    assert size["whole"]
    assert size["files"] > 5
    json.dumps(facts)


def test_git_data_of_another_repository_is_a_finding(tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(f"gitdir: {other / '.git'}\n")
    assert collect_facts(raw(tmp_path / "one"), ProjectKind.GIT).facts["findings"] == [
        {"concern": "elsewhere", "path": ".git", "detail": str(other / ".git")}
    ]
    assert collect_facts(raw(other), ProjectKind.GIT).facts["findings"] == []


def test_a_folder_without_a_repository_has_no_history(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.org/a")
    collected = collect_facts(raw(tmp_path), ProjectKind.PROJECT)
    facts = collected.facts
    assert facts["declared_names"] == ["example.org/a"]
    assert facts["origin"] is None
    assert not collected.has_history


def test_names_that_are_not_utf8_are_reported(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.pem")).touch()
    findings = collect_facts(raw(tmp_path), ProjectKind.PROJECT).facts["findings"]
    assert findings is not None
    assert [each["path"] for each in findings] == ["\udcff.pem"]
