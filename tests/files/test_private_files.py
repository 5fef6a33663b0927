"""Folders and files that other users can reach are refused."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.files.private_files import (
    NotPrivate,
    ensure_private_folder,
    open_private_file,
    read_private_file,
    replace_private_file,
    sync,
    sync_path,
    unusable_error,
)

OTHER_USER = 12345


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_created_folder_is_private_with_any_umask(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        for _ in range(2):
            ensure_private_folder(tmp_path / "above" / "folder")
    finally:
        os.umask(previous)
    assert _mode(tmp_path / "above") == _mode(tmp_path / "above" / "folder") == 0o700


def test_a_folder_that_others_may_enter_is_refused_and_the_error_says_what_to_type(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(NotPrivate, match="open to other users") as caught:
        ensure_private_folder(tmp_path)
    assert caught.value.remedy == f"chmod 700 {tmp_path}"


def test_a_link_or_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    with pytest.raises(NotPrivate, match="not a folder"):
        ensure_private_folder(tmp_path / "link")
    for name in ("file", "file/below"):
        with pytest.raises(NotPrivate):
            ensure_private_folder(tmp_path / name)


@pytest.mark.needs("root")
def test_a_folder_or_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "file").touch()
    for theirs in (tmp_path / "theirs", tmp_path / "file"):
        os.chown(theirs, OTHER_USER, OTHER_USER)
    with pytest.raises(NotPrivate, match=f"belongs to user {OTHER_USER}"):
        ensure_private_folder(tmp_path / "theirs")
    with pytest.raises(NotPrivate, match="not a file of yours"):
        open_private_file(tmp_path / "file")


def test_a_file_is_created_private_and_an_open_one_is_made_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    previous = os.umask(0)
    try:
        os.close(open_private_file(file))
    finally:
        os.umask(previous)
    assert _mode(file) == 0o600
    file.chmod(0o644)
    os.close(open_private_file(file))
    assert _mode(file) == 0o600


def test_a_link_is_not_followed_and_a_fifo_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(NotPrivate):
            open_private_file(tmp_path / name)


def test_a_file_is_replaced_in_one_step_and_stays_private(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    for content in (b"1", b"longer", b"2"):
        before = file.stat().st_ino if file.exists() else None
        replace_private_file(file, content)
        assert read_private_file(file, 100) == content
        assert (_mode(file), os.listdir(tmp_path)) == (0o600, [file.name])
        assert file.stat().st_ino != before
    assert read_private_file(file, 0) == b""


def test_a_replacement_that_fails_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    replace_private_file(file, b"old")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("rootsd.files.private_files.sync", full)
    with pytest.raises(NotPrivate, match="No space left"):
        replace_private_file(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


def test_a_written_file_can_be_synced(tmp_path: Path) -> None:
    fd = open_private_file(tmp_path / "file")
    os.write(fd, b"x")
    sync(fd)
    os.close(fd)
    sync_path(tmp_path / "file")
    sync_path(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_path(tmp_path / "none")


def test_an_error_escapes_the_path_and_names_a_link() -> None:
    error = unusable_error(Path("/a/\x1b[31m"), OSError(28, "No space left on device"))
    assert "\x1b" not in error.message
    assert "No space left on device" in error.message
    loop = OSError(errno.ELOOP, "Too many levels of symbolic links")
    error = unusable_error(Path("/a/head"), loop)
    assert (error.message, error.remedy) == ("/a/head is a link", "mv /a/head /a/head.old")


UNPRIVILEGED = """
import sys
from pathlib import Path
from rootsd.core.errors import RootsdError
from rootsd.files.private_files import ensure_private_folder

for name in sys.argv[1:]:
    try:
        ensure_private_folder(Path(name))
    except RootsdError as error:
        print(error.message, "|", error.remedy)
"""


@pytest.mark.needs("setpriv")
def test_a_folder_without_permission_is_refused_and_the_error_says_what_to_type(
    tmp_path: Path,
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    # Root may write everywhere; without its capabilities it is a user like any other.
    unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    done = subprocess.run(
        [*unprivileged, sys.executable, "-c", UNPRIVILEGED, locked, locked / "below"],
        capture_output=True,
        text=True,
        check=True,
    )
    refused, not_made = done.stdout.splitlines()
    assert refused == f"{locked} is not writable | chmod 700 {locked}"
    assert not_made.startswith(f"{locked / 'below'} cannot be used: Permission denied | ")
