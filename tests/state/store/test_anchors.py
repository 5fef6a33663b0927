"""The head anchor survives torn writes and never names another head."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rootsd.core.history import ChainHead
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import anchors as anchor_module
from rootsd.state.store.anchors import HEAD_NAME, SLOT_SPACING, FirstAnchor


def _head(seq: int) -> ChainHead:
    return ChainHead(seq, hashlib.sha256(b"%d" % seq).digest())


def _read(folder: Path) -> ChainHead | None:
    with closing(FirstAnchor.open(folder)) as anchor:
        return anchor.head


def _write(folder: Path, *heads: ChainHead) -> None:
    with closing(FirstAnchor.open(folder)) as anchor:
        for head in heads:
            anchor.write(head)


def test_a_new_anchor_is_empty_and_the_last_head_written_is_read_back(tmp_path: Path) -> None:
    assert _read(tmp_path) is None
    assert (tmp_path / HEAD_NAME).stat().st_mode & 0o777 == 0o600
    for seq in range(1, 6):
        _write(tmp_path, _head(seq))
        assert _read(tmp_path) == _head(seq)
    for last in (8, 3):  # also if it is lower
        _write(tmp_path, _head(900), _head(901), _head(last))
        assert _read(tmp_path) == _head(last)


def test_the_file_gets_its_full_size_when_it_is_created(tmp_path: Path) -> None:
    _read(tmp_path)
    before = (tmp_path / HEAD_NAME).stat()
    _write(tmp_path, *map(_head, range(9)))
    now = (tmp_path / HEAD_NAME).stat()
    assert now.st_size == 2 * SLOT_SPACING
    assert (now.st_blocks, now.st_size, now.st_ino) == (
        before.st_blocks,
        before.st_size,
        before.st_ino,
    )


@pytest.mark.parametrize("torn_at", range(0, 81, 8))
def test_a_torn_write_leaves_the_head_before_it(tmp_path: Path, torn_at: int) -> None:
    _write(tmp_path, _head(1), _head(2))
    before = (tmp_path / HEAD_NAME).read_bytes()
    _write(tmp_path, _head(3))
    whole = (tmp_path / HEAD_NAME).read_bytes()
    changed = [at for at in range(len(whole)) if whole[at] != before[at]]
    cut = changed[0] // SLOT_SPACING * SLOT_SPACING + torn_at
    (tmp_path / HEAD_NAME).write_bytes(whole[:cut] + before[cut:])
    assert _read(tmp_path) in ({_head(2)} if cut < changed[-1] else {_head(3)})


def test_no_flipped_bit_gives_another_head(tmp_path: Path) -> None:
    _write(tmp_path, _head(1), _head(2))
    good = (tmp_path / HEAD_NAME).read_bytes()
    outcomes = set()
    for at in [*range(88), *range(SLOT_SPACING, SLOT_SPACING + 88)]:
        damaged = bytearray(good)
        damaged[at] ^= 1 << at % 8
        (tmp_path / HEAD_NAME).write_bytes(damaged)
        outcomes.add(_read(tmp_path))
    assert outcomes == {_head(1), _head(2)}


@pytest.mark.parametrize("damaged", [b"\xff" * 2 * SLOT_SPACING, bytes(10)])
def test_with_both_slots_damaged_the_anchor_is_empty_and_works_again(
    tmp_path: Path, damaged: bytes
) -> None:
    _write(tmp_path, _head(1), _head(2))
    (tmp_path / HEAD_NAME).write_bytes(damaged)
    assert _read(tmp_path) is None
    assert (tmp_path / HEAD_NAME).stat().st_size == 2 * SLOT_SPACING
    _write(tmp_path, _head(3))
    assert _read(tmp_path) == _head(3)


def test_a_kill_before_the_name_is_synced_leaves_a_file_without_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(anchor_module, "sync_path", killed)
    with pytest.raises(KeyboardInterrupt):
        FirstAnchor.open(tmp_path)
    assert (tmp_path / HEAD_NAME).stat().st_size == 0  # so the next start syncs the name


@contextmanager
def _failing_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(anchor_module, "sync", fail)
        yield


def test_after_a_failed_write_the_next_goes_to_the_same_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, _head(1))
    with closing(FirstAnchor.open(tmp_path)) as anchor:
        anchor.write(_head(2))
        for seq in (3, 4, 5):  # the slot of head 2 must never be at risk
            with _failing_sync(monkeypatch), pytest.raises(NotPrivate, match="Input/output"):
                anchor.write(_head(seq))
            assert anchor.head == _head(2)
            slots = (tmp_path / HEAD_NAME).read_bytes()
            assert slots.count(_head(2).hash) == 1
        anchor.write(_head(6))
    assert _read(tmp_path) == _head(6)
