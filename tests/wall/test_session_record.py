"""The record of a session names exactly the files that its programs changed."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.wall.git import file_changes, file_names, session_record
from rootsd.wall.git.file_changes import Change, ChangedRoot, GitView, TouchedFile
from rootsd.wall.git.file_names import _CLOCK_OF_CTIME, RootListings, is_since
from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.left_behind_reports import conclude_killed
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.git.session_record import EventKind, SessionRecord, conclude_record, records
from rootsd.wall.kernel.orders import OrderKind
from support.polling import until
from support.repositories import git, make_repository
from support.sizes import Sizes
from support.walls import Interpreter, Wall

needs_wall = pytest.mark.needs("wall")
_WATCHES: list[WallWatch] = []
_FOLDERS = ("", "src/", "src/deep/er/", "node_modules/lib/", "nested/", "n\udcff\n\x1b[31m/")
_IGNORED = "node_modules/\n*.log\n"


class Node(NamedTuple):
    """What a file is. `ctime` also changes if it is written again as it was."""

    size: int
    mode: int
    digest: str
    ctime: int

    @classmethod
    def of(cls, path: Path) -> Node:
        status = path.lstat()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        return cls(status.st_size, stat.S_IMODE(status.st_mode), digest, status.st_ctime_ns)


def listing(root: Path) -> dict[str, Node]:
    """Return all files in a root, outside of git directories."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders if each != ".git"]
        links = [each for each in folders if Path(folder, each).is_symlink()]
        for name in (*files, *links):
            path = Path(folder, name)
            found[os.path.relpath(path, root)] = Node.of(path)
    return found


def changes(before: dict[str, Node], root: Path) -> dict[str, Change]:
    """Return what differs between two listings."""
    after = listing(root)
    found = dict.fromkeys(before.keys() - after.keys(), Change.DELETED)
    found |= dict.fromkeys(after.keys() - before.keys(), Change.CREATED)
    both = before.keys() & after.keys()
    return found | {path: Change.CHANGED for path in both if before[path][:3] != after[path][:3]}


class World:
    """Two roots, one of them a checkout, and the walls of an agent."""

    def __init__(self, folder: Path) -> None:
        self.walls = folder / "walls"
        self.home = folder / "home"
        self.main = make_repository(self.home / "src" / "main")
        self.other = self.home / "src" / "other"
        for root in (self.main, self.other):
            for number, above in enumerate(_FOLDERS):
                (root / above).mkdir(parents=True, exist_ok=True)
                for name in ("a", "b.log", "c d"):
                    (root / above / name).write_text(f"{name}{number}")
        git("init", "-q", self.main / "nested", cwd=self.main)
        (self.main / ".gitignore").write_text(_IGNORED)
        (self.main / "src" / "link").symlink_to("a")
        git("add", "--", ".gitignore", "src", "a", cwd=self.main)

    def wall(self, *roots: Path) -> Wall:
        found = [as_root(each) for each in roots or (self.main, self.other)]
        return Wall(self.walls / "agent" / "0", self.home, found)

    def is_listed(self, number: int) -> bool:
        """Return whether a listing waits to be compared. The first one has number 1."""
        return any((self.walls / "agent" / "0" / "changes" / "names").glob(f"{number}-*"))

    def record(self) -> SessionRecord:
        return next(records(os.fsencode(self.walls)))

    def end(self, wall: Wall) -> SessionRecord:
        """End a wall, and return its record."""
        wall.close()
        start = self.walls / "agent" / "0" / "changes" / "start.json"
        until(lambda: not start.exists())
        return self.record()

    def changed(self, root: Path) -> dict[str, TouchedFile]:
        [found] = [each for each in self.record().roots if each.root == os.fsencode(root)]
        return {os.fsdecode(each.path): each for each in found.files}


