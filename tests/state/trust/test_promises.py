"""Whatever is done to folders, the daemon and its store: no client is told what was not approved.

The invariant of the contract, after each step of a Hypothesis state machine over the real store
and real folders, against a model of a page (`support/promise.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.keeper import Memory
from support.sizes import Size, Sizes
from support.subjects import OWN_MOUNTS, run_program

pytestmark = pytest.mark.needs("namespaces")
KINDS = 14


def test_no_step_has_a_client_told_of_what_was_not_approved(tmp_path: Path, sizes: Sizes) -> None:
    examples, steps = sizes.pick(test=(6, 30), check=(200, 50), soak=(20_000, 50))
    choice = "random" if sizes.size is Size.SOAK else "fixed"
    words = (str(examples), str(steps), Memory.IDENTITY, choice)
    done = json.loads(run_program(OWN_MOUNTS, "support.trials", *words, folder=tmp_path))
    assert len(done) > (KINDS if sizes.size is not Size.TEST else KINDS // 2)
    sys.stderr.write(f"{sum(done.values())} steps: {done}\n")


def test_the_control_a_program_that_knows_folders_by_their_path_breaks_the_promise(
    tmp_path: Path,
) -> None:
    words = ("30", "30", Memory.PATH, "fixed")
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, "-m", "support.trials", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "AssertionError: told" in done.stderr
