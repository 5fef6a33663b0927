"""All views of one wall share one instance of inotify, and each hears what it asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.wall.git.name_watch import ANY_CHANGE, ANY_NAME, NameEvent, NameWatch, WallWatch
from rootsd.wall.system_calls import closing, open_path

pytestmark = [pytest.mark.needs("linux")]
ROOT = b"/root"


@pytest.fixture
def wall() -> Iterator[WallWatch]:
    wall = WallWatch()
    assert wall.fd >= 0, "the user has no instance of inotify left"
    yield wall
    wall.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def look_at(view: NameWatch, folder: Path, name: bytes = ANY_NAME, root: bytes = ROOT) -> None:
    with closing(open_path(bytes(folder), os.O_DIRECTORY)) as fd:
        view.watch(root, [(fd, {name: name or b"any"})])
    assert not view.unwatched


def add(wall: WallWatch, folder: Path) -> int:
    with closing(open_path(bytes(folder), os.O_DIRECTORY)) as fd:
        return wall.add(fd, ANY_CHANGE)


def watched_folders(wall: WallWatch) -> int:
    return Path(f"/proc/self/fdinfo/{wall.fd}").read_text().count("inotify wd:")


def test_each_view_of_one_folder_hears_only_its_own_events(wall: WallWatch, folder: Path) -> None:
    makes, writes = wall.view(), wall.view(NameEvent.WRITTEN)
    look_at(makes, folder)
    look_at(writes, folder)
    assert watched_folders(wall) == 1
    (folder / "a").mkdir()
    wall.attend()
    assert (makes.changed(), writes.changed()) == ({ROOT: {b"any"}}, None)
    (folder / "b").touch()
    wall.attend()
    assert (makes.changed(), writes.changed()) == ({ROOT: {b"any"}}, {ROOT: {b"any"}})
    with (folder / "b").open("a") as file:
        file.write("more")
    wall.attend()
    assert (makes.changed(), writes.changed()) == (None, {ROOT: {b"any"}})


def test_an_event_for_a_name_that_no_root_wants_is_still_an_event(
    wall: WallWatch, folder: Path
) -> None:
    view = wall.view()
    look_at(view, folder, b"wanted")
    (folder / "other").mkdir()
    wall.attend()
    assert (view.has_news, view.changed(), view.has_news) == (True, {}, False)
    (folder / "wanted").mkdir()
    wall.attend()
    assert view.changed() == {ROOT: {b"wanted"}}


def test_a_view_goes_on_if_another_one_forgets_the_folder(wall: WallWatch, folder: Path) -> None:
    leaves, stays = wall.view(), wall.view()
    look_at(leaves, folder)
    look_at(stays, folder)
    (folder / "a").mkdir()
    wall.attend()
    leaves.forget(ROOT)
    assert leaves.changed() == {}, "an event from before it forgot"
    assert stays.changed() == {ROOT: {b"any"}}
    for name in ("b", "c"):
        (folder / name).mkdir()
        wall.attend()
        assert (leaves.changed(), stays.changed()) == (None, {ROOT: {b"any"}})


def test_a_root_is_unwatched_while_a_watch_is_missing(folder: Path) -> None:
    none_left = WallWatch()
    none_left.close()  # as if the user had no instance left
    view = none_left.view()
    with closing(open_path(bytes(folder), os.O_DIRECTORY)) as fd:
        for root in (ROOT, b"/other"):
            view.watch(root, [(fd, {ANY_NAME: b"any"})])
    assert view.unwatched == {ROOT, b"/other"}
    view.forget(ROOT)
    view.watch(b"/other", [])
    assert view.unwatched == set()
    none_left.attend()
    assert not view.has_news


def test_one_root_goes_on_if_another_one_is_forgotten(wall: WallWatch, folder: Path) -> None:
    view = wall.view()
    look_at(view, folder)
    look_at(view, folder, root=b"/other")
    view.forget(ROOT)
    (folder / "a").mkdir()
    wall.attend()
    assert view.changed() == {b"/other": {b"any"}}


def test_a_folder_that_no_view_wants_is_watched_until_its_first_event(
    wall: WallWatch, folder: Path
) -> None:
    view = wall.view()
    look_at(view, folder)
    view.forget(ROOT)
    for name, left in (("a", 0), ("b", 0)):
        (folder / name).mkdir()
        wall.attend()
        assert watched_folders(wall) == left


def test_each_view_looks_at_all_its_names_if_events_were_lost(
    wall: WallWatch, folder: Path, tmp_path: Path
) -> None:
    views = wall.view(), wall.view(NameEvent.DELETED)
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    for view in views:
        look_at(view, quiet)
    number = add(wall, quiet)
    add(wall, folder)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 1 << 17:
        pytest.skip("the queue of inotify is too long here")
    (folder / "a").touch()
    (folder / "b").touch()
    for _ in range(limit // 2 + 1):  # the kernel merges two equal events in a row
        for name in ("a", "b"):
            (folder / name).chmod(0o600)
    assert wall.is_quiet([number])
    wall.attend()
    assert [view.changed() for view in views] == [{ROOT: {b"any"}}] * 2
    assert not wall.is_quiet([number])


def test_a_folder_that_was_removed_and_made_again_is_watched_again(
    wall: WallWatch, folder: Path, tmp_path: Path
) -> None:
    above, inside = wall.view(), wall.view()
    look_at(above, tmp_path, b"folder")
    look_at(inside, folder)
    shutil.rmtree(folder)
    wall.attend()
    assert inside.changed() == {ROOT: {b"any"}}, "the watch has ended with its folder"
    assert above.changed() is None
    folder.mkdir()
    wall.attend()
    assert above.changed() == {ROOT: {b"folder"}}
    look_at(inside, folder)
    (folder / "a").mkdir()
    wall.attend()
    assert (above.changed(), inside.changed()) == (None, {ROOT: {b"any"}})


def test_a_folder_is_quiet_while_others_change(wall: WallWatch, tmp_path: Path) -> None:
    view = wall.view()
    names = ("quiet", "wanted", "written")
    numbers = []
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        numbers.append(add(wall, tmp_path / name))
    look_at(view, tmp_path / "wanted")
    for name in names[1:]:
        (tmp_path / name / "file").chmod(0o600)
    wall.attend()
    assert [wall.is_quiet([number]) for number in numbers] == [True, False, False]
    assert not wall.is_quiet(numbers)
    assert not view.has_news, "it did not ask for a change of the mode"
