"""Roots on an unresponsive file system are unreachable, and no answer waits for them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import GitEntry, Identity, ProjectKind
from rootsd.state.timeout_verifier import TimeoutVerifier
from support.core_samples import identity
from support.ledger_harness import HANG_GUARD
from support.polling import until
from support.repositories import raw

NEAR, FAR, OTHER = b"/home/ann/one", b"/net/two", b"/remote/three"
ROOTS = {path: identity(number) for number, path in enumerate((NEAR, FAR, OTHER))}
POINTS = (b"/net", b"/remote")


class Disk:
    """Folders that are there or not, on file systems that answer or not."""

    def __init__(self) -> None:
        self.gone: set[bytes] = set()
        self.silent: set[bytes] = set()
        self.answers = threading.Event()
        self.looked: list[tuple[bytes, bool]] = []
        self.made = 0

    def make(self) -> _Looker:
        self.made += 1
        return _Looker(self)


class _Looker:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.lstat_calls = 0

    def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        is_main = threading.current_thread() is threading.main_thread()
        for path in roots:
            self.lstat_calls += 1
            self._disk.looked.append((path, is_main))
            if path in self._disk.silent:
                assert self._disk.answers.wait(HANG_GUARD)
        return [ProjectGone(path) for path in roots if path in self._disk.gone]

    def verify_more(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        return self.verify(roots)


@pytest.fixture
async def disk() -> AsyncIterator[Disk]:
    disk = Disk()
    yield disk
    disk.answers.set()


def _patience(
    disk: Disk, doubted: list[bytes] | None = None, timeout_s: float = HANG_GUARD
) -> TimeoutVerifier:
    def doubt(paths: Sequence[bytes]) -> None:
        if doubted is not None:
            doubted.extend(paths)

    return TimeoutVerifier(disk.make, lambda: POINTS, doubt, timeout_s)


async def test_only_local_roots_are_verified_on_the_event_loop(disk: Disk) -> None:
    patience = _patience(disk)
    assert await patience.verify(ROOTS) == []
    assert sorted(disk.looked) == [(NEAR, True), (FAR, False), (OTHER, False)]
    made = disk.made
    assert await patience.verify_more(ROOTS) == []
    assert disk.made == made, "what they remember is kept"


async def test_a_root_with_git_data_on_a_remote_mount_is_verified_in_a_thread(
    disk: Disk, tmp_path: Path
) -> None:
    near, far = (tmp_path / name for name in ("near", "far"))
    for folder, target in ((near, tmp_path / "main"), (far, "/net/main")):
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {target}/.git/worktrees/x\n")
    linked = replace(identity(1), git=GitEntry.FILE)
    patience = _patience(disk, timeout_s=0.02)
    disk.silent.add(raw(far))
    with anyio.fail_after(HANG_GUARD):
        told = await patience.verify({raw(near): linked, raw(far): linked})
    assert told == [ProjectUnreachable(raw(far))]
    until(lambda: len(disk.looked) > 1)
    assert sorted(disk.looked) == [(raw(far), False), (raw(near), True)]


async def test_without_remote_file_systems_no_thread_is_used(disk: Disk) -> None:
    patience = TimeoutVerifier(disk.make, tuple, lambda _paths: None)
    assert await patience.verify(ROOTS) == []
    assert all(is_main for _, is_main in disk.looked)


async def test_an_unresponsive_root_is_unreachable_until_it_answers(disk: Disk) -> None:
    doubted: list[bytes] = []
    patience = _patience(disk, doubted, timeout_s=0.02)
    disk.silent.add(FAR)
    roots = {path: ROOTS[path] for path in (NEAR, FAR)}
    with anyio.fail_after(HANG_GUARD):
        assert await patience.verify(roots) == [ProjectUnreachable(FAR)]
        assert await patience.verify_more(roots) == [ProjectUnreachable(FAR)]
    assert doubted == [FAR, FAR]
    asked = until(lambda: [path for path, _ in disk.looked if path == FAR])
    assert asked == [FAR], "it is not asked again meanwhile"
    disk.silent.clear()
    disk.answers.set()
    for thread in threading.enumerate():
        if thread.name == "verify":
            thread.join(HANG_GUARD)
    with anyio.fail_after(HANG_GUARD):
        while await patience.verify(ROOTS):
            pass  # its patience is short, and the machine may be busy


async def test_a_slow_verification_that_makes_progress_is_not_given_up(disk: Disk) -> None:
    """Many folders that take a while each are no reason to give up."""

    class Slow(_Looker):
        asked = 0

        @property
        def lstat_calls(self) -> int:
            """Goes on each time somebody asks, and ends when it was asked for the tenth time."""
            self.asked += 1
            if self.asked == 10:
                disk.answers.set()
            return self.asked

        @lstat_calls.setter
        def lstat_calls(self, value: int) -> None:
            """Counted above."""

    disk.silent.add(FAR)
    patience = TimeoutVerifier(lambda: Slow(disk), lambda: POINTS, lambda _: None, timeout_s=0.02)
    with anyio.fail_after(HANG_GUARD):
        assert await patience.verify({FAR: ROOTS[FAR]}) == []


async def test_a_missing_root_is_reported_for_another_check(disk: Disk) -> None:
    doubted: list[bytes] = []
    patience = _patience(disk, doubted)
    disk.gone |= {NEAR, OTHER}
    assert await patience.verify(ROOTS) == [ProjectGone(NEAR), ProjectGone(OTHER)]
    assert doubted == [NEAR, OTHER]


async def test_discovery_reports_when_the_git_data_of_a_worktree_return() -> None:
    lost = replace(identity(1), git=GitEntry.FILE)
    seen = {
        path: ProjectObserved(path, ProjectKind.GIT, found)
        for path, found in ((NEAR, lost), (OTHER, identity(1)))
    }

    class Looks:
        lstat_calls = 0

        def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
            return [seen[path] for path in roots]

        verify_more = verify

    doubted: list[bytes] = []
    patience = TimeoutVerifier(Looks, tuple, doubted.extend)
    assert await patience.verify({path: identity(1) for path in seen}) == [*seen.values()]
    assert doubted == [NEAR]
