"""The helper's side of the question about history."""

from __future__ import annotations

from pathlib import Path

from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.project_facts import answer_last_commit
from rootsd.wire.projects import LastCommitItem
from support.repositories import git, make_repository, raw


def test_the_last_commit_or_null(tmp_path: Path) -> None:
    make_repository(tmp_path / "one")
    git("init", tmp_path / "two")
    one = decode_typed(answer_last_commit(encode_typed(raw(tmp_path / "one"))), LastCommitItem)
    assert one["summary"] == "one"
    assert answer_last_commit(encode_typed(raw(tmp_path / "two"))) == b"null"