def as_root(path: Path, access: Access = Access.READ_WRITE) -> ConfinedRoot:
    return ConfinedRoot(os.fsencode(path), access)


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_names, "_MAX_WAIT_MS", 60_000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def a_change(chance: random.Random, root: Path) -> str:
    """Return a line that changes something in a root as it is now."""
    files = sorted(listing(root))
    folders = sorted({os.path.dirname(each) for each in files} | {"new", "new/er"})
    path = str(root / chance.choice(files))
    fresh = str(root / chance.choice(folders) / f"f{chance.randrange(10**6)}")
    above = os.path.dirname(fresh)
    text = f"t{chance.random()}"
    return chance.choice(
        (
            f"os.makedirs({above!r}, exist_ok=True); open({fresh!r}, 'w').write({text!r})",
            f"os.path.islink({path!r}) or open({path!r}, 'a').write({text!r})",
            f"os.unlink({path!r})",
            f"os.makedirs({above!r}, exist_ok=True); os.rename({path!r}, {fresh!r})",
            f"open({path!r} + '~', 'w').write({text!r}); os.rename({path!r} + '~', {path!r})",
            f"os.path.islink({path!r}) or os.chmod({path!r}, 0o7{chance.randrange(1, 8)}0)",
            f"os.path.islink({path!r}) or (os.truncate({path!r}, 0), os.utime({path!r}, (1, 1)))",
            f"os.makedirs({above!r}, exist_ok=True); os.symlink('to', {fresh!r})",
            f"os.path.dirname({path!r}) != {str(root)!r}"
            f" and not os.path.exists(os.path.dirname({path!r}) + '/.git')"
            f" and os.rename(os.path.dirname({path!r}), {str(root)!r} + '/moved'"
            f" + {text!r})",
        )
    )


def compare(record: SessionRecord, before: dict[Path, dict[str, Node]]) -> None:
    """Compare a record with the listings of its roots from before and now."""
    for found in record.roots:
        root = Path(os.fsdecode(found.root))
        wanted = changes(before[root], root)
        listed = {os.fsdecode(each.path): each.change for each in found.files}
        for path in listed.keys() - wanted.keys():  # it was written again as it was
            assert Node.of(root / path).ctime != before[root][path].ctime
            assert listed.pop(path) is Change.CHANGED
        hidden = wanted.keys() - listed.keys()
        assert listed == {path: wanted[path] for path in listed}
        assert (found.total, found.ignored) >= (len(listed), len(hidden))
        assert all("node_modules/" in each or ".log" in each for each in hidden)
        assert found.is_certain


@needs_wall
def test_random_sessions_are_recorded_as_two_listings_of_the_trees_differ(
    tmp_path: Path, sizes: Sizes
) -> None:
    for seed in range(sizes.pick(test=3, check=20, soak=40)):
        chance = random.Random(seed)  # noqa: S311 - the seed says which session failed
        world = World(tmp_path / f"{seed}")
        before = {root: listing(root) for root in (world.main, world.other)}
        with world.wall() as wall:
            for _ in range(chance.randrange(1, 12)):
                wall.run(a_change(chance, chance.choice([*before])))
            record = world.end(wall)
        assert len(record.roots) == len(before)
        compare(record, before)


def test_so_are_very_many_without_a_wall(tmp_path: Path, sizes: Sizes) -> None:
    world = World(tmp_path)
    folder = os.fsencode(world.walls / "agent" / "0")
    with Interpreter(tmp_path) as program:
        for seed in range(sizes.pick(test=20, check=200, soak=600)):
            chance = random.Random(seed)  # noqa: S311 - the seed says which session failed
            if seed % 10 == 9:  # else nothing is left at some time
                world = World(tmp_path / f"{seed}")
            before = {root: listing(root) for root in (world.main, world.other)}
            listings = begun(folder, *before)
            for _ in range(chance.randrange(1, 12)):
                if roots := [root for root in before if listing(root)]:
                    program.run(a_change(chance, chance.choice(roots)))
            places = dict.fromkeys(map(os.fsencode, before))
            listings.conclude(places, (), SessionEnd.ORDERLY)
            compare(next(records(os.path.dirname(os.path.dirname(folder)))), before)


def test_the_comparison_sees_what_a_listing_that_came_late_has_missed(tmp_path: Path) -> None:
    """The control."""
    world = World(tmp_path)
    folder = os.fsencode(world.walls / "agent" / "0")
    before = {world.main: listing(world.main)}
    (world.main / "a").unlink()
    listings = begun(folder, world.main)
    listings.conclude({os.fsencode(world.main): None}, (), SessionEnd.ORDERLY)
    with pytest.raises(AssertionError):
        compare(world.record(), before)


