"""Which files are temporary files of a VCS, and which events can end a stage."""

from __future__ import annotations

import pytest

from rootsd.discovery.candidate import is_significant_event
from rootsd.vcs.registry import is_vcs_temporary_file
from rootsd.watch.events import FileEvent, FileEventKind, WatchPurpose

CAME, LEFT, ALTERED = FileEventKind.ADDED, FileEventKind.REMOVED, FileEventKind.MODIFIED


@pytest.mark.parametrize(
    "name",
    [b"index.lock", b"tmp_pack_x", b"tmp_idx_x", b"pack_git2_x", b"wlock", b"lock", b"held",
     b"limbo", b"wc.db-journal", b"format-0"],
)  # fmt: skip
def test_temporary_files_of_a_vcs_are_recognized(name: bytes) -> None:
    assert is_vcs_temporary_file(name)


@pytest.mark.parametrize("name", [b"HEAD", b"index", b"config", b"dirstate", b"locked", b""])
def test_files_that_a_copy_also_has_are_not_temporary(name: bytes) -> None:
    assert not is_vcs_temporary_file(name)


@pytest.mark.parametrize(
    ("name", "change", "moved", "tells"),
    [
        (b"index", CAME, True, True),
        (b"index", CAME, False, True),
        (b"HEAD", CAME, False, False),
        (b"index.lock", LEFT, False, True),
        (b"index.lock", CAME, False, False),
        (b"pack-1.keep", LEFT, False, True),
        (b"held", LEFT, False, True),
        (b"README", LEFT, False, False),
        (b"config", ALTERED, False, False),
        (b".git", ALTERED, False, True),
        (b".git", CAME, False, False),
        (b"", FileEventKind.SELF, False, True),
    ],
)
def test_which_events_can_end_a_stage(
    name: bytes, change: FileEventKind, moved: bool, tells: bool
) -> None:
    assert (
        is_significant_event(FileEvent(b"/w/.git", name, change, WatchPurpose.PROGRESS, moved))
        is tells
    )
