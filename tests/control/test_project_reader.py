"""Facts, risks, and origins of projects: read by the helper in batches, or by the daemon.

No read takes longer than its limit, and no project hides what is known about another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from rootsd.control import project_reader
from rootsd.control.project_reader import ProjectReader
from rootsd.core.model import Parent, Presence, Project, ProjectKind
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.client import Helper, NoAnswer, UnavailableHelper
from rootsd.helper.projects import MAX_PROJECTS_PER_QUESTION, ProjectQuery
from rootsd.helper.protocol import HelperTask
from rootsd.vcs.facts import CollectedRisks
from support.helper_process import real_helper
from support.ledger_harness import HANG_GUARD
from support.repositories import git, make_repository, raw
from support.sample_decisions import project

PATHS = [b"/p%d" % number for number in range(2 * MAX_PROJECTS_PER_QUESTION + 1)]
ABSENT = UnavailableHelper("a test")


def _at(path: bytes, **observed: object) -> Project:
    known = project(1)
    seen = replace(known.observed, **{"kind": ProjectKind.GIT, **observed})  # type: ignore[arg-type]
    return replace(known, path=path, observed=seen)


EVERYTHING = [_at(path) for path in PATHS]


def _responds(_: bytes) -> bool:
    return True


def _reader(
    helper: Helper = ABSENT, *parents: Parent, responds: Callable[[bytes], bool] = _responds
) -> ProjectReader:
    return ProjectReader(helper, lambda: parents, responds)


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    with real_helper() as helper:
        yield helper


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    over = threading.Event()
    yield over
    over.set()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "origin", "https://ann:secret@example.org/one", cwd=repository)
    return repository


async def test_each_project_gets_its_own_facts_and_risks(helper: Helper, tmp_path: Path) -> None:
    numbers = range(len(PATHS))
    projects = [_at(raw(tmp_path / f"{number}")) for number in numbers]
    for number in numbers:
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "go.mod").write_text(f"module m{number}")
        (tmp_path / f"{number}" / f"{number}.pem").touch()
    facts = await _reader(helper).facts(projects)
    assert [each and each["declared_names"] for each in facts] == [[f"m{n}"] for n in numbers]
    found = await _reader(helper).risks(projects, HANG_GUARD)
    assert found == await _reader().risks(projects, HANG_GUARD)
    read = [{item["path"] for item in found[each.path].findings} for each in projects]
    assert [f"{n}.pem" in paths for n, paths in enumerate(read)] == [True] * len(projects)


async def test_the_innermost_parent_decides_which_files_are_project_files(
    helper: Helper, tmp_path: Path
) -> None:
    one, nested = tmp_path / "in" / "one", tmp_path / "in" / "one" / "nested"
    nested.mkdir(parents=True)
    for file in (one / "go.mod", one / "Justfile", nested / "Justfile"):
        file.touch()
    parents = (
        Parent(raw(tmp_path / "in"), project_files=(b"Justfile", b"!go.mod")),
        Parent(raw(tmp_path), project_files=(b"README",)),
        Parent(b"/none/in/one"),
    )
    expected = (["Justfile"], [{"concern": "nested", "path": "nested", "detail": "project"}])
    for looked in (helper, ABSENT):
        (facts,) = await _reader(looked, *parents).facts([_at(raw(one))])
        assert facts is not None
        assert (facts["project_files"], facts["findings"]) == expected


async def test_a_helper_reads_the_last_commit_and_the_daemon_alone_does_not(
    helper: Helper, tmp_path: Path
) -> None:
    make_repository(tmp_path / "one")
    (facts,) = await _reader(helper).facts([_at(raw(tmp_path / "one"))])
    assert facts is not None
    assert facts["last_commit"] is not None
    assert facts["last_commit"]["summary"] == "one"
    assert (facts["upstream"], facts["remotes"]) == (None, [])
    (facts,) = await _reader().facts([_at(raw(tmp_path / "one"))])
    assert facts is not None
    assert (facts["branch"], facts["last_commit"]) == ("main", None)
    assert "remotes" not in facts


async def test_an_origin_is_read_without_credentials_and_only_of_present_repositories(
    clone: Path, tmp_path: Path
) -> None:
    known = [_at(raw(clone)), _at(raw(make_repository(tmp_path / "two")))]
    assert await _reader().origins(known) == {raw(clone): "https://example.org/one"}
    away = _at(raw(clone), presence=Presence.MISSING)
    plain = _at(raw(clone), kind=ProjectKind.PROJECT)
    assert await _reader().origins([away, plain]) == {}
    assert await _reader(responds=lambda _: False).origins(known) == {}


async def test_folders_that_are_away_or_do_not_respond_are_not_read() -> None:
    helper = FakeHelper()
    projects = [
        _at(b"/away", presence=Presence.MISSING),
        _at(b"https://example.org", kind=ProjectKind.URI),
        _at(b"/hung"),
        _at(b"/here"),
    ]
    assert await _reader().facts(projects[:2]) == [None, None]
    reader = _reader(helper, responds=lambda path: path != b"/hung")
    found = await reader.risks(projects, HANG_GUARD)
    assert helper.asked == [[b"/here"]]
    assert found.keys() == {b"/here"}


class FakeHelper(UnavailableHelper):
    """A helper that answers about at most `size` projects at once, and about no `hanging` one."""

    def __init__(self, size: int = 1_000, hanging: frozenset[bytes] = frozenset()) -> None:
        super().__init__("a test")
        self.size = size
        self.hanging = hanging
        self.asked: list[list[bytes]] = []

    def problem(self) -> str | None:
        return None

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        assert task is HelperTask.RISKS
        assert 0 < seconds < HANG_GUARD
        paths = [query.path for query in decode_typed(question, list[ProjectQuery])]
        self.asked.append(paths)
        if not self.hanging.isdisjoint(paths):
            raise NoAnswer("late")
        return encode_typed([_risks(path) for path in paths[: self.size]])


def _risks(path: bytes) -> CollectedRisks:
    return CollectedRisks(path.decode(), [], 0, is_whole=True)


async def test_a_project_that_hangs_its_worker_costs_only_its_own_risks() -> None:
    helper = FakeHelper(hanging=frozenset((PATHS[3], PATHS[-1])))
    found = await _reader(helper).risks(EVERYTHING, HANG_GUARD)
    assert set(PATHS) - found.keys() == {PATHS[3], PATHS[-1]}
    assert found[PATHS[4]] == _risks(b"/p4")
    assert helper.asked.count([PATHS[3]]) == 1


async def test_projects_for_which_a_worker_had_no_time_are_asked_about_again() -> None:
    found = await _reader(FakeHelper(size=3)).risks(EVERYTHING, HANG_GUARD)
    assert [found[path] for path in PATHS] == [_risks(path) for path in PATHS]


async def test_nothing_is_read_after_the_time_limit(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = FakeHelper()
    assert await _reader(helper).risks(EVERYTHING, 0.0) == {}
    assert helper.asked == []
    monkeypatch.setattr(project_reader, "_ORIGIN_SECONDS", -1.0)
    assert await _reader().origins([_at(raw(clone))]) == {}


async def test_a_read_that_does_not_end_is_given_up(
    clone: Path, silence: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def responds(path: bytes) -> bool:
        return path not in (PATHS[-1], raw(clone)) or silence.wait(HANG_GUARD)

    reader = _reader(FakeHelper(), responds=responds)
    monkeypatch.setattr(project_reader, "_ORIGIN_TIMEOUT_S", 0.02)
    started = time.monotonic()
    with anyio.fail_after(HANG_GUARD):
        found = await reader.risks(EVERYTHING, 0.2)
        assert time.monotonic() - started < HANG_GUARD / 2
        assert await reader.origins([_at(raw(clone))]) == {}
    assert PATHS[0] in found
    assert PATHS[-1] not in found