def wait_for_tick() -> None:
    """Wait until a new ctime is later than all that there are."""
    now = time.time_ns()  # newer kernels give some files a ctime between two ticks
    until(lambda: time.clock_gettime_ns(_CLOCK_OF_CTIME) > now)


@pytest.fixture(autouse=True)
def give_watches_back() -> Iterator[None]:
    """Close the instances of inotify that `begun` has opened: a user has few of them."""
    yield
    while _WATCHES:
        _WATCHES.pop().close()


def begun(folder: bytes, *roots: Path) -> RootListings:
    """Begin a session without a wall. What was there before has an earlier ctime."""
    wait_for_tick()
    _WATCHES.append(watch := WallWatch())
    listings = RootListings(folder, watch)
    listings.begin([os.fsencode(root) for root in roots])
    listings.wait()
    session_record.begin_journal(folder, 5)
    return listings


def test_a_root_in_which_nothing_happened_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    folder, root = os.fsencode(world.walls / "agent" / "0"), os.fsencode(world.main)
    looked = []

    def find(*_: bytes) -> ChangedRoot:
        looked.append(root)
        return ChangedRoot(root)

    monkeypatch.setattr(file_changes, "find_changes", find)
    for is_changed in (False, True):
        listings = begun(folder, world.main)
        if is_changed:
            (world.main / "src" / "deep" / "er" / "a").chmod(0o600)
        listings.conclude({root: None}, (), SessionEnd.ORDERLY)
        assert len(looked) == is_changed


def test_a_root_with_more_folders_than_may_be_watched_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_names, "_PART_OF_WATCHES", 1 << 40)
    world = World(tmp_path)
    listings = begun(os.fsencode(world.walls / "agent" / "0"), world.main)
    (world.main / "a").unlink()
    listings.conclude({os.fsencode(world.main): None}, (), SessionEnd.ORDERLY)
    assert list(world.changed(world.main)) == ["a"]


@needs_wall
def test_each_changed_file_has_the_view_of_git_also_if_the_session_made_a_commit(
    world: World,
) -> None:
    commit = "git -c user.name=x -c user.email=x@x commit -qam all && git add d"
    with world.wall() as wall:
        wall.run(
            f"os.chdir('{world.main}'); open('a', 'a').write('1'); os.unlink('src/a');"
            " open('d', 'w').close(); open('e', 'w').close(); open('nested/a', 'a').write('1');"
            f" subprocess.run({commit!r}, shell=True, check=True);"
            f" open('{world.other}/a', 'a').write('1')"
        )
        world.end(wall)
    assert {path: (each.change, each.git) for path, each in world.changed(world.main).items()} == {
        "a": (Change.CHANGED, GitView.TRACKED),
        "src/a": (Change.DELETED, GitView.TRACKED),
        "d": (Change.CREATED, GitView.TRACKED),
        "e": (Change.CREATED, GitView.UNTRACKED),
        "nested/a": (Change.CHANGED, GitView.UNTRACKED),
    }
    assert world.changed(world.other)["a"].git is GitView.UNKNOWN


@needs_wall
def test_git_obeys_no_settings_of_a_repository_that_the_session_made(world: World) -> None:
    """Git would run what `core.fsmonitor` names as the person."""
    made = world.other / "made"
    trap = f"git init -q {made} && git -C {made} config core.fsmonitor 'touch {world.home}/ran'"
    with world.wall() as wall:
        wall.run(
            f"subprocess.run({trap!r}, shell=True, check=True); open('{made}/x', 'w').close()"
        )
        world.end(wall)
    assert world.changed(world.other)["made/x"].git is GitView.UNTRACKED
    assert not (world.home / "ran").exists()
    git("status", cwd=made)  # the control
    assert (world.home / "ran").exists()


@needs_wall
def test_a_session_that_was_killed_with_its_warden_is_recorded_later(world: World) -> None:
    with world.wall() as wall:
        wall.run(f"open('{world.main}/new', 'w').close(); os.unlink('{world.main}/a')")
        os.kill(wall.warden_pid, signal.SIGKILL)
    conclude_killed(os.fsencode(world.walls))
    assert world.record().end is SessionEnd.KILLED
    found = {path: each.change for path, each in world.changed(world.main).items()}
    assert found == {"new": Change.CREATED, "a": Change.DELETED}
    conclude_killed(os.fsencode(world.walls))
    assert len([*records(os.fsencode(world.walls))]) == 1


