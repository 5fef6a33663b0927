"""git's index in every version, truncated anywhere, and with false sizes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.disk.reader import OpenFolder
from rootsd.vcs.git.index import (
    INDEX_CAP,
    MAX_INDEX_ENTRIES,
    SHA1_SIZE,
    SHA256_SIZE,
    BadIndex,
    IndexEntry,
    read_index_entries,
)
from support.creation_methods import Origins
from support.repositories import git, make_repository, raw

NAMES = {f"d{number % 7}/f{number}".encode() for number in range(30)}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "one", files=30)


def _entries_in(folder: Path, id_size: int = SHA1_SIZE) -> list[IndexEntry]:
    with OpenFolder(raw(folder)) as opened:
        return read_index_entries(opened, id_size)


def _names(repository: Path, id_size: int = SHA1_SIZE) -> set[bytes]:
    return {entry.name for entry in _entries_in(repository / ".git", id_size)}


def test_each_version_names_the_same_files_with_their_ids_and_sizes(repository: Path) -> None:
    for version in ("2", "3", "4"):
        git("update-index", "--index-version", version, cwd=repository)
        assert _names(repository) == NAMES
        (first, *_) = _entries_in(repository / ".git")
        assert first.size == (repository / first.name.decode()).stat().st_size
        loose = first.object_id.hex()
        assert (repository / ".git" / "objects" / loose[:2] / loose[2:]).exists()


def test_files_of_intent_to_add_and_outside_a_sparse_checkout_are_left_out(
    repository: Path,
) -> None:
    (repository / "new").touch()
    git("add", "--intent-to-add", "new", cwd=repository)
    git("update-index", "--skip-worktree", "d3/f3", cwd=repository)
    assert _names(repository) == NAMES - {b"d3/f3"}


def test_sha256_ids_are_read(tmp_path: Path) -> None:
    origins = Origins(tmp_path, files=3)
    assert _names(origins.sha256, SHA256_SIZE) == {b"d0/f0", b"d1/f1", b"d2/f2"}
    with pytest.raises(BadIndex):
        _names(origins.sha256, SHA1_SIZE)


def test_a_split_index_names_nothing(repository: Path) -> None:
    git("update-index", "--split-index", cwd=repository)
    assert _names(repository) == set()


def test_an_index_without_a_checksum_is_read(repository: Path) -> None:
    index = repository / ".git" / "index"
    index.write_bytes(index.read_bytes()[:-20] + bytes(20))
    assert _names(repository) == NAMES


def test_an_index_that_counts_more_than_it_holds_does_not_hang(repository: Path) -> None:
    index = repository / ".git" / "index"
    data = index.read_bytes()
    index.write_bytes(data[:8] + b"\xff\xff\xff\xff" + data[12:-20] + bytes(20))
    with pytest.raises(BadIndex):
        _names(repository)


@given(data=st.binary(max_size=300), version=st.sampled_from([2, 3, 4, 9]))
def test_invalid_bytes_raise_only_bad_index(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, version: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "index").write_bytes(b"DIRC" + version.to_bytes(4, "big") + data + bytes(20))
    with suppress(BadIndex):
        _entries_in(folder)


def _index(version: int, entries: list[bytes]) -> bytes:
    """An index with these entries, each from its flags on, and no checksum."""
    stat_and_id = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12 + SHA1_SIZE)
    body = b"".join(stat_and_id + entry for entry in entries)
    head = b"DIRC" + version.to_bytes(4, "big") + len(entries).to_bytes(4, "big")
    return head + body + bytes(SHA1_SIZE)


def _plain(name: bytes) -> bytes:
    length = 62 + len(name)
    return bytes(2) + name + bytes(8 - length % 8)


def _entries(tmp_path: Path, data: bytes) -> list[bytes]:
    (tmp_path / "index").write_bytes(data)
    return [entry.name for entry in _entries_in(tmp_path)]


def test_compressed_names_longer_than_a_path_are_rejected(tmp_path: Path) -> None:
    grows = [bytes(2) + b"\0" + b"a" * 60 + b"\0"] * 60
    assert len(_entries(tmp_path, _index(4, grows))) == 60
    with pytest.raises(BadIndex, match="longer than any path"):
        _entries(tmp_path, _index(4, grows * 1_500))


def test_an_index_with_too_many_entries_is_not_read(tmp_path: Path) -> None:
    name = _plain(b"a")
    assert len(_entries(tmp_path, _index(2, [name] * MAX_INDEX_ENTRIES))) == MAX_INDEX_ENTRIES
    assert _entries(tmp_path, _index(2, [name] * (MAX_INDEX_ENTRIES + 1))) == []
    huge = _index(2, [_plain(b"a" * 1000)] * 40_000)
    assert len(huge) > INDEX_CAP
    assert _entries(tmp_path, huge) == []


@pytest.mark.parametrize("name", [b"../a", b"a/../../b", b"/etc/passwd", b".."])
def test_a_name_that_leads_out_of_the_checkout_is_rejected(tmp_path: Path, name: bytes) -> None:
    assert _entries(tmp_path, _index(2, [_plain(b"a..b/..c")])) == [b"a..b/..c"]
    with pytest.raises(BadIndex, match="leads out"):
        _entries(tmp_path, _index(2, [_plain(name)]))
