"""After any change of folders, daemon, and store, no client gets a folder that was not approved.

A Hypothesis state machine over the real store and real folders checks this invariant of the
contract after each step, against the model in `support/approval_model.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.ledger_process import Memory
from support.sizes import Size, Sizes
from support.subprocesses import OWN_MOUNTS, run_program

pytestmark = pytest.mark.needs("namespaces")
KINDS = 14


def test_no_step_publishes_an_unapproved_folder(tmp_path: Path, sizes: Sizes) -> None:
    examples, steps = sizes.pick(test=(6, 30), check=(100, 50), soak=(300, 50))
    choice = "random" if sizes.size is Size.SOAK else "fixed"
    words = (str(examples), str(steps), Memory.IDENTITY, choice)
    done = json.loads(run_program(OWN_MOUNTS, "support.stored_approvals", *words, folder=tmp_path))
    assert len(done) > (KINDS if sizes.size is not Size.TEST else KINDS // 2)
    sys.stderr.write(f"{sum(done.values())} steps: {done}\n")


def test_control_recognizing_folders_by_path_breaks_the_invariant(tmp_path: Path) -> None:
    # It ends with the first wrong step. Which example has one depends on the text of our modules.
    words = ("150", "30", Memory.PATH, "fixed")
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, "-m", "support.stored_approvals", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "AssertionError: told" in done.stderr