@needs_wall
def test_so_is_one_that_had_only_read_only_roots(world: World) -> None:
    with Wall(world.walls / "agent" / "0", world.home, [as_root(world.main, Access.READ)]) as wall:
        wall.run(f"open('{world.main}/a').read()")
        os.kill(wall.warden_pid, signal.SIGKILL)
    conclude_killed(os.fsencode(world.walls))
    assert world.record().what(EventKind.OPENED_READ_ONLY) == [os.fsencode(world.main)]


@needs_wall
def test_roots_that_come_and_go_are_in_the_record_with_what_was_changed_there(
    world: World,
) -> None:
    with world.wall(world.main) as wall:
        wall.order(OrderKind.ADD, as_root(world.other, Access.READ_WRITE))
        wall.run(f"open('{world.other}/new', 'w').close()")
        wall.order(OrderKind.REMOVE, paths=[world.other])
        until(lambda: not world.is_listed(2))  # a child looks at the removed root
        (world.other / "later").touch()
        record = world.end(wall)
    assert [(each.kind, os.fsdecode(each.what)) for each in record.events] == [
        (EventKind.OPENED, str(world.main)),
        (EventKind.OPENED, str(world.other)),
        (EventKind.CLOSED, str(world.other)),
    ]
    assert list(world.changed(world.other)) == ["new"]


def test_what_was_changed_in_an_inner_root_after_its_outer_root_went_is_recorded(
    world: World,
) -> None:
    inner = world.main / "nested"
    folder = os.fsencode(world.walls / "agent" / "0")
    listings = begun(folder, world.main, inner)
    listings.end_early(os.fsencode(world.main), None)
    until(lambda: not world.is_listed(1))
    listings.wait()
    wait_for_tick()
    (inner / "a").unlink()
    (world.main / "a").unlink()
    listings.conclude({os.fsencode(inner): None}, (), SessionEnd.ORDERLY)
    assert list(world.changed(inner)) == ["a"]
    assert world.changed(world.main) == {}


