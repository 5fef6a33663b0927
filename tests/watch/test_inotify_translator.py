"""The events for inotify records: purposes, renames, ended watches, and unknown masks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.watch.events import (
    EventOverflow,
    FileEvent,
    FileEventKind,
    FileEvents,
    WatchPurpose,
)
from rootsd.watch.inotify_records import (
    IN_ATTRIB,
    IN_CLOSE_WRITE,
    IN_CREATE,
    IN_DELETE_SELF,
    IN_IGNORED,
    IN_ISDIR,
    IN_MOVED_FROM,
    IN_MOVED_TO,
    IN_Q_OVERFLOW,
    InotifyRecord,
)
from rootsd.watch.inotify_translator import InotifyTranslator, watch_mask
from rootsd.watch.watch_registry import WatchRegistry

FRONTIER, PROGRESS, ROOT, ABOVE, LINKS, PARENT, MARKERS = (
    WatchPurpose.FRONTIER,
    WatchPurpose.PROGRESS,
    WatchPurpose.ROOT,
    WatchPurpose.ABOVE,
    WatchPurpose.LINKS,
    WatchPurpose.PARENT,
    WatchPurpose.MARKERS,
)
ADDED, LEFT, ITSELF = FileEventKind.ADDED, FileEventKind.REMOVED, FileEventKind.SELF
UNMOUNTED = 0x2000
EVENT_BITS = 0xFFF


def translated(
    *records: InotifyRecord, watches: tuple[tuple[bytes, WatchPurpose, int], ...]
) -> FileEvents:
    registry = WatchRegistry()
    for watch in watches:
        registry.add(*watch)
    resolvers = InotifyTranslator(registry).translate(records)
    return tuple(event for resolve in resolvers for event in resolve())


def test_a_rename_between_two_watched_folders_is_an_event_in_each() -> None:
    left = InotifyRecord(1, IN_MOVED_FROM | IN_ISDIR, 7, b"old")
    came = InotifyRecord(2, IN_MOVED_TO | IN_ISDIR, 7, b"new")
    assert translated(left, came, watches=((b"/a", FRONTIER, 1), (b"/b", FRONTIER, 2))) == (
        FileEvent(b"/a", b"old", LEFT, FRONTIER),
        FileEvent(b"/b", b"new", ADDED, FRONTIER, moved=True),
    )


def test_a_rename_to_an_unwatched_folder_is_one_event() -> None:
    left = InotifyRecord(1, IN_MOVED_FROM | IN_ISDIR, 7, b"old")
    came = InotifyRecord(2, IN_MOVED_TO | IN_ISDIR, 7, b"new")
    assert translated(left, came, watches=((b"/a", FRONTIER, 1),)) == (
        FileEvent(b"/a", b"old", LEFT, FRONTIER),
    )
    assert translated(left, came, watches=((b"/b", FRONTIER, 2),)) == (
        FileEvent(b"/b", b"new", ADDED, FRONTIER, moved=True),
    )


@pytest.mark.parametrize("why", [IN_DELETE_SELF, UNMOUNTED])
def test_the_end_of_a_watch_is_reported_once_for_each_path_and_purpose(why: int) -> None:
    watches = ((b"/a", FRONTIER, 1), (b"/a", ROOT, 1), (b"/b", ROOT, 1), (b"/c", ROOT, 2))
    registry = WatchRegistry()
    for watch in watches:
        registry.add(*watch)
    translator = InotifyTranslator(registry)
    end = InotifyRecord(1, IN_IGNORED, 0, b"")
    resolvers = translator.translate([InotifyRecord(1, why, 0, b""), end, end])
    events = [event for resolve in resolvers[-2:] for event in resolve()]
    assert sorted((e.folder, e.purpose.value) for e in events if isinstance(e, FileEvent)) == [
        (b"/a", FRONTIER.value),
        (b"/a", ROOT.value),
        (b"/b", ROOT.value),
    ]
    assert len(registry) == 1
    assert translator.translate([end]) == []


def test_the_end_of_a_watch_does_not_end_its_successor() -> None:
    """The owner watched the folder again before the record for the end of the old watch came."""
    end = InotifyRecord(1, IN_IGNORED, 0, b"")
    created = InotifyRecord(2, IN_CREATE | IN_ISDIR, 0, b"x")
    assert translated(end, created, watches=((b"/a", FRONTIER, 2),)) == (
        FileEvent(b"/a", b"x", ADDED, FRONTIER),
    )


@pytest.mark.parametrize(
    ("purpose", "matters"),
    [
        (FRONTIER, {b"folder", b"package.json", b".jj", b"HEAD"}),
        (PROGRESS, {b"folder", b"package.json", b".jj", b"HEAD", b"file", b"gitdir"}),
        (ROOT, {b".jj", b"HEAD"}),
        (ABOVE, {b"folder", b".jj"}),
        (LINKS, {b"folder", b"package.json", b".jj", b"HEAD", b"gitdir"}),
        (PARENT, set()),
        (MARKERS, {b".jj", b"HEAD"}),
    ],
)
def test_the_purpose_decides_whether_a_new_entry_matters(
    purpose: WatchPurpose, matters: set[bytes]
) -> None:
    folders = {b"folder", b".jj"}
    names = folders | {b"package.json", b"HEAD", b"file", b"gitdir"}
    found = set()
    for name in names:
        record = InotifyRecord(1, IN_CREATE | (IN_ISDIR if name in folders else 0), 0, name)
        if translated(record, watches=((b"/a", purpose, 1),)):
            found.add(name)
    assert found == matters


@pytest.mark.parametrize("mask", [IN_CREATE, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO])
def test_each_change_of_a_hidden_entry_matters_in_a_root_only(mask: int) -> None:
    record = InotifyRecord(1, mask, 0, b".mcp.json")
    found = {each for each in WatchPurpose if translated(record, watches=((b"/a", each, 1),))}
    assert ROOT in found
    assert not found & {FRONTIER, PARENT, ABOVE, MARKERS}
    assert not translated(record._replace(name=b"a.json"), watches=((b"/a", ROOT, 1),))


def test_of_the_written_files_only_the_link_of_a_worktree_matters() -> None:
    """git writes HEAD and the index of a worktree much more often than its link."""
    written = [InotifyRecord(1, IN_CLOSE_WRITE, 0, name) for name in (b"HEAD", b"gitdir", b"x")]
    assert translated(*written, watches=((b"/a", LINKS, 1),)) == (
        FileEvent(b"/a", b"gitdir", FileEventKind.MODIFIED, LINKS),
    )


def test_an_overflow_keeps_its_position_among_the_events() -> None:
    created = InotifyRecord(1, IN_CREATE | IN_ISDIR, 0, b"x")
    overflow = InotifyRecord(-1, IN_Q_OVERFLOW, 0, b"")
    event = FileEvent(b"/a", b"x", ADDED, FRONTIER)
    assert translated(created, overflow, created, watches=((b"/a", FRONTIER, 1),)) == (
        event,
        EventOverflow(),
        event,
    )


def test_a_purpose_gets_only_the_events_in_its_own_mask() -> None:
    """In the kernel, two purposes of a folder share one mask."""
    watches = ((b"/a", FRONTIER, 1), (b"/a", PROGRESS, 1))
    written = InotifyRecord(1, IN_CLOSE_WRITE, 0, b"package.json")
    changed = InotifyRecord(1, IN_ATTRIB, 0, b"")
    assert [
        e.purpose for e in translated(written, watches=watches) if isinstance(e, FileEvent)
    ] == [PROGRESS]
    assert translated(changed, watches=watches) == (FileEvent(b"/a", b"", ITSELF, FRONTIER),)


@given(
    st.builds(
        InotifyRecord,
        wd=st.integers(-2, 3),
        mask=st.integers(0, 2**32 - 1).filter(
            lambda mask: not mask & (IN_Q_OVERFLOW | IN_IGNORED)
        ),
        cookie=st.integers(0, 2**32 - 1),
        name=st.binary(max_size=8),
    ),
    st.sampled_from(WatchPurpose),
)
def test_unknown_watches_and_masks_are_dropped(
    record: InotifyRecord, purpose: WatchPurpose
) -> None:
    events = translated(record, watches=((b"/a", purpose, 1),))
    assert len(events) <= 1
    if record.wd != 1 or not record.mask & watch_mask(purpose) & EVENT_BITS:
        assert events == ()
