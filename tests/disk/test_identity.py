"""A folder is distinguished from its replacement, and a gone folder from an unreachable one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.model import GitEntry
from rootsd.disk import identity
from rootsd.disk.file_systems import FileSystem, FolderFacts
from rootsd.disk.identity import PathAbsence, classify_absence, file_system_id, identify
from rootsd.disk.inode import StatxFacts
from support.repositories import raw
from support.subprocesses import UNPRIVILEGED, run_python


def test_a_folder_keeps_its_identity_after_a_move(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    before = identify(raw(tmp_path / "a"))
    (tmp_path / "a" / "file").touch()
    assert identify(raw(tmp_path / "a")).same_as(before)
    (tmp_path / "a").rename(tmp_path / "b")
    assert identify(raw(tmp_path / "b")).same_as(before)
    assert before.owner == os.getuid()


def test_a_folder_deleted_and_created_again_has_another_identity(tmp_path: Path) -> None:
    for _ in range(50):
        (tmp_path / "a").mkdir()
        before = identify(raw(tmp_path / "a"))
        shutil.rmtree(tmp_path / "a")
        (tmp_path / "a").mkdir()
        assert not identify(raw(tmp_path / "a")).same_as(before)
        shutil.rmtree(tmp_path / "a")


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    ("counts", "has_handle", "lasts", "known"),
    [
        (FolderFacts.ALL, True, True, {"inode", "handle", "born_ns"}),
        (FolderFacts.ALL, False, True, {"inode", "born_ns"}),
        (FolderFacts.HANDLE, True, True, {"handle"}),
        (FolderFacts.HANDLE, False, True, {"mount"}),
        (FolderFacts.BIRTH, True, True, {"born_ns"}),
        (FolderFacts.HANDLE_FIRST, True, True, {"handle", "born_ns"}),
        (FolderFacts.HANDLE_FIRST, False, True, {"inode", "born_ns"}),
        (FolderFacts.ALL, True, False, {"inode", "handle", "born_ns", "mount"}),
    ],
)
def test_the_facts_that_count_on_a_file_system_make_the_identity(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counts: FolderFacts,
    has_handle: bool,
    lasts: bool,
    known: set[str],
) -> None:
    system = FileSystem(b"x", lasts=lasts, facts=counts)
    facts = StatxFacts(born_ns=5, mount_number=7)
    monkeypatch.setattr(identity, "file_system_of", lambda *_: system)
    monkeypatch.setattr(identity, "statx_facts", lambda *_: facts)
    monkeypatch.setattr(identity, "file_handle", lambda _: b"h" if has_handle else None)
    seen = identify(raw(tmp_path))
    assert {
        name for name in ("inode", "handle", "born_ns", "mount") if getattr(seen, name)
    } == known


def test_a_link_and_a_file_have_no_identity(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            identify(raw(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        identify(raw(tmp_path / "none"))


def test_the_entry_git_belongs_to_the_identity(tmp_path: Path) -> None:
    folder, path = tmp_path / "a", raw(tmp_path / "a")
    folder.mkdir()
    assert identify(path).git is GitEntry.NONE
    entry = folder / ".git"
    entry.mkdir()
    assert identify(path).git is GitEntry.FOLDER
    entry.rmdir()
    for target in (None, tmp_path / "b", tmp_path / "c"):
        if target is not None:
            target.mkdir()
        entry.write_text(f"gitdir: {target or 'nowhere'}\n")
        seen = identify(path)
        assert seen.git is GitEntry.FILE
        assert seen.git_target == (
            replace(identify(raw(target)), git=None) if target is not None else None
        )
    entry.unlink()
    entry.symlink_to(tmp_path / "b")
    seen = identify(path)
    assert seen.git is GitEntry.FILE
    assert seen.git_target == replace(identify(raw(tmp_path / "b")), git=None)
    (tmp_path / "b").rmdir()
    assert identify(path).git_target is None


@pytest.mark.parametrize(
    "text", ["", "gitdir: \0", "gitdir:", "x" * 9000, "gitdir: " + "a/" * 3000]
)
def test_a_git_file_that_names_nothing_leads_nowhere(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    seen = identify(raw(tmp_path))
    assert (seen.git, seen.git_target) == (GitEntry.FILE, None)


def test_an_absence_is_proved_only_by_a_folder_above_on_the_same_file_system(
    tmp_path: Path,
) -> None:
    here, top, path = file_system_id(raw(tmp_path)), raw(tmp_path), raw(tmp_path / "a")
    (tmp_path / "file").touch()
    gone, unreachable = PathAbsence.GONE, PathAbsence.UNREACHABLE
    for seen, below, on, expected in (
        (top, None, None, None),
        (path, None, None, gone),
        (path + b"/b", top, None, gone),
        (raw(tmp_path / "file"), None, None, gone),
        (path + b"/b", path, None, unreachable),
        (path + b"/b", None, None, unreachable),
        (path, top, here, gone),
        (path, top, here + b"another", unreachable),
        (path + b"/b", top, here, gone),
        (raw(tmp_path / "file") + b"/b", top, here, gone),
        (raw(tmp_path / "file") + b"/b", raw(tmp_path / "file"), None, unreachable),
        (b"/no such folder", b"/", file_system_id(b"/"), gone),
        (top + b"/" + b"x" * 300, top, None, unreachable),
    ):
        assert classify_absence(seen, below, on) is expected, (seen, below, on)


def test_identities_on_two_file_systems_differ(tmp_path: Path) -> None:
    identity = identify(raw(tmp_path))
    assert not identity.same_as(replace(identity, filesystem=b"other"))


ABSENCE = """
import os, sys
from rootsd.disk.identity import classify_absence
print(classify_absence(os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), None).value)
"""


@pytest.mark.needs("linux", "root", "setpriv")
def test_a_folder_without_permission_is_unreachable(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "a").mkdir(parents=True)
    hidden.chmod(0)
    output = run_python(UNPRIVILEGED, ABSENCE, hidden / "a", tmp_path)
    assert output == ("unreachable\n", "")
