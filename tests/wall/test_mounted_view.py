"""A root that cannot be shown or covered is attempted again, less and less often.

The tree, the clock, and the timers are fakes. Run in time, the last pause would take a minute.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, DesiredMount, desired_mounts
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.kernel import mounted_view
from rootsd.wall.kernel.mounted_view import MountedView
from rootsd.wall.kernel.warden import WardenSettings

pytestmark = [pytest.mark.needs("wall")]

API, DOCS = b"/src/api", b"/src/docs"
PAUSES = [1, 2, 4, 8, 16, 32, 64, 64, 64]


class FakePart:
    """A part of a tree in which nothing happens, as without a watch, a mask, or another wall."""

    listener, masks = None, frozenset[bytes]()

    def __init__(self) -> None:
        self.more = os.eventfd(0)

    @property
    def names(self) -> FakePart:
        return self

    def changed(self) -> None:
        """Return nothing."""

    def serve(self) -> None:
        """Do nothing."""

    def set_masks(self, _: object) -> None:
        """Do nothing."""

    def repair(self) -> bool:
        return False


class FakeTree:
    """A tree that cannot show or cover the `failing` roots."""

    root = b"/view"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.names = self.worktree_names = FakePart()
        self.unwatched: set[bytes] = set()
        self.shown: dict[bytes, DesiredMount] = {}
        self.failing: set[bytes] = set()
        self.broken: dict[bytes, set[bytes]] = {}
        self.attempts = 0
        self.is_searching = False
        self.settings = self.base = self.storage = FakePart()

    def build(self, *_: object) -> None:
        """Do nothing."""

    def show(self, mount: DesiredMount) -> None:
        self.attempts += 1
        if mount.path in self.failing:
            raise OSError(28, "No space left on device")
        self.shown[mount.path] = mount

    def hide(self, path: bytes) -> None:
        del self.shown[path]

    def find_broken(self, _: object = None) -> dict[bytes, set[bytes]]:
        return {path: names for path, names in self.broken.items() if path in self.shown}

    def place_worktrees(self, _: Iterable[bytes]) -> None:
        """Do nothing."""

    def settle_records(self) -> None:
        """Do nothing."""

    def repair(self, path: bytes, _: Iterable[bytes]) -> None:
        if path in self.failing:
            raise OSError(28, "No space left on device")
        del self.broken[path]


class FakeTime:
    """A clock that stands still, and the timers that were set. They never ring."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.timers: list[int] = []

    def monotonic(self) -> float:
        return self.now

    def interval_timer(self, seconds: int) -> int:
        self.timers.append(seconds)
        return os.eventfd(0)  # the view closes it


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    time = FakeTime()
    monkeypatch.setattr(mounted_view, "time", time)
    monkeypatch.setattr(mounted_view, "interval_timer", time.interval_timer)
    return time


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> FakeTree:
    tree = FakeTree()
    monkeypatch.setattr(mounted_view, "SharedTree", lambda *_: tree)
    return tree


@pytest.fixture
def view(tmp_path: Path, time: FakeTime, tree: FakeTree) -> MountedView:
    """A view that shows both roots."""
    settings = WardenSettings(os.fsencode(tmp_path), (), b"/")
    with closing(WallWatch()) as watch:
        view = MountedView(settings, watch, os.getpid())
    assert not view.build(desired(API, DOCS), frozenset()).failed
    return view


def desired(*paths: bytes) -> dict[bytes, DesiredMount]:
    return desired_mounts([ConfinedRoot(path, Access.READ_WRITE) for path in paths], {})


def lose_cover(view: MountedView, tree: FakeTree, path: bytes) -> None:
    """Let a root lose a cover that cannot be replaced, so that it is hidden."""
    tree.failing = {path}
    tree.broken = {path: {b".envrc"}}
    assert [each.path for each in view.repair().failed] == [path]
    tree.broken = {}
    assert path not in view.shown


def test_a_root_that_cannot_be_covered_again_is_attempted_with_growing_pauses(
    view: MountedView, tree: FakeTree, time: FakeTime
) -> None:
    lose_cover(view, tree, API)
    for pause in PAUSES:
        assert time.timers[-1] == pause
        time.now += pause
        assert [each.path for each in view.repair().failed] == [API]
    tree.failing = set()
    time.now += PAUSES[-1]
    assert view.repair().restored == (API,)
    assert view.shown.keys() == {API, DOCS}


def test_nothing_is_attempted_and_no_timer_runs_while_everything_is_shown(
    view: MountedView, tree: FakeTree, time: FakeTime
) -> None:
    attempts = tree.attempts
    time.now += 1_000
    view.repair()
    assert (tree.attempts, time.timers) == (attempts, [])


def test_a_change_of_other_mounts_does_not_bring_the_next_attempt_forward(
    view: MountedView, tree: FakeTree, time: FakeTime
) -> None:
    lose_cover(view, tree, API)
    attempts = tree.attempts
    for _ in range(100):
        assert not view.repair().failed
    assert tree.attempts == attempts
    time.now += PAUSES[0]
    view.repair()
    assert tree.attempts == attempts + 1


def test_after_an_order_the_pauses_are_short_again(
    view: MountedView, tree: FakeTree, time: FakeTime
) -> None:
    lose_cover(view, tree, API)
    for pause in PAUSES:
        time.now += pause
        view.repair()
    view.change(desired(API), frozenset())
    attempts = tree.attempts
    assert time.timers[-1] == PAUSES[0]
    time.now += PAUSES[0]
    view.repair()
    assert tree.attempts == attempts + 1


def test_a_root_that_is_no_longer_wanted_is_not_attempted_again(
    view: MountedView, tree: FakeTree, time: FakeTime
) -> None:
    lose_cover(view, tree, API)
    view.change(desired(DOCS), frozenset())
    attempts = tree.attempts
    time.now += 1_000
    view.repair()
    assert tree.attempts == attempts
