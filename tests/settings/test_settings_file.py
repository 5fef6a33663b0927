"""The settings file of a client: complete, private as before, and without a lost write of the
client.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.settings import settings_file
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable
from rootsd.sync.reconcile import NOTHING_OWN, plan_file
from rootsd.sync.targets import EntryKind, ListEntry

DENIAL = ListEntry(("permissions", "deny"), "Read(//x/**)", EntryKind.DENIAL)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "settings.json"
    file.write_text('{"a": 1}\n')
    return file


def denied(text: str | None) -> str | None:
    return plan_file(text, [DENIAL], NOTHING_OWN).text


def left(file: Path) -> list[str]:
    return sorted(each.name for each in file.parent.iterdir() if each != file)


def test_an_update_keeps_the_mode_and_leaves_nothing_beside(file: Path) -> None:
    file.chmod(0o640)
    SettingsFile(file).update(denied)
    assert json.loads(file.read_text()) == {"a": 1, "permissions": {"deny": ["Read(//x/**)"]}}
    assert (file.stat().st_mode & 0o777, left(file)) == (0o640, [])


def test_without_a_change_the_file_is_not_touched(file: Path) -> None:
    before = file.stat()
    SettingsFile(file).update(lambda text: text)
    assert file.stat() == before


def test_a_missing_file_is_made_private_and_can_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    SettingsFile(file).update(denied)
    assert (file.stat().st_mode & 0o777, left(file)) == (0o600, [])
    SettingsFile(file).update(lambda _: None)
    assert not file.exists()
    assert left(file) == []


def during(file: Path, *texts: str) -> Callable[[str | None], str | None]:
    """An edit during which the client writes its own file, once for each of `texts`."""
    coming = list(texts)

    def edit(text: str | None) -> str | None:
        if coming:
            new = file.with_name("client.new")
            new.write_text(coming.pop(0))
            new.replace(file)
        return denied(text)

    return edit


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_concurrent_write_of_the_client_is_kept(file: Path, times: int) -> None:
    texts = [json.dumps({"by": "client", "n": number}) for number in range(times)]
    SettingsFile(file).update(during(file, *texts))
    assert json.loads(file.read_text()) == {
        "by": "client", "n": times - 1, "permissions": {"deny": ["Read(//x/**)"]},
    }  # fmt: skip
    assert left(file) == []


def test_a_client_that_makes_or_removes_the_file_meanwhile_is_not_overruled(
    tmp_path: Path,
) -> None:
    file = tmp_path / "settings.json"
    SettingsFile(file).update(during(file, '{"by": "client"}'))
    assert json.loads(file.read_text())["by"] == "client"

    def remove_once(text: str | None) -> str | None:
        if text is not None and "client" in text:
            file.unlink()
        return denied(text)

    file.write_text('{"by": "client"}')
    SettingsFile(file).update(remove_once)
    assert json.loads(file.read_text()) == {"permissions": {"deny": ["Read(//x/**)"]}}


def test_a_full_disk_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(settings_file, "sync", no_room)
    with pytest.raises(SettingsUnusable, match="No space left"):
        SettingsFile(file).update(denied)
    assert (file.read_text(), left(file)) == ('{"a": 1}\n', [])


@pytest.mark.parametrize("obstacle", ["another schema", "a full disk"])
@pytest.mark.parametrize("newest", [None, '{"by": "client", "n": 2}'])
def test_a_newer_text_stays_if_the_edit_of_it_fails(
    file: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str, newest: str | None
) -> None:
    """The client writes when ours is ready, and perhaps again when ours is there."""
    write, swap, swaps = settings_file._write_beside, settings_file._swap, [0]
    newer = '{"permissions": 7}' if obstacle == "another schema" else '{"by": "client"}'

    def write_too_late(there: Path, text: str, mode: int) -> Path:
        if swaps[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        new = write(there, text, mode)
        file.write_text(newer)
        return new

    def swap_and_write(new: Path, old: Path) -> None:
        swap(new, old)
        swaps[0] += 1
        if swaps[0] == 1 and newest is not None:
            file.write_text(newest)

    monkeypatch.setattr(settings_file, "_write_beside", write_too_late)
    monkeypatch.setattr(settings_file, "_swap", swap_and_write)
    with pytest.raises((SettingsUnusable, NotEditable)):
        SettingsFile(file).update(denied)
    assert (file.read_text(), left(file)) == (newest or newer, [])
    assert swaps[0] == (2 if newest is None else 3)


def _read_only(file: Path) -> None:
    file.chmod(0o444)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _latin1(file: Path) -> None:
    file.write_bytes(b'{"a": "\xe9"}')


def _huge(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(settings_file.MAX_BYTES + 1)


@pytest.mark.parametrize("spoil", [_read_only, _folder, _fifo, _latin1, _huge])
def test_an_unusable_file_is_left_alone(file: Path, spoil: Callable[[Path], None]) -> None:
    spoil(file)
    with pytest.raises(SettingsUnusable):
        SettingsFile(file).update(denied)
    assert left(file) == []


def test_a_symlink_or_a_repository_needs_consent(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    (dotfiles / ".git" / "refs").mkdir(parents=True)
    real, link = dotfiles / "settings.json", tmp_path / "settings.json"
    real.write_text("{}")
    link.symlink_to(real)
    for path in (real, link):
        with pytest.raises(SettingsUnusable):
            SettingsFile(path).update(denied)
        assert real.read_text() == "{}"
    SettingsFile(link, is_accepted=True).update(denied)
    assert link.is_symlink()
    assert "deny" in real.read_text()


def test_an_empty_marker_is_no_repository(file: Path) -> None:
    marker = file.parent / ".git"
    marker.mkdir()
    SettingsFile(file).update(denied)
    marker.rmdir()
    marker.write_text("gitdir: /src/api/.git/worktrees/fix\n")
    with pytest.raises(SettingsUnusable):
        SettingsFile(file).update(denied)


def test_without_an_exchange_of_files_nothing_else_changes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    SettingsFile(file).update(during(file, '{"by": "client"}'))
    assert json.loads(file.read_text())["by"] == "client"
    assert left(file) == []
