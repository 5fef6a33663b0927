"""The lock folder of a client: taken, waited for, and taken over when it is stale."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from rootsd.core.errors import Busy
from rootsd.settings.client_lock import STALE_S, hold_lock_folder


def lock_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def test_the_lock_is_a_folder_beside_the_file_while_it_is_held(tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    link = tmp_path / "link.json"
    file.write_text("{}")
    link.symlink_to(file)
    with hold_lock_folder(link):
        assert lock_of(file).is_dir()
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_a_held_lock_is_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    lock_of(file).mkdir()
    with pytest.raises(Busy), hold_lock_folder(file, wait_s=0):
        pytest.fail("the lock was taken")
    assert lock_of(file).is_dir()


def test_a_release_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    lock_of(file).mkdir()
    release = threading.Timer(0.1, lock_of(file).rmdir)
    release.start()
    with hold_lock_folder(file):
        assert lock_of(file).is_dir()
    release.join()


def test_a_stale_lock_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    lock_of(file).mkdir()
    changed = lock_of(file).stat().st_mtime - 2 * STALE_S
    os.utime(lock_of(file), (changed, changed))
    with hold_lock_folder(file):
        assert lock_of(file).stat().st_mtime > changed
    assert not lock_of(file).exists()
