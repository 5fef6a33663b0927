"""Probing hostile projects starts no program, writes nothing, and never hangs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.hostile_projects import HostileProjects, snapshot
from support.repositories import git, raw
from support.restricted_probe import ENOUGH, Restriction
from support.subprocesses import run_program

pytestmark = pytest.mark.needs("landlock")
_FAR_TOO_SLOW_MS = 10_000
_FAR_TOO_MUCH_KIB = 64 << 10


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> HostileProjects:
    return HostileProjects(Path(os.path.realpath(tmp_path_factory.mktemp("hostile"))))


def _looked_at(corpus: HostileProjects, bonds: Restriction) -> dict[str, object]:
    arguments = (os.fspath(corpus.parent), bonds)
    told: dict[str, object] = json.loads(
        run_program((), "support.restricted_probe", *arguments, folder=corpus.outside)
    )
    return told


def _agree(one: object, other: object) -> int:
    """Return on how many projects both agree; unsettled ones are left out."""
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    both = one.keys() & other.keys()
    assert {path: one[path] for path in both} == {path: other[path] for path in both}
    return len(both)


def test_no_hostile_project_starts_writes_hangs_or_leads_outside(corpus: HostileProjects) -> None:
    before = snapshot(corpus.parent)
    free = _looked_at(corpus, Restriction.FREE)
    bound = _looked_at(corpus, Restriction.BOUND)
    assert bound["refused"] is True
    assert (free["attempts"], bound["attempts"]) == (0, 0)
    told = free["told"]
    assert isinstance(told, dict)
    assert len(told) >= 200
    # With no right to do anything but read, the answers are the same: none was needed.
    assert bound["told"] == told
    assert _agree(bound["discovered"], free["discovered"]) >= ENOUGH // 2
    for words in (bound["told"], bound["discovered"]):
        assert isinstance(words, dict)
        assert all(bytes.fromhex(path).startswith(raw(corpus.parent)) for path in words)
        assert not [said for said in words.values() if os.fspath(corpus.outside) in said]
    assert snapshot(corpus.parent) == before
    assert not corpus.fired.exists()
    cost = f"slowest {free['slowest_ms']} ms, grown by {free['grown_kib']} KiB"
    sys.stderr.write(f"{len(told)} hostile projects, {cost}\n")
    assert isinstance(free["slowest_ms"], float)
    assert free["slowest_ms"] < _FAR_TOO_SLOW_MS
    assert isinstance(free["grown_kib"], int)
    assert free["grown_kib"] < _FAR_TOO_MUCH_KIB


def test_control_git_starts_programs_of_such_a_project(tmp_path: Path) -> None:
    corpus = HostileProjects(tmp_path)
    victim = corpus.victim_of_git()
    assert not corpus.fired.exists()
    git("status", cwd=victim)
    assert corpus.fired.exists()
