"""Reading origins never waits for a folder that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from rootsd.control import project_reader
from rootsd.control.project_reader import ProjectReader
from rootsd.core.model import Presence, Project, ProjectKind
from rootsd.helper.client import UnavailableHelper
from support.ledger_harness import HANG_GUARD
from support.repositories import git, make_repository, raw
from support.sample_decisions import project

GIT = ProjectKind.GIT


def _at(path: Path, **observed: object) -> Project:
    known = project(1)
    seen = replace(known.observed, **{"kind": GIT, **observed})  # type: ignore[arg-type]
    return replace(known, path=raw(path), observed=seen)


def _reader(responds: Callable[[bytes], bool]) -> ProjectReader:
    return ProjectReader(UnavailableHelper("a test"), tuple, responds)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "origin", "https://ann:secret@example.org/one", cwd=repository)
    return repository


async def test_an_origin_is_read_without_credentials(clone: Path, tmp_path: Path) -> None:
    known = [_at(clone), _at(make_repository(tmp_path / "two"))]
    found = await _reader(lambda _: True).origins(known)
    assert found == {raw(clone): "https://example.org/one"}


async def test_missing_folders_and_plain_folders_are_not_read(clone: Path) -> None:
    away = _at(clone, presence=Presence.MISSING)
    plain = _at(clone, kind=ProjectKind.PROJECT)
    assert await _reader(lambda _: True).origins([away, plain]) == {}


async def test_without_an_answer_there_is_no_origin(clone: Path) -> None:
    assert await _reader(lambda _: False).origins([_at(clone)]) == {}


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    over = threading.Event()
    yield over
    over.set()


async def test_a_read_that_does_not_end_is_given_up(
    clone: Path, silence: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_reader, "_ORIGIN_TIMEOUT_S", 0.02)

    def answers(_: bytes) -> bool:
        return silence.wait(HANG_GUARD)

    with anyio.fail_after(HANG_GUARD):
        assert await _reader(answers).origins([_at(clone)]) == {}


async def test_projects_beyond_the_limit_have_no_origin(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_reader, "_ORIGIN_SECONDS", -1.0)
    assert await _reader(lambda _: True).origins([_at(clone)]) == {}
