"""Control groups for tests, such as a desktop creates for each program that it starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from support.polling import until


def own_group() -> Path | None:
    """Return the folder of this process's control group (version 2), or None if there is none."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    inside = next((line[3:] for line in lines if line.startswith("0::")), None)
    for mount in mounts:
        fields = mount.split()
        if fields[fields.index("-") + 1] == "cgroup2" and inside is not None:
            return Path(fields[4] + inside)
    return None


def can_make_groups() -> bool:
    """Return whether this process may create control groups below its own and move processes
    there.
    """
    group = own_group()
    if group is None or not os.access(group, os.W_OK):
        return False
    with suppress(OSError), made_group():
        return True
    return False


@contextmanager
def made_users_scope() -> Iterator[Path]:
    """Create a scope as systemd makes one for a login, or for a program of a desktop."""
    own = own_group()
    assert own is not None
    user = own / f"user-{os.getpid()}.slice"
    user.mkdir()
    try:
        with made_group(user) as scope:
            yield scope
    finally:
        user.rmdir()


@contextmanager
def made_group(above: Path | None = None) -> Iterator[Path]:
    """Create a control group. At the end, kill its processes and remove it."""
    above = above or own_group()
    assert above is not None
    group = Path(mkdtemp(prefix="app-test-", suffix=".scope", dir=above))
    try:
        yield group
    finally:
        members = group / "cgroup.procs"

        def is_empty() -> bool:
            pids = members.read_text().split()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            return not pids

        until(is_empty)
        group.rmdir()
