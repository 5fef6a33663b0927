"""The fake verifier of the tests agrees with the real one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved
from rootsd.core.model import ObservedState, Project, ProjectKind
from rootsd.disk.identity import identify
from rootsd.state.ledger import Verifier
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.vcs.verify import RootVerifier
from support.ledger_harness import FakeVerifier
from support.repositories import fake_repository, raw
from support.sample_decisions import NOON
from support.system_parts import folder_safety


def _doubted(_paths: object) -> None:
    pass


def _real(_now: list[Project]) -> Verifier:
    surroundings = folder_safety(os.geteuid())
    return TimeoutVerifier(lambda: RootVerifier(surroundings), lambda: (), _doubted)


@pytest.mark.parametrize("make", [_real, FakeVerifier])
async def test_only_replaced_and_missing_roots_are_reported(
    tmp_path: Path, make: type[FakeVerifier]
) -> None:
    kept, gone, replaced = (fake_repository(tmp_path / name) for name in ("k", "g", "r"))
    approved = {raw(path): identify(raw(path)) for path in (kept, gone, replaced)}
    gone.rename(tmp_path / "away")
    replaced.rename(tmp_path / "old")
    fake_repository(replaced)
    now = [
        Project(raw(path), path.name, ObservedState(ProjectKind.GIT, identify(raw(path)), NOON))
        for path in (kept, replaced)
    ]
    verifier: Verifier = make(now)
    for look in (verifier.verify, verifier.verify_more):
        told = {each.path: type(each) for each in await look(approved)}
        assert told == {raw(gone): ProjectGone, raw(replaced): ProjectObserved}
