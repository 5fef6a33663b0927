"""The helper's side of the question about facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper import project_facts
from rootsd.helper.project_facts import answer_facts, answer_risks
from rootsd.helper.projects import ProjectQuery
from rootsd.vcs.facts import CollectedFacts, CollectedRisks
from support.repositories import make_repository, raw


def test_a_question_about_two_projects_has_two_answers(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    one = ProjectQuery(raw(tmp_path / "one"), ProjectKind.GIT)
    two = ProjectQuery(raw(tmp_path), ProjectKind.PROJECT, (b"a", b"!b"))
    found = decode_typed(answer_facts(encode_typed([one, two])), list[CollectedFacts])
    assert [each.facts["branch"] for each in found] == ["main", None]
    assert [each["path"] for each in found[1].facts["findings"] or ()] == ["one"]


def test_a_question_about_risks_has_as_many_answers_as_the_time_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").touch()
    question = encode_typed([ProjectQuery(raw(tmp_path), ProjectKind.PROJECT)] * 3)
    answers = decode_typed(answer_risks(question), list[CollectedRisks])
    assert [[each["path"] for each in one.findings] for one in answers] == [[".env"]] * 3
    monkeypatch.setattr(project_facts, "RISKS_SOFT_S", -1.0)
    assert len(decode_typed(answer_risks(question), list[CollectedRisks])) == 1
