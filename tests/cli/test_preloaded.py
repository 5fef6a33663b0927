"""Commands forked by `support.preloaded` behave like programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support import preloaded
from support.person import Person, Start


@pytest.mark.parametrize("words", [("--version",), ("ls", "--bad"), ("status",), ("check", "/")])
def test_a_fork_has_the_output_and_status_of_a_program(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    fork, program = (Person(tmp_path / start.name, start=start).run(*words) for start in Start)
    assert (fork.returncode, fork.stdout, fork.stderr) == (
        program.returncode, program.stdout, program.stderr
    )  # fmt: skip


def test_a_daemon_is_a_fork_without_descriptors_of_others_in_its_own_session(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    daemon = Path(f"/proc/{person.daemon_pid()}")
    assert "preloaded" in (daemon / "cmdline").read_text()
    assert os.getsid(int(daemon.name)) != os.getsid(0)
    # The numbers that `preloaded` uses for what is not for the run.
    assert [fd for fd in daemon.glob("fd/*") if int(fd.name) >= 100] == []


def test_a_fork_that_takes_too_long_is_killed(person: Person) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run(["daemon"], person.environment(), timeout_s=0.1)
