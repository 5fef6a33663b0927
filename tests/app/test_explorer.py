"""After any changes, told by the real kernel, what is known equals what a fresh scan finds."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rootsd.app.explorer import Explorer
from rootsd.core.inputs import Observation, Sighted, Unreachable, Vanished
from rootsd.core.model import Nested, Parent, ProjectKind
from rootsd.host.safety import Surroundings
from rootsd.host.watch.events import Overflow, Watcher
from rootsd.host.watch.polling import PollingWatcher
from support.repos import fake_repository, git, make_repository, raw
from support.sizes import Sizes
from support.watching import Clock, PumpedInotify

pytestmark = pytest.mark.needs("linux")


class World:
    """An explorer on real inotify, without threads: it looks when `settle` is called."""

    def __init__(self, top: Path, *parents: Parent) -> None:
        self.top = top / "src"
        self.top.mkdir()
        self.clock = Clock()
        self.pumped = PumpedInotify(top / "barrier")
        self.parents = parents or (Parent(raw(self.top)),)
        self.explorer = self.explorer_on(self.pumped.watcher)
        self.told: list[Observation] = []
        self._taken = 0
        self.settle()

    def explorer_on(self, watcher: Watcher) -> Explorer:
        surroundings = Surroundings(os.getuid())
        explorer = Explorer(watcher, surroundings, lambda _path: False, self.clock)
        for territory in explorer.set_parents(self.parents):
            explorer.explore(territory)
        return explorer

    def settle(self) -> None:
        """Follow everything up until only time could change anything, and let that pass."""
        while True:
            batch = self.pumped.pump()
            self.explorer.happened(batch)
            quiet = not batch
            quiet = run_down(self.explorer, self.clock) and quiet
            if quiet:
                break
        self.told += self.explorer.take()

    def live(self) -> dict[str, ProjectKind]:
        """What is there, by what was told."""
        live: dict[bytes, Sighted] = {}
        for observation in self.told:
            if isinstance(observation, Sighted):
                live[observation.path] = observation
            elif isinstance(observation, Vanished | Unreachable):
                live.pop(observation.path, None)
        return {self.name(p): s.kind for p, s in live.items() if s.incomplete is None}

    def held(self) -> dict[str, ProjectKind]:
        """What is there and held by a tree: not what lies below another project by now."""
        trees = self.explorer.territories
        return {
            name: kind
            for name, kind in self.live().items()
            if any(tree.has_project(raw(self.top / name)) for tree in trees)
        }

    def fresh(self) -> dict[str, ProjectKind]:
        """What a new explorer finds."""
        explorer = self.explorer_on(PollingWatcher())
        run_down(explorer, self.clock)
        sighted = [o for o in explorer.take() if isinstance(o, Sighted) and not o.incomplete]
        return {self.name(seen.path): seen.kind for seen in sighted}

    def name(self, path: bytes) -> str:
        return os.path.relpath(os.fsdecode(path), self.top)

    def take(self) -> list[Observation]:
        """What was told since the last call, after settling."""
        self.settle()
        told, self._taken = self.told[self._taken :], len(self.told)
        return told


def run_down(explorer: Explorer, clock: Clock) -> bool:
    """Let the time pass that candidates wait for; whether there was none to wait for."""
    waited = False
    while (due := explorer.candidates.next_due()) is not None:
        clock.now = max(clock.now, due)
        explorer.tick()
        waited = True
    return not waited


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.pumped.watcher.stop()


GIT = ProjectKind.GIT


def test_a_project_is_told_once_however_often_it_is_looked_at(world: World) -> None:
    fake_repository(world.top / "one")
    assert [type(told) for told in world.take()] == [Sighted]
    world.explorer.happened([Overflow()])
    for territory in world.explorer.territories:
        world.explorer.rescan(territory)
    world.explorer.sweep()
    assert world.take() == []


def test_a_rename_is_told_as_gone_and_there(world: World) -> None:
    fake_repository(world.top / "a" / "one")
    world.take()
    (world.top / "a").rename(world.top / "b")
    gone, there = world.take()
    assert gone == Vanished(raw(world.top / "a" / "one"))
    assert there.path == raw(world.top / "b" / "one")


def test_a_replaced_repository_is_told_with_its_new_identity(world: World) -> None:
    one = fake_repository(world.top / "one")
    (before,) = world.take()
    shutil.rmtree(one)
    fake_repository(one)
    gone, after = world.take()
    assert gone == Vanished(raw(one))
    assert isinstance(before, Sighted)
    assert isinstance(after, Sighted)
    assert after.identity != before.identity


def test_a_parent_that_vanishes_suspends_and_returns(world: World) -> None:
    fake_repository(world.top / "one")
    (seen,) = world.take()
    world.top.rename(world.top.with_name("away"))
    assert world.take() == [Unreachable(seen.path)]
    world.top.with_name("away").rename(world.top)
    assert world.take() == [seen]


def test_a_move_of_a_folder_above_the_parents_is_seen(tmp_path: Path) -> None:
    deep = tmp_path / "src" / "x" / "y"
    world = World(tmp_path, Parent(raw(deep)))
    fake_repository(deep / "one")
    (seen,) = world.take()
    (tmp_path / "src" / "x").rename(tmp_path / "src" / "z")
    assert world.take() == [Unreachable(seen.path)]
    (tmp_path / "src" / "x").mkdir()
    assert world.take() == []
    (tmp_path / "src" / "z" / "y").rename(deep)
    assert world.take() == [seen]
    world.pumped.watcher.stop()


def test_a_parent_made_again_is_watched_again(world: World) -> None:
    shutil.rmtree(world.top)
    world.settle()
    fake_repository(world.top / "one")
    world.settle()
    fake_repository(world.top / "two")
    world.settle()
    assert set(world.live()) == {"one", "two"}


def test_a_repository_above_takes_over_and_what_is_below_stays_known(world: World) -> None:
    fake_repository(world.top / "a" / "one")
    world.take()
    fake_repository(world.top / "a")
    assert [told.path for told in world.take()] == [raw(world.top / "a")]
    assert world.held() == world.fresh() == {"a": GIT}
    shutil.rmtree(world.top / "a" / "one")
    world.explorer.sweep()
    assert world.take() == [Vanished(raw(world.top / "a" / "one"))]


def test_a_parent_inside_another_one_yields_no_duplicates(tmp_path: Path) -> None:
    outer, inner = tmp_path / "src", tmp_path / "src" / "work"
    world = World(tmp_path, Parent(raw(outer)))
    fake_repository(inner / "one")
    assert len(world.take()) == 1
    for parents in ((Parent(raw(outer)), Parent(raw(inner), depth=1)), (Parent(raw(outer)),)):
        for territory in world.explorer.set_parents(parents):
            world.explorer.explore(territory)
        assert world.take() == []
        fake_repository(inner / f"of-{len(parents)}")
        assert len(world.take()) == 1
    world.pumped.watcher.stop()


def test_a_parent_that_is_dropped_leaves_its_projects_known(world: World) -> None:
    one = fake_repository(world.top / "one")
    world.take()
    world.explorer.set_parents([])
    assert world.take() == []
    shutil.rmtree(one)
    world.explorer.sweep()
    assert world.take() == [Vanished(raw(one))]


def test_an_approved_root_outside_every_parent_is_withdrawn_at_once(
    world: World, tmp_path: Path
) -> None:
    one = fake_repository(tmp_path / "elsewhere" / "one")
    assert isinstance(world.explorer.probe(raw(one)), Sighted)
    world.explorer.set_roots(frozenset((raw(one),)))
    world.take()
    one.rename(tmp_path / "elsewhere" / "two")
    assert world.take() == [Vanished(raw(one))]


def test_a_root_that_came_back_is_watched_again(world: World, tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "elsewhere" / "one")
    world.explorer.probe(raw(one))
    world.explorer.set_roots(frozenset((raw(one),)))
    for _ in range(2):
        world.take()
        one.rename(one.with_name("two"))
        assert [type(told) for told in world.take()] == [Vanished]
        one.with_name("two").rename(one)
        world.explorer.probe(raw(one))


def test_nested_repositories_are_live_too(tmp_path: Path) -> None:
    world = World(tmp_path, Parent(raw(tmp_path / "src"), nested=Nested.VCS))
    fake_repository(world.top / "one")
    world.settle()
    fake_repository(world.top / "one" / "libs" / "two")
    world.settle()
    assert world.held() == world.fresh() == {"one": GIT, "one/libs/two": GIT}
    world.pumped.watcher.stop()


def test_real_clones_are_told_in_all_four_forms(world: World, tmp_path: Path) -> None:
    up = make_repository(tmp_path / "up")
    git("clone", up, world.top / "one")
    git("clone", "--bare", up, world.top / "bare.git")
    git("worktree", "add", world.top / "tree", cwd=world.top / "one")
    world.settle()
    assert world.live() == world.fresh()
    assert set(world.live().values()) == {GIT, ProjectKind.GIT_BARE, ProjectKind.GIT_WORKTREE}


class Chaos:
    """Random changes in a small tree, so that they often meet."""

    NAMES = ("a", "b", "c", "build", "node_modules", os.fsdecode(b"\xff"))

    def __init__(self, top: Path, seed: int) -> None:
        self.top = top
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated

    def step(self) -> None:
        steps = (
            self.make_folder, self.make_repository, self.make_project, self.remove, self.move,
            self.unmake, self.replace, self.link, self.unmake_project,
        )  # fmt: skip
        self.random.choice(steps)()

    def place(self) -> Path:
        depth = self.random.randint(1, 4)
        return self.top.joinpath(*self.random.choices(self.NAMES, k=depth))

    def make_folder(self) -> None:
        self.quietly(lambda: self.place().mkdir(parents=True, exist_ok=True))

    def make_repository(self) -> None:
        place = self.place()
        if not (place / ".git").exists():
            self.quietly(lambda: fake_repository(place))

    def make_project(self) -> None:
        place = self.place()
        self.quietly(lambda: place.mkdir(exist_ok=True))
        self.quietly((place / "go.mod").touch)

    def unmake_project(self) -> None:
        self.quietly((self.place() / "go.mod").unlink)

    def remove(self) -> None:
        shutil.rmtree(self.place(), ignore_errors=True)

    def move(self) -> None:
        self.quietly(lambda: self.place().rename(self.place()))

    def unmake(self) -> None:
        shutil.rmtree(self.place() / ".git", ignore_errors=True)

    def replace(self) -> None:
        place = self.place()
        shutil.rmtree(place, ignore_errors=True)
        self.quietly(lambda: fake_repository(place))

    def link(self) -> None:
        self.quietly(lambda: self.place().symlink_to(self.top))

    def quietly(self, action: Callable[[], object]) -> None:
        """Some steps cannot be done, e.g. into a folder that is not there."""
        with suppress(OSError):
            action()


def test_live_equals_fresh_after_random_changes(world: World, sizes: Sizes) -> None:
    chaos = Chaos(world.top, seed=7)
    for number in range(sizes.pick(test=150, check=2_000, soak=100_000)):
        for _ in range(chaos.random.randint(1, 6)):
            chaos.step()
        if number % 10 == 9:
            world.explorer.happened([Overflow()])
        world.settle()
        # The inside of a repository is not watched; its root is swept.
        world.explorer.sweep()
        world.settle()
        assert world.held() == world.fresh()
    (tree,) = world.explorer.territories
    (fresh,) = world.explorer_on(PollingWatcher()).territories
    folders = len(tree)
    assert folders == len(fresh)
    guards_and_barrier = len(world.top.parents) + 1
    assert world.pumped.watcher.count() <= folders + guards_and_barrier
