"""Each check of the doctor, with and without a problem."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from rootsd.control import doctor_checks
from rootsd.core.doctor import DoctorFinding, Severity

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
OK, WARNING, ERROR = Severity


def failing(number: int) -> Callable[[bytes], Any]:
    def fail(path: bytes) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


def folder(mode: int = 0o700, uid: int | None = None) -> Callable[[bytes], Any]:
    owner = os.geteuid() if uid is None else uid
    return lambda path: SimpleNamespace(st_mode=stat.S_IFDIR | mode, st_uid=owner)


@pytest.mark.parametrize(
    ("look", "condition", "remedy"),
    [
        (folder(), OK, ""),
        (folder(0o750), ERROR, "chmod 700 /x"),
        (folder(0o500), ERROR, "chmod 700 /x"),
        (folder(uid=os.geteuid() + 1), ERROR, f"sudo chown {os.geteuid()} /x"),
        (failing(errno.ENOENT), WARNING, "rootsd up"),
        (failing(errno.EACCES), ERROR, "ls -ld /x"),
        (lambda path: SimpleNamespace(st_mode=stat.S_IFREG | 0o700), ERROR, "mv /x /x.old"),
    ],
)
def test_a_folder_of_rootsd_must_be_private(
    look: Callable[[bytes], Any], condition: Severity, remedy: str
) -> None:
    found = doctor_checks.check_private_folder("state", b"/x", look)
    assert (found.condition, found.remedy or "") == (condition, remedy)


def test_a_real_folder_is_checked(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert doctor_checks.check_private_folder("state", bytes(tmp_path)).condition is OK
    tmp_path.chmod(0o755)
    assert doctor_checks.check_private_folder("state", bytes(tmp_path)).condition is ERROR


def room(mebibytes: int, inodes: int = 9) -> Callable[[bytes], Any]:
    return lambda path: SimpleNamespace(
        f_bavail=mebibytes, f_frsize=1 << 20, f_files=10, f_favail=inodes
    )


@pytest.mark.parametrize(
    ("look", "condition"),
    [
        (room(5_000), OK),
        (room(63), WARNING),
        (room(3), ERROR),
        (room(5_000, inodes=0), ERROR),
        (failing(errno.EIO), ERROR),
    ],
)
def test_free_space_for_decisions(look: Callable[[bytes], Any], condition: Severity) -> None:
    found = doctor_checks.check_disk_space("disk", b"/x", look)
    assert found.condition is condition
    assert bool(found.remedy) == (condition is not OK)


def test_free_space_of_a_real_disk_is_reported(tmp_path: Path) -> None:
    assert "MiB are free below" in doctor_checks.check_disk_space("disk", bytes(tmp_path)).finding


@pytest.mark.parametrize(
    ("limit", "in_use", "condition", "line"),
    [
        (8_192, 10, OK, ""),
        (8_192, 2_000, WARNING, "fs.inotify.max_user_watches=524288"),
        (524_288, 120_000, WARNING, "fs.inotify.max_user_watches=2097152"),
    ],
)
def test_exhausted_watches_name_the_sysctl_line(
    limit: int, in_use: int, condition: Severity, line: str
) -> None:
    found = doctor_checks.check_watch_limit(in_use, limit)
    assert found.condition is condition
    assert line in (found.remedy or "")
    assert ("sysctl --system" in (found.remedy or "")) == bool(line)


def test_a_system_without_inotify_has_no_limit() -> None:
    assert doctor_checks.check_watch_limit(3, None) == DoctorFinding("watches", OK, "3 in use")


@pytest.mark.parametrize(
    ("newest", "condition"),
    [
        (None, OK),
        (NOON - timedelta(days=1), OK),
        (NOON + timedelta(seconds=30), OK),
        (NOON + timedelta(hours=1), WARNING),
    ],
)
def test_a_clock_that_was_set_back_is_a_finding(
    newest: datetime | None, condition: Severity
) -> None:
    assert doctor_checks.check_clock(NOON, newest).condition is condition


@pytest.mark.parametrize(
    ("word", "offered", "condition", "remedy"),
    [
        ("landlock", 5, OK, ""),
        ("none", 5, WARNING, "rootsd service restart"),
        ("none", 0, WARNING, "lsm="),
    ],
)
def test_a_daemon_that_is_not_confined_is_a_finding(
    word: str, offered: int, condition: Severity, remedy: str
) -> None:
    found = doctor_checks.check_confinement(word, lambda: offered)
    assert found.condition is condition
    assert remedy in (found.remedy or "")


def test_a_hostile_name_cannot_reach_the_terminal() -> None:
    for found in (
        doctor_checks.check_private_folder("state", b"/\x1b[2J", failing(errno.EACCES)),
        doctor_checks.check_disk_space("disk", b"/\x1b[2J", failing(errno.EACCES)),
    ):
        assert (found.finding + (found.remedy or "")).isprintable()
