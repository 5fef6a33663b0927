"""Reading risks never takes longer than its time limit, and a project cannot hide another's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from rootsd.control.project_reader import ProjectReader
from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.client import NoAnswer, UnavailableHelper
from rootsd.helper.projects import MAX_PROJECTS_PER_QUESTION, ProjectQuery
from rootsd.helper.protocol import HelperTask
from rootsd.vcs.facts import CollectedRisks
from support.helper_process import real_helper
from support.ledger_harness import HANG_GUARD
from support.repositories import raw
from support.sample_decisions import project


def _at(path: bytes, **observed: object) -> Project:
    known = project(1)
    seen = replace(known.observed, **{"kind": ProjectKind.PROJECT, **observed})  # type: ignore[arg-type]
    return replace(known, path=path, observed=seen)


PATHS = [b"/p%d" % number for number in range(2 * MAX_PROJECTS_PER_QUESTION + 1)]
EVERYTHING = [_at(path) for path in PATHS]


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


def _responds(_: bytes) -> bool:
    return True


async def test_each_project_gets_its_own_risks(tmp_path: Path) -> None:
    projects = []
    for number in range(2 * MAX_PROJECTS_PER_QUESTION + 1):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / f"{number}.pem").touch()
        projects.append(_at(raw(tmp_path / f"{number}")))
    with real_helper() as helper:
        found = await ProjectReader(helper, tuple, _responds).risks(projects, HANG_GUARD)
    absent = UnavailableHelper("a test")
    without = await ProjectReader(absent, tuple, _responds).risks(projects, HANG_GUARD)
    assert found == without
    names = [found[each.path].findings[0]["path"] for each in projects]
    assert names == [f"{number}.pem" for number in range(len(projects))]


async def test_a_project_that_hangs_its_worker_costs_only_its_own_risks() -> None:
    helper = FakeHelper(hanging=frozenset((PATHS[3], PATHS[-1])))
    found = await ProjectReader(helper, tuple, _responds).risks(EVERYTHING, HANG_GUARD)
    assert set(PATHS) - found.keys() == {PATHS[3], PATHS[-1]}
    assert found[PATHS[4]] == _risks(b"/p4")
    assert helper.asked.count([PATHS[3]]) == 1


async def test_projects_for_which_a_worker_had_no_time_are_asked_about_again() -> None:
    found = await ProjectReader(FakeHelper(size=3), tuple, _responds).risks(EVERYTHING, HANG_GUARD)
    assert [found[path] for path in PATHS] == [_risks(path) for path in PATHS]


async def test_folders_that_are_away_or_do_not_respond_are_not_read() -> None:
    helper = FakeHelper()
    projects = [
        _at(b"/away", presence=Presence.MISSING),
        _at(b"https://example.org", kind=ProjectKind.URI),
        _at(b"/hung"),
        _at(b"/here"),
    ]
    found = await ProjectReader(helper, tuple, lambda path: path != b"/hung").risks(
        projects, HANG_GUARD
    )
    assert helper.asked == [[b"/here"]]
    assert found.keys() == {b"/here"}


async def test_no_project_is_read_after_the_time_limit() -> None:
    helper = FakeHelper()
    assert await ProjectReader(helper, tuple, _responds).risks(EVERYTHING, 0.0) == {}
    assert helper.asked == []


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    over = threading.Event()
    yield over
    over.set()


async def test_a_read_that_does_not_end_is_given_up(silence: threading.Event) -> None:
    def responds(path: bytes) -> bool:
        return path != PATHS[-1] or silence.wait(HANG_GUARD)

    reader = ProjectReader(FakeHelper(), tuple, responds)
    started = time.monotonic()
    with anyio.fail_after(HANG_GUARD):
        found = await reader.risks(EVERYTHING, 0.2)
    assert time.monotonic() - started < HANG_GUARD / 2
    assert PATHS[0] in found
    assert PATHS[-1] not in found
