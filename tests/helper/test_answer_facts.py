"""The helper's side of the question about facts."""

from __future__ import annotations

import json
from pathlib import Path

from rootsd.helper.project_facts import answer_facts
from support.repositories import make_repository, raw


def test_a_question_about_two_projects_has_two_answers(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    question = b"\0".join((b"git", b"", raw(tmp_path / "one"), b"project", b"a/!b", raw(tmp_path)))
    one, two = json.loads(answer_facts(question))
    assert one["branch"] == "main"
    assert [finding["path"] for finding in two["findings"]] == ["one"]
