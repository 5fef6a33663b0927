"""Origins are read of what is there, and nobody waits for what does not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from rootsd.control import facts
from rootsd.control.facts import OriginReader, no_origins
from rootsd.core.model import Presence, Project, ProjectKind
from support.decisions import project
from support.fakes import HANG_GUARD
from support.repos import git, make_repository, raw

GIT = ProjectKind.GIT


def _at(path: Path, **observed: object) -> Project:
    known = project(1)
    seen = replace(known.observed, **{"kind": GIT, **observed})  # type: ignore[arg-type]
    return replace(known, path=raw(path), observed=seen)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "origin", "https://ann:secret@example.org/one", cwd=repository)
    return repository


async def test_an_origin_is_read_without_credentials(clone: Path, tmp_path: Path) -> None:
    known = [_at(clone), _at(make_repository(tmp_path / "two"))]
    found = await OriginReader(lambda _: True).of(known)
    assert found == {raw(clone): "https://example.org/one"}
    assert await no_origins(known) == {}


async def test_what_is_away_or_no_repository_is_not_looked_at(clone: Path) -> None:
    away = _at(clone, presence=Presence.MISSING)
    plain = _at(clone, kind=ProjectKind.PROJECT)
    assert await OriginReader(lambda _: True).of([away, plain]) == {}


async def test_where_nobody_answers_nothing_is_read(clone: Path) -> None:
    assert await OriginReader(lambda _: False).of([_at(clone)]) == {}


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    over = threading.Event()
    yield over
    over.set()


async def test_a_look_that_does_not_end_is_given_up(
    clone: Path, silence: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_ORIGIN_TIMEOUT_S", 0.02)

    def answers(_: bytes) -> bool:
        return silence.wait(HANG_GUARD)

    with anyio.fail_after(HANG_GUARD):
        assert await OriginReader(answers).of([_at(clone)]) == {}


async def test_of_many_the_rest_does_without(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_ORIGIN_SECONDS", -1.0)
    assert await OriginReader(lambda _: True).of([_at(clone)]) == {}
