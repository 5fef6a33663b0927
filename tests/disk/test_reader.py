"""Reading never hangs and never follows a link."""

from __future__ import annotations

import errno
import os
import stat
import tracemalloc
from pathlib import Path

import pytest

from rootsd.disk import reader
from rootsd.disk.reader import (
    list_names,
    open_folder,
    read_small,
    read_tail,
    resolve_path,
    stat_no_follow,
)
from support.repositories import raw


@pytest.mark.parametrize("size", [0, 4_095, 4_096, 4_097, 100_000])
def test_a_file_of_any_size_is_read_whole_or_up_to_the_cap(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "packed-refs").write_bytes(content)
    assert read_small(raw(tmp_path / "packed-refs"), 4 << 20) == content
    assert read_small(raw(tmp_path / "packed-refs"), 4_096) == content[:4_096]
    assert read_small(raw(tmp_path / "packed-refs"), 90_000) == content[:90_000]


def test_the_buffer_has_the_size_of_the_file_and_not_of_the_cap(tmp_path: Path) -> None:
    (tmp_path / "packed-refs").write_bytes(b"x")
    tracemalloc.start()
    try:
        assert read_small(raw(tmp_path / "packed-refs"), 64 << 20) == b"x"
        assert 0 < tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_without_a_reported_size_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_bytes(bytes(9_000))
    stated = os.stat(tmp_path)
    regular = (stat.S_IFREG, *stated[1:6], 0, *stated[7:10])
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(regular))
    assert read_small(raw(tmp_path / "config"), 100_000) == bytes(9_000)


@pytest.mark.parametrize("name", ["link", "fifo", "folder", "none", "file\0x"])
def test_what_is_no_regular_file_reads_as_nothing_and_does_not_hang(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    path = raw(tmp_path) + b"/" + name.encode()
    assert read_small(path, 4096) is None
    assert read_tail(path, 1) is None


def test_a_link_anywhere_above_is_not_followed_either(tmp_path: Path) -> None:
    (tmp_path / "real" / "folder").mkdir(parents=True)
    (tmp_path / "real" / "folder" / "HEAD").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("real")
    behind = raw(tmp_path / "link" / "folder")
    assert read_small(behind + b"/HEAD", 4096) is None
    assert read_tail(behind + b"/HEAD", 2) is None
    assert list_names(behind) == frozenset()
    for path in (behind, raw(tmp_path / "link")):
        with pytest.raises(OSError, match="link"):
            open_folder(path)


def test_without_openat2_paths_are_opened_one_folder_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_open_canonical", reader._open_by_components)
    test_a_link_anywhere_above_is_not_followed_either(tmp_path)
    (tmp_path / "real" / "folder" / "config").write_bytes(b"x")
    assert read_small(raw(tmp_path / "real" / "folder" / "config"), 16) == b"x"
    assert list_names(raw(tmp_path / "real" / "folder")) == {b"HEAD", b"config"}
    assert list_names(b"/") == frozenset(os.listdir(b"/"))


def test_reads_relative_to_a_descriptor(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_bytes(b"x")
    fd = open_folder(raw(tmp_path))
    try:
        assert read_small(b"HEAD", 16, fd) == b"x"
    finally:
        os.close(fd)


def test_the_tail_is_returned_only_if_the_file_is_long_enough(tmp_path: Path) -> None:
    (tmp_path / "pack").write_bytes(b"0123456789")
    assert read_tail(raw(tmp_path / "pack"), 4) == b"6789"
    assert read_tail(raw(tmp_path / "pack"), 11) is None


def test_the_names_in_a_folder_are_listed_and_need_not_be_text(tmp_path: Path) -> None:
    (tmp_path / "HEAD").touch()
    Path(os.fsdecode(raw(tmp_path) + b"/caf\xe9")).mkdir()
    assert list_names(raw(tmp_path)) == {b"HEAD", b"caf\xe9"}
    for nothing in (raw(tmp_path / "none"), raw(tmp_path) + b"\0x"):
        assert list_names(nothing) == frozenset()


def test_dot_dot_is_resolved_without_the_kernel() -> None:
    assert resolve_path(b"/a/.git/worktrees/w", b"../..") == b"/a/.git"
    assert resolve_path(b"/a", b"/b/../c") == b"/c"


def test_a_stat_describes_the_link_itself_and_goes_through_none(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("four")
    (tmp_path / "link").symlink_to("folder")
    assert stat_no_follow(raw(tmp_path / "folder" / "file")).st_size == 4
    assert stat.S_ISLNK(stat_no_follow(raw(tmp_path / "link")).st_mode)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        stat_no_follow(raw(tmp_path / "link" / "file"))
    with pytest.raises(FileNotFoundError):
        stat_no_follow(raw(tmp_path / "none"))
