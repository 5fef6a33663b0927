"""Facts and last commits through a real helper, with hostile repositories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.client import HelperLink, NoAnswer, UnavailableHelper
from rootsd.helper.projects import ProjectQuery, ask_facts, ask_last_commit, ask_tracking
from rootsd.helper.protocol import HelperTask
from rootsd.vcs.facts import CollectedFacts
from rootsd.wire.projects import ShownFacts
from support.helper_process import real_helper
from support.repositories import git, make_repository, raw

GIT = ProjectKind.GIT


@pytest.fixture(scope="module")
def helper() -> Iterator[HelperLink]:
    with real_helper() as link:
        yield link


class Choking(UnavailableHelper):
    """A helper without an answer for one of the projects."""

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        [query, *more] = decode_typed(question, list[ProjectQuery])
        if more or query.path == b"/bad":
            raise NoAnswer("late")
        return encode_typed([facts_of(query.path)])


def facts_of(path: bytes) -> CollectedFacts:
    facts = ShownFacts(
        origin=path.decode(), branch=None, project_files=[], declared_names=[], findings=[]
    )
    return CollectedFacts(facts, has_history=False)


def test_facts_commits_and_remotes_are_those_of_the_asked_projects(
    helper: HelperLink, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    git("clone", make_repository(tmp_path / "source"), one)
    two.mkdir()
    places = [ProjectQuery(raw(one), GIT), ProjectQuery(raw(two), ProjectKind.PROJECT)]
    first, second = ask_facts(helper, places)
    assert first is not None
    assert second is not None
    assert (first.facts["branch"], second.facts["branch"]) == ("main", None)
    assert ask_facts(helper, []) == []
    told = ask_last_commit(helper, raw(one))
    assert told is not None
    assert told["summary"] == "one"
    assert ask_last_commit(helper, raw(two)) is None
    facts = ask_tracking(helper, raw(one))
    assert (facts["upstream"], facts["ahead"], facts["behind"]) == ("origin/main", 0, 0)
    assert ask_tracking(helper, raw(two)) == {}


def test_a_project_without_an_answer_does_not_affect_others() -> None:
    places = [ProjectQuery(path, GIT) for path in (b"/a", b"/bad", b"/b/c")]
    assert ask_facts(Choking("a test"), places) == [facts_of(b"/a"), None, facts_of(b"/b/c")]


def test_an_answer_of_a_wrong_type_counts_as_none() -> None:
    class Wrong(UnavailableHelper):
        def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
            return b'[{"facts": {"origin": 1}, "has_history": false}]'

    assert ask_facts(Wrong("a test"), [ProjectQuery(b"/a", GIT)]) == [None]
    assert ask_last_commit(Wrong("a test"), b"/a") is None


def _include(repository: Path, what: Path) -> None:
    with (repository / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {what}\n")


def test_a_fifo_that_libgit2_opens_blocks_one_worker_briefly(
    helper: HelperLink, tmp_path: Path
) -> None:
    held, free = make_repository(tmp_path / "held"), make_repository(tmp_path / "free")
    os.mkfifo(tmp_path / "fifo")
    _include(held, tmp_path / "fifo")
    assert ask_last_commit(helper, raw(held)) is None
    assert ask_tracking(helper, raw(held)) == {}
    assert ask_last_commit(helper, raw(free)) is not None
    assert helper.problem() is None


def test_a_configuration_of_200_mb_stays_within_the_memory_limit(
    helper: HelperLink, tmp_path: Path
) -> None:
    repository = make_repository(tmp_path / "one")
    line = b'[a "b"]\n\tc = d\n'
    (tmp_path / "large").write_bytes(line * (200_000_000 // len(line)))
    _include(repository, tmp_path / "large")
    assert ask_last_commit(helper, raw(repository)) is None
    assert ask_tracking(helper, raw(repository)) == {}
    assert helper.problem() is None
