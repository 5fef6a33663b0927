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

from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.landlock import AttachedGuarantee, attached_guarantee
from rootsd.wall.kernel.probe import LANDLOCK_FOR_REVOCATION, Probe, problem_of
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


def test_without_landlock_it_runs_with_kill_and_says_what_is_open(home: Path) -> None:
    done = confine(home, {f"{LANDLOCK_CREATE}": errno.ENOSYS}, "--on-revoke", "kill")
    assert _STARTED in done.stdout, done.stderr
    assert "a revoke also ends every program that works in the folder" in done.stderr


@pytest.mark.parametrize("offered", range(8))
def test_each_version_of_landlock_has_its_guarantee(
    offered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: offered)
    guarantee = attached_guarantee()
    assert guarantee <= offered
    assert guarantee == max(each for each in AttachedGuarantee if each <= offered)
    problem = problem_of(Probe(0, offered, 0, overlay=True, restricts=False))
    assert (problem is None) is (offered >= LANDLOCK_FOR_REVOCATION)
