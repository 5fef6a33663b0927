"""The settings file of a client: complete, private as before, and without a lost write of the
client.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.settings import settings_file
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable
from rootsd.sync.entries import NOTHING_OWN, EntryKind, ListEntry, OwnEntries
from rootsd.sync.reconcile import plan_file
from support.sizes import Sizes

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
    after = file.stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


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


def rename_over(file: Path, text: str) -> None:
    """Write `file` as most clients do."""
    new = file.with_name("client.new")
    new.write_text(text)
    new.replace(file)


def without_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the system has and others have not."""
    monkeypatch.delattr(fcntl, "F_SETLEASE")


LEASES = pytest.mark.parametrize("leases", [True, False])


@LEASES
@pytest.mark.parametrize("obstacle", ["another schema", "a full disk"])
@pytest.mark.parametrize("newest", [None, '{"by": "client", "n": 2}'])
def test_a_newer_text_stays_if_the_edit_of_it_fails(
    file: Path, monkeypatch: pytest.MonkeyPatch, leases: bool, obstacle: str, newest: str | None
) -> None:
    """The client writes when ours is ready, and perhaps again when ours is there."""
    if not leases:
        without_leases(monkeypatch)
    write, swap, swaps = settings_file._write_beside, settings_file._swap, [0]
    newer = '{"permissions": 7}' if obstacle == "another schema" else '{"by": "client"}'

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_too_late(there: Path, text: str, mode: int) -> Path:
        if swaps[0]:
            no_room()
        new = write(there, text, mode)
        rename_over(file, newer)
        return new

    def swap_and_write(new: Path, old: Path) -> None:
        swap(new, old)
        swaps[0] += 1
        if swaps[0] == 1 and newest is not None:
            rename_over(file, newest)

    monkeypatch.setattr(settings_file, "_write_beside", write_too_late)
    monkeypatch.setattr(settings_file, "_swap", swap_and_write)
    if obstacle == "a full disk":
        monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises((SettingsUnusable, NotEditable)):
        SettingsFile(file).update(denied)
    assert (file.read_text(), left(file)) == (newest or newer, [])


@LEASES
def test_who_reads_during_an_edit_gets_no_text_that_was_made_from_an_old_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, leases: bool
) -> None:
    """The control: a client that can read ours at once loses what it wrote last."""
    if not leases:
        without_leases(monkeypatch)
    swap, read, opened = settings_file._swap, [""], threading.Event()

    def look() -> None:
        with file.open() as stream:
            read[0] = stream.read()
            opened.set()

    reader = threading.Thread(target=look)

    def write_then_swap_then_look(new: Path, old: Path) -> None:
        if reader.ident is None:
            rename_over(file, '{"by": "client"}')
            swap(new, old)
            reader.start()
            opened.wait(0.3)
        else:
            swap(new, old)

    monkeypatch.setattr(settings_file, "_swap", write_then_swap_then_look)
    SettingsFile(file).update(denied)
    reader.join(60)
    assert ("by" in json.loads(read[0])) is leases
    assert json.loads(file.read_text())["by"] == "client"
    assert left(file) == []


@LEASES
def test_a_client_that_writes_in_the_old_file_during_an_edit_loses_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, leases: bool
) -> None:
    """The control: without leases, its text ends in a file that is removed."""
    if not leases:
        without_leases(monkeypatch)
    swap, write = settings_file._swap, settings_file._write_beside
    writers: list[threading.Timer] = []
    client: list[int] = []

    def open_too_late(there: Path, text: str, mode: int) -> Path:
        new = write(there, text, mode)
        client.append(os.open(file, os.O_WRONLY))
        return new

    def finish() -> None:
        os.pwrite(client[0], b'{"by": "client"}', 0)
        os.close(client[0])

    def swap_then_write(new: Path, old: Path) -> None:
        swap(new, old)
        if not writers:
            writers.append(threading.Timer(0.1, finish))
            writers[0].start()

    monkeypatch.setattr(settings_file, "_write_beside", open_too_late)
    monkeypatch.setattr(settings_file, "_swap", swap_then_write)
    SettingsFile(file).update(denied)
    writers[0].join(60)
    assert ("by" in json.loads(file.read_text())) is leases
    assert "permissions" in json.loads(file.read_text())
    assert left(file) == []


def test_a_client_that_waits_to_write_in_the_old_file_loses_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the old file before the exchange, and opens it afterwards."""
    wait, old_file = settings_file._OpenFile.keep_writers_waiting, file.with_name("old")
    writers: list[threading.Thread] = []
    os.link(file, old_file)  # stands for a path that the kernel has looked up

    def write() -> None:
        old_file.write_text('{"by": "client"}')

    def wait_then_write(found: settings_file._OpenFile) -> None:
        wait(found)
        if found.is_at(old_file) and not found.is_at(file) and not writers:
            writers.append(threading.Thread(target=write))
            writers[0].start()
            while found.is_whole():
                threading.Event().wait(0.001)

    monkeypatch.setattr(settings_file._OpenFile, "keep_writers_waiting", wait_then_write)
    SettingsFile(file).update(denied)
    writers[0].join(60)
    assert set(json.loads(file.read_text())) == {"by", "permissions"}
    assert left(file) == ["old"]


CLIENT = """
import json, os, sys
path, how, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
for number in range(count):
    with open(path) as file:
        value = json.load(file)
    value[f"k{number}"] = number
    written = path if how == "in place" else path + ".client"
    with open(written, "w") as file:
        file.write(json.dumps(value))
    if written != path:
        os.replace(written, path)
"""


@pytest.mark.parametrize("how", ["in place", "rename"])
def test_a_client_that_rereads_and_rewrites_all_the_time_loses_no_key(
    file: Path, how: str, sizes: Sizes
) -> None:
    count = sizes.pick(test=150, check=400, soak=1_200)
    words = (sys.executable, "-c", CLIENT, str(file), how, str(count))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()
        edits = 0
        while client.poll() is None:
            SettingsFile(file).update(toggled)
            edits += 1
    assert client.returncode == 0
    assert set(json.loads(file.read_text())) >= {f"k{number}" for number in range(count)}
    assert edits > 0


def toggled(text: str | None) -> str | None:
    """Add the denial, or remove it."""
    with_it = denied(text)
    return plan_file(text, [], OwnEntries((DENIAL,))).text if with_it == text else with_it


def test_a_program_that_keeps_writing_in_the_file_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_file, "_WRITER_WAIT_S", 0.01)
    with file.open("a"), pytest.raises(SettingsUnusable, match="keeps writing"):
        SettingsFile(file).update(denied)
    assert (file.read_text(), left(file)) == ('{"a": 1}\n', [])


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