def test_the_look_at_a_root_that_goes_away_delays_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next revoke would wait for it."""
    gate = world.walls.parent / "gate"
    os.mkfifo(gate)
    find = file_changes.find_changes

    def find_later(*args: bytes) -> ChangedRoot:
        gate.read_bytes()
        return find(*args)

    listings = begun(os.fsencode(world.walls / "agent" / "0"), world.main)
    (world.main / "a").unlink()
    monkeypatch.setattr(file_changes, "find_changes", find_later)
    listings.end_early(os.fsencode(world.main), None)
    with gate.open("wb"):  # before, nobody has looked
        pass
    listings.conclude({}, (), SessionEnd.ORDERLY)
    assert list(world.changed(world.main)) == ["a"]


def test_a_root_that_comes_later_is_not_waited_for_as_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []
    monkeypatch.setattr(file_names, "_has_ended", lambda _, limit_ms: waited.append(limit_ms))
    listings = begun(os.fsencode(world.walls / "agent" / "0"), world.main)
    listings.begin([os.fsencode(world.other)])
    listings.wait()
    assert waited == [60_000, 100]


def test_a_root_that_somebody_removed_is_named(world: World) -> None:
    listings = begun(os.fsencode(world.walls / "agent" / "0"), world.main)
    shutil.rmtree(world.main)
    listings.conclude({os.fsencode(world.main): None}, (), SessionEnd.ORDERLY)
    assert [each.unread for each in world.record().roots] == [(b".",)]


@pytest.mark.parametrize(("step_ns", "is_certain"), [(0, True), (-10_000_000_000, False)])
def test_nothing_is_certain_if_somebody_set_the_clock_back(
    world: World, monkeypatch: pytest.MonkeyPatch, step_ns: int, is_certain: bool
) -> None:
    listings = begun(os.fsencode(world.walls / "agent" / "0"), world.main)
    (world.main / "a").unlink()
    began = file_names._clock_since_boot()
    monkeypatch.setattr(file_names, "_clock_since_boot", lambda: began + step_ns)
    listings.conclude({os.fsencode(world.main): None}, (), SessionEnd.ORDERLY)
    assert [each.is_certain for each in world.record().roots] == [is_certain]


@pytest.mark.parametrize(
    ("changed", "since", "is_changed"),
    [
        (5_000_000_001, 5_000_000_001, True),
        (5_000_000_001, 5_000_000_002, False),
        (5_000_000_000, 5_900_000_000, True),
        (4_000_000_000, 5_900_000_000, True),
        (3_000_000_000, 5_900_000_000, False),
    ],
)
def test_a_ctime_of_whole_seconds_is_since_the_start_if_it_may_be(
    changed: int, since: int, is_changed: bool
) -> None:
    assert is_since(changed, since) is is_changed


@needs_wall
def test_a_session_that_changed_nothing_says_nothing(world: World) -> None:
    with world.wall() as wall:
        wall.run(f"open('{world.main}/a').read(); os.listdir('{world.main}')")
        record = world.end(wall)
    assert [each.total + each.ignored for each in record.roots] == [0, 0]
    assert record.lines() == []


def test_a_root_that_could_not_be_listed_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    folder, root = os.fsencode(world.walls / "agent" / "0"), os.fsencode(world.main)
    listings = begun(folder, world.main)
    names = world.walls / "agent" / "0" / "changes" / "names"
    [listed] = [each for each in names.iterdir() if not each.suffix]
    listed.rename(f"{listed}.new")  # as the child leaves it if the disk is full, or it is killed
    (world.main / "a").unlink()
    listings.conclude({root: None}, (), SessionEnd.ORDERLY)
    [found] = world.record().roots
    assert (found.unread, found.total) == ((b".",), 0)


def a_root(path: bytes, count: int = 1, ignored: int = 0) -> ChangedRoot:
    files = tuple(TouchedFile(b"f%d" % each, Change.CREATED) for each in range(count))
    return ChangedRoot(path, count, ignored=ignored, files=files)


def keep(folder: Path, *roots: ChangedRoot) -> list[str]:
    """Record a session of the wall in a folder."""
    session_record.begin_journal(os.fsencode(folder), 5)
    return conclude_record(os.fsencode(folder), roots, (), SessionEnd.ORDERLY)


def test_the_end_of_a_session_takes_at_most_five_lines(tmp_path: Path) -> None:
    folder = tmp_path / "walls" / "agent" / "0"
    session_record.begin_journal(os.fsencode(folder), 5)
    session_record.note(os.fsencode(folder), EventKind.USED, b"example.org", b"b\x1b[31m")
    roots = [a_root(b"/r/%d\n" % number, 2, ignored=3) for number in range(4)]
    lines = conclude_record(os.fsencode(folder), roots, (), SessionEnd.ORDERLY)
    [record] = records(os.fsencode(tmp_path / "walls"))
    assert lines == [
        "files in /r/0\\u{a}: 2 created, 3 that git ignores",
        "files in /r/1\\u{a}: 2 created, 3 that git ignores",
        "files in 2 more roots",
        "git used your credentials at example.org, b\\u{1b}[31m",
        f"the whole report: rootsd sessions --report {record.id}",
    ]


def test_only_the_newest_records_of_all_programs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_record, "_MAX_RECORDS", 3)
    walls = tmp_path / "walls"
    for number in range(5):
        keep(walls / f"agent{number % 2}" / "0", a_root(b"/%d" % number))
    kept = [each.roots[0].root for each in records(os.fsencode(walls))]
    assert kept == [b"/4", b"/3", b"/2"]
    newest = max((walls / "agent0" / "reports").glob("*.json"))
    monkeypatch.setattr(session_record, "_MAX_RECORDED_BYTES", newest.stat().st_size * 5 // 2)
    keep(walls / "agent0" / "0", a_root(b"/5"))
    assert [each.roots[0].root for each in records(os.fsencode(walls))] == [b"/5", b"/4"]


def test_a_journal_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_record, "_MAX_JOURNAL_BYTES", 1 << 18)
    folder = os.fsencode(tmp_path / "walls" / "agent" / "0")
    session_record.begin_journal(folder, 5)
    for _ in range(100):
        session_record.note(folder, EventKind.REFUSED, *[b"x" * 200] * 1000)
    conclude_record(folder, (), (), SessionEnd.ORDERLY)
    [record] = records(os.fsencode(tmp_path / "walls"))
    assert 200 <= len(record.events) < 2000
