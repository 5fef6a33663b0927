"""Whether a process that is not a child still runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import anyio
import pytest

from rootsd.processes.process_exit import ExitWatch
from support.ledger_harness import HANG_GUARD


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as started:
        yield started
        started.kill()


async def test_the_end_of_a_process_is_noticed(process: subprocess.Popen[bytes]) -> None:
    living = ExitWatch(process.pid)
    assert not living.has_gone()
    process.kill()
    with anyio.fail_after(HANG_GUARD):
        await living.ended()
    assert living.has_gone()
    process.wait()
    assert ExitWatch(process.pid).has_gone()
    living.close()
    assert living.has_gone()
