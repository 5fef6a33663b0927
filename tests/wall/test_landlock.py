"""Rulesets before the kernel has them. What it refuses then: test_daemon.py, test_attacks.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rootsd.wall.kernel.landlock import Right, Ruleset

pytestmark = pytest.mark.needs("landlock")


def test_a_missing_path_cannot_be_allowed(tmp_path: Path) -> None:
    rules = Ruleset()
    with pytest.raises(FileNotFoundError):
        rules.allow(bytes(tmp_path / "none"), Right.READ_FILE)


def test_a_ruleset_restricts_nothing_before_it_is_applied(tmp_path: Path) -> None:
    Ruleset().allow(bytes(tmp_path), Right.READ_FILE)
    (tmp_path / "new").touch()
    subprocess.run(["true"], check=True)
