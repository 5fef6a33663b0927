"""The helper's side of the question about facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rootsd.helper import project_facts
from rootsd.helper.project_facts import answer_facts, answer_risks
from support.repositories import make_repository, raw


def test_a_question_about_two_projects_has_two_answers(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    question = b"\0".join((b"git", b"", raw(tmp_path / "one"), b"project", b"a/!b", raw(tmp_path)))
    one, two = json.loads(answer_facts(question))
    assert one["branch"] == "main"
    assert [finding["path"] for finding in two["findings"]] == ["one"]


def test_a_question_about_risks_has_as_many_answers_as_the_time_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").touch()
    question = b"\0".join((b"project", b"", raw(tmp_path)) * 3)
    answers = json.loads(answer_risks(question))
    assert [[finding["path"] for finding in each["findings"]] for each in answers] == [
        [".env"]
    ] * 3
    monkeypatch.setattr(project_facts, "RISKS_SOFT_S", -1.0)
    assert len(json.loads(answer_risks(question))) == 1
