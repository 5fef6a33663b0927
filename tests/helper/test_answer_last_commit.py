"""The helper's side of the question about history."""

from __future__ import annotations

import json
from pathlib import Path

from rootsd.helper.project_facts import answer_last_commit
from support.repositories import git, make_repository, raw


def test_the_last_commit_or_null(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    git("init", tmp_path / "two")
    assert json.loads(answer_last_commit(raw(tmp_path / "one")))["summary"] == "one"
    assert json.loads(answer_last_commit(raw(tmp_path / "two"))) is None
