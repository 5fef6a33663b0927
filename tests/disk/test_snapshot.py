"""A snapshot returns the saved trees, or nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.model import ProjectKind
from rootsd.disk.snapshot import (
    MAX_SNAPSHOT_BYTES,
    NO_STAMP,
    PACKED_STAMP,
    TRAITS_BY_CODE,
    FolderTraits,
    TreeSnapshot,
    read_snapshots,
    write_snapshots,
)
from rootsd.disk.walk import ProposalScope

FRONTIER = FolderTraits(None, ProposalScope.OPEN, frontier=True)
REPOSITORY = FolderTraits(ProjectKind.GIT, ProposalScope.OPEN, frontier=False)
# A folder that was last changed before 1970, with the largest inode.
STAMP = PACKED_STAMP.pack(2**61, -(2**61), 2**64 - 1, 7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "discovery.index"


def a_tree() -> TreeSnapshot:
    tree = TreeSnapshot(b"these rules")
    top = tree.add(0, b"src", FRONTIER, STAMP)
    tree.add(top, b"caf\xe9 \n", REPOSITORY, STAMP)
    tree.add(top, b"young", FRONTIER, None)
    return tree


def test_a_snapshot_is_read_back(file: Path) -> None:
    write_snapshots(file, {b"/src": a_tree(), b"/w\xff": a_tree()})
    read = read_snapshots(file)
    assert list(read) == [b"/src", b"/w\xff"]
    for tree in read.values():
        assert tree.signature == b"these rules"
        assert list(tree.rows()) == [
            (0, b"src", FRONTIER, STAMP),
            (0, b"caf\xe9 \n", REPOSITORY, STAMP),
            (0, b"young", FRONTIER, NO_STAMP),
        ]
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o600


def test_every_kind_of_folder_has_its_own_code() -> None:
    assert {traits.as_code(): traits for traits in TRAITS_BY_CODE.values()} == TRAITS_BY_CODE
    assert len(TRAITS_BY_CODE) == (len(ProjectKind) + 1) * len(ProposalScope) * 4


def test_an_invalidated_folder_has_no_stamp() -> None:
    tree = a_tree()
    tree.invalidate(1)
    assert [stamp for _, _, _, stamp in tree.rows()] == [STAMP, NO_STAMP, NO_STAMP]


def test_a_missing_or_special_file_has_no_snapshot(file: Path) -> None:
    assert read_snapshots(file) == {}
    os.mkfifo(file)
    assert read_snapshots(file) == {}
    file.unlink()
    write_snapshots(file.with_name("elsewhere"), {b"/src": a_tree()})
    file.symlink_to("elsewhere")
    assert read_snapshots(file) == {}


def test_a_changed_or_truncated_file_has_no_snapshot(file: Path) -> None:
    write_snapshots(file, {b"/src": a_tree()})
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        assert read_snapshots(file) == {}
        file.write_bytes(whole[:at])
        assert read_snapshots(file) == {}


def test_a_file_of_another_format_has_no_snapshot(file: Path) -> None:
    write_snapshots(file, {b"/src": a_tree()})
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"rootsd index 2", b"rootsd index 3"))
    assert read_snapshots(file) == {}


@given(body=st.binary(max_size=200))
def test_an_invalid_body_with_a_valid_checksum_is_ignored(
    tmp_path_factory: pytest.TempPathFactory, body: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.index"
    write_snapshots(file, {})
    magic = file.read_bytes()[: -hashlib.sha256().digest_size]
    file.write_bytes(magic + hashlib.sha256(body).digest() + body)
    assert read_snapshots(file) == {}


@pytest.mark.parametrize("container", [1, 2, 2**40])
def test_a_folder_before_its_container_is_rejected(file: Path, container: int) -> None:
    tree = TreeSnapshot(b"")
    tree.add(0, b"src", FRONTIER, STAMP)
    tree.add(container, b"one", FRONTIER, STAMP)
    write_snapshots(file, {b"/src": tree})
    assert read_snapshots(file) == {}


def test_a_code_of_a_later_version_is_rejected(file: Path) -> None:
    tree = a_tree()
    tree.codes[1] = 255
    write_snapshots(file, {b"/src": tree})
    assert read_snapshots(file) == {}


def test_a_snapshot_that_is_too_large_is_not_saved(file: Path) -> None:
    tree = TreeSnapshot(bytes(MAX_SNAPSHOT_BYTES))
    tree.add(0, b"src", FRONTIER, STAMP)
    write_snapshots(file, {b"/src": tree})
    assert file.stat().st_size < 100
    assert read_snapshots(file) == {}
