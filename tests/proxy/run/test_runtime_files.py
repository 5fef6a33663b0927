"""The files of `rootsd run` in the runtime folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.runtime_files import ServerProfileFile, make_empty_folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "run"


def test_the_empty_folder_is_made_with_its_parents(run: Path) -> None:
    folder = make_empty_folder(bytes(run))
    assert folder
    assert make_empty_folder(bytes(run)) == folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o500
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_filled_or_writable_folder_is_not_used(run: Path) -> None:
    first = make_empty_folder(bytes(run))
    assert first
    os.chmod(first, 0o700)
    second = make_empty_folder(bytes(run))
    assert second != first, "it can be written"
    Path(os.fsdecode(first), "x").touch()
    os.chmod(first, 0o500)
    assert make_empty_folder(bytes(run)) == second, "it is not empty"


def test_a_link_is_not_used_as_the_empty_folder(run: Path, tmp_path: Path) -> None:
    first = make_empty_folder(bytes(run))
    assert first
    os.rmdir(first)
    (tmp_path / "empty").mkdir(mode=0o500)
    os.symlink(tmp_path / "empty", first)
    assert make_empty_folder(bytes(run)) != first


def test_without_permission_there_is_no_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert make_empty_folder(bytes(tmp_path / "file" / "run")) is None
    ServerProfileFile(bytes(tmp_path / "file" / "run"), ["s"]).save(ServerProfile.EARLY)


def test_a_profile_is_stored_per_command(run: Path) -> None:
    one, other = (
        ServerProfileFile(bytes(run), ["s", "a b"]),
        ServerProfileFile(bytes(run), ["s", "a", "b"]),
    )
    assert one.load() is ServerProfile.UNKNOWN
    other.save(ServerProfile.SILENT)
    for profile in ServerProfile:
        one.save(profile)
        assert (one.load(), other.load()) == (profile, ServerProfile.SILENT)
    assert len(list((run / "servers").iterdir())) == 2


def test_an_unreadable_profile_is_unknown(run: Path) -> None:
    profiles = ServerProfileFile(bytes(run), ["s"])
    profiles.save(ServerProfile.EARLY)
    (file,) = (run / "servers").iterdir()
    for text in (b"", b"\xff" * 100, b"nonsense"):
        file.write_bytes(text)
        assert profiles.load() is ServerProfile.UNKNOWN
