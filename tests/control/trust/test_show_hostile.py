"""The daemon answers while `show` reads many projects, some of which try to hang or flood a
reader.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.person import Person
from support.repositories import make_repository
from support.sizes import Sizes

pytestmark = pytest.mark.needs("linux")

HANG_GUARD = 600
_GROWTH_KIB = 24 * 1024


def _include(repository: Path, what: Path) -> None:
    with (repository / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {what}\n")


def _hostile(person: Person, large: int) -> dict[str, Path]:
    """Repositories whose configuration is a FIFO or has `large` bytes."""
    os.mkfifo(person.home / "fifo")
    line = b'[a "b"]\n\tc = d\n'
    (person.home / "large").write_bytes(line * (large // len(line)))
    made = {name: person.clone(name) for name in ("behind", "large-behind", "fifo", "large")}
    _include(made["behind"], person.home / "fifo")
    _include(made["large-behind"], person.home / "large")
    for name in ("fifo", "large"):
        (made[name] / ".git" / "config").unlink()
    os.mkfifo(made["fifo"] / ".git" / "config")
    os.link(person.home / "large", made["large"] / ".git" / "config")
    return made


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def _children(pid: int) -> set[str]:
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_many_projects_are_shown_and_hostile_ones_block_nothing(
    person: Person, sizes: Sizes
) -> None:
    count = sizes.pick(test=15, check=500, soak=1_000)
    sample = make_repository(person.home / "sample", files=3)
    for number in range(count):
        shutil.copytree(sample, person.parent / "many" / f"r{number}")
    large = sizes.pick(test=3 * _GROWTH_KIB * 512, check=100_000_000, soak=200_000_000)
    hostile = _hostile(person, large)
    person.rootsd("up", str(person.parent))
    for name in hostile:
        person.wait_until_listed(name, "ls")
    pid = person.daemon_pid()
    helper = _children(pid)
    before = _peak_kib(pid)
    showing = subprocess.Popen(
        [sys.executable, "-m", "rootsd", "show", "*", "--json"], env=person.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    answered = 0
    while showing.poll() is None and answered < 3:
        assert person.names("ls", "--verdict", "approved") == []
        answered += 1
    out, said = showing.communicate(timeout=HANG_GUARD)
    assert showing.returncode == 0, (said, out[-500:])  # errors are JSON, too
    items = {item["name"]: item for item in json.loads(out)["items"]}
    assert len(items) == count + len(hostile)
    assert all(
        item["last_commit"]["summary"] in ("one", "first")
        for name, item in items.items()
        if name not in hostile
    )
    for name in hostile:
        assert items[name]["branch"] == "main"
        assert items[name]["last_commit"] is None
    assert _peak_kib(pid) - before < _GROWTH_KIB
    assert _children(pid) == helper
    assert person.rootsd("status")
