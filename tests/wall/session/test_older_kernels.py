"""`rootsd confine` on kernels that lack something: it explains, and starts nothing.

A filter of seccomp gives the answers of such a kernel to real system calls.
"""

from __future__ import annotations

import errno
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.wall.kernel.warden import WallSetupFailed
from rootsd.wall.session.engines import NamespaceWall
from support.older_kernel import (
    LANDLOCK_CREATE,
    MOUNT,
    MOUNT_SETATTR,
    MOVE_MOUNT,
    OPEN_TREE,
    OPENAT2,
    SET_SECCOMP,
    UNSHARE,
    words_for,
)

pytestmark = [pytest.mark.needs("wall"), pytest.mark.usefixtures("publisher")]

_HANG_GUARD_S = 120
_MACHINE = platform.machine()
_STARTED = "the program has started"


def confine(
    home: Path, answers: dict[str, int], *options: str
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "rootsd", "confine", *options, "--", "echo", _STARTED]
    return subprocess.run(
        words_for(answers, words), capture_output=True, text=True, check=False, cwd=home,
        timeout=_HANG_GUARD_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "reason", "remedy"),
    [
        ({f"{UNSHARE[_MACHINE]}": errno.ENOSPC}, "no more user namespaces", "sudo sysctl user."),
        ({f"{UNSHARE[_MACHINE]}": errno.EPERM}, "forbids user namespaces", "rootsd doctor"),
        ({f"{UNSHARE[_MACHINE]}": errno.ENOSYS}, "too old", "uname -r"),
        # AppArmor lets a program make a user namespace, and refuses the capabilities there.
        ({f"{MOUNT[_MACHINE]}": errno.EACCES}, "forbids user namespaces", "rootsd doctor"),
        ({f"{OPEN_TREE}": errno.ENOSYS}, "too old", "uname -r"),
        ({f"{MOVE_MOUNT}": errno.ENOSYS}, "too old", "uname -r"),
        ({f"{OPENAT2}": errno.ENOSYS}, "too old", "uname -r"),
        ({f"{MOUNT_SETATTR}": errno.ENOSYS}, "too old", "uname -r"),
        ({f"{LANDLOCK_CREATE}": errno.ENOSYS}, "no Landlock 2", "--on-revoke kill"),
        ({f"{LANDLOCK_CREATE}": errno.EOPNOTSUPP}, "no Landlock 2", "--on-revoke kill"),
        ({f"prctl={SET_SECCOMP}": errno.EINVAL}, "seccomp", "rootsd doctor"),
    ],
    ids=str,
)
def test_a_kernel_that_lacks_something_gets_a_reason_and_one_command(
    home: Path, answers: dict[str, int], reason: str, remedy: str
) -> None:
    done = confine(home, answers)
    assert done.returncode != 0
    assert _STARTED not in done.stdout
    assert reason in done.stderr
    assert f"try: {remedy}" in done.stderr


def test_on_this_kernel_the_program_starts(home: Path) -> None:
    """The control."""
    done = confine(home, {"999": errno.ENOSYS})
    assert _STARTED in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("switch", "who"), [("1\n", "AppArmor"), ("0\n", "the system"), (None, "the system")]
)
def test_a_start_that_apparmor_forbids_names_it_and_static(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str | None, who: str
) -> None:
    file = tmp_path / "apparmor_restrict_unprivileged_userns"
    if switch is not None:
        file.write_text(switch)
    monkeypatch.setattr("rootsd.wall.kernel.probe._APPARMOR_SWITCH", str(file))
    refused = NamespaceWall().explain(WallSetupFailed(errno.EACCES, "mount"))
    assert str(refused).startswith(f"{who} forbids user namespaces to this program (mount)")
    assert "with --static it works" in str(refused)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_static_says_which_landlock_it_needs(home: Path, number: int) -> None:
    done = confine(home, {f"{LANDLOCK_CREATE}": number}, "--static")
    assert _STARTED not in done.stdout
    assert "--static needs Landlock 3 (Linux 6.2), and this kernel has none" in done.stderr
    assert "try: uname -r" in done.stderr


def test_without_landlock_it_runs_with_kill_and_says_what_is_open(home: Path) -> None:
    done = confine(home, {f"{LANDLOCK_CREATE}": errno.ENOSYS}, "--on-revoke", "kill")
    assert _STARTED in done.stdout, done.stderr
    assert "a revoke also ends every program that works in the folder" in done.stderr


@pytest.mark.parametrize("call", [OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR])
def test_doctor_says_that_a_kernel_without_these_calls_is_too_old(home: Path, call: int) -> None:
    answers = {f"{call}": errno.ENOSYS, f"{LANDLOCK_CREATE}": errno.ENOSYS}
    program = "from rootsd.wall.kernel.probe import *; print(problem_of(probe()))"
    done = subprocess.run(
        words_for(answers, [sys.executable, "-c", program]), capture_output=True, text=True,
        check=True, cwd=home, timeout=_HANG_GUARD_S,
    )  # fmt: skip
    assert "too old for the wall: Linux 5.12" in done.stdout
