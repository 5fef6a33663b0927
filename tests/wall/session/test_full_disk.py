"""The programs behind a wall wait while the disk is almost full, and lose nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from rootsd.core.mount_plan import ConfinedRoot
from support.polling import until
from support.roots_publisher import RootsPublisher
from support.wall_kills import programs_behind_wall

pytestmark = [pytest.mark.needs("wall")]

# The disk is full as long as a file is there.
_FRONT = """
import os, sys
from rootsd.wall.kernel import disk_room
from rootsd.wall.session import main
disk_room.DiskRoom._left = lambda self: 0 if os.path.exists({!r}) else 1 << 40
disk_room._LONGEST_S = 0.1
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.fixture(params=[(), ("--static",)])
def front(
    home: Path, root: ConfinedRoot, tmp_path: Path, publisher: RootsPublisher,
    request: pytest.FixtureRequest,
) -> Iterator[subprocess.Popen[str]]:  # fmt: skip
    del root, publisher
    words = ["--name", "victim", "--all", *request.param, "--", "cat"]
    text, pipe = _FRONT.format(str(tmp_path / "full")), subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", text, *words], cwd=home, text=True, bufsize=1,
        stdin=pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    with process:
        yield process
        process.kill()


def say(front: subprocess.Popen[str], line: str) -> None:
    assert front.stdin is not None
    front.stdin.write(line)


def next_line(output: IO[str] | None, word: str = "") -> str:
    assert output is not None
    return next(line for line in output if word in line)


def until_stopped(front: subprocess.Popen[str]) -> None:
    assert "the disk has only 0 MiB left, so victim waits" in next_line(front.stderr, "waits")
    until(lambda: programs_behind_wall(front.pid) == {psutil.STATUS_STOPPED})


def test_a_program_continues_when_there_is_room(
    front: subprocess.Popen[str], tmp_path: Path
) -> None:
    say(front, "one\n")
    assert next_line(front.stdout) == "one\n"
    (tmp_path / "full").touch()
    until_stopped(front)
    say(front, "two\n")
    (tmp_path / "full").unlink()
    assert next_line(front.stdout) == "two\n"
    assert next_line(front.stderr, "victim continues")


def test_a_stopped_program_can_be_ended(front: subprocess.Popen[str], tmp_path: Path) -> None:
    say(front, "one\n")
    assert next_line(front.stdout) == "one\n"
    (tmp_path / "full").touch()
    until_stopped(front)
    front.send_signal(signal.SIGTERM)
    assert front.wait() != 0
