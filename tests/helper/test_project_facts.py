"""The helper's side of the questions about facts, risks, and history."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper import project_facts
from rootsd.helper.project_facts import answer_facts, answer_last_commit, answer_risks
from rootsd.helper.projects import ProjectQuery
from rootsd.vcs.facts import CollectedFacts, CollectedRisks
from rootsd.wire.projects import LastCommitItem
from support.repositories import git, make_repository, raw


def test_each_project_gets_its_own_facts_and_last_commit(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    git("init", tmp_path / "two")
    one = ProjectQuery(raw(tmp_path / "one"), ProjectKind.GIT)
    two = ProjectQuery(raw(tmp_path), ProjectKind.PROJECT, (b"a", b"!b"))
    found = decode_typed(answer_facts(encode_typed([one, two])), list[CollectedFacts])
    assert [each.facts["branch"] for each in found] == ["main", None]
    assert [each["path"] for each in found[1].facts["findings"] or ()] == ["one", "two"]
    last = decode_typed(answer_last_commit(encode_typed(raw(tmp_path / "one"))), LastCommitItem)
    assert last["summary"] == "one"
    assert answer_last_commit(encode_typed(raw(tmp_path / "two"))) == b"null"


def test_a_question_about_risks_has_as_many_answers_as_the_time_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").touch()
    question = encode_typed([ProjectQuery(raw(tmp_path), ProjectKind.PROJECT)] * 3)
    answers = decode_typed(answer_risks(question), list[CollectedRisks])
    assert [[each["path"] for each in one.findings] for one in answers] == [[".env"]] * 3
    monkeypatch.setattr(project_facts, "RISKS_SOFT_S", -1.0)
    assert len(decode_typed(answer_risks(question), list[CollectedRisks])) == 1
