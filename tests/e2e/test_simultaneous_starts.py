"""Many daemons start at one moment: one wins and serves, and the others name it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rootsd.files import lock
from support import simultaneous_starts
from support.person import Person
from support.sizes import Sizes

AT_ONCE = 20


def rounds(number: int, *, at_once: int = AT_ONCE, first: str = "") -> list[dict[str, Any]]:
    """Return the outcomes of the starts in each round. `first` is code that the program runs
    before.
    """
    program = f"{first}\nfrom support.simultaneous_starts import main\nmain({at_once}, {number})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(simultaneous_starts.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_right(told: Mapping[str, Any]) -> bool:
    """Return whether one daemon won and serves, and all others said that another one runs."""
    others = [line for line in told["told"] if line != "ready"]
    return (
        [told["served"]] == told["winners"]
        and len(others) == len(told["told"]) - 1
        and all(line.startswith("Busy: another rootsd") for line in others)
    )


def test_simultaneous_starts_always_have_one_winner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: Sizes
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    number = sizes.pick(test=3, check=20, soak=60)  # from nothing, after a kill, after an end, …
    played = rounds(number)
    assert [len(told["told"]) for told in played] == [AT_ONCE] * number
    assert [told for told in played if not is_right(told)] == []


def test_control_without_the_lock_there_are_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positive control."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert lock.fcntl.flock  # type: ignore[attr-defined]  # what is taken away here
    no_lock = "import fcntl; fcntl.flock = lambda *_: None"
    assert not all(is_right(told) for told in rounds(1, at_once=4, first=no_lock))


def test_simultaneous_ups_get_the_same_daemon(tmp_path: Path, sizes: Sizes) -> None:
    person = Person(tmp_path)
    words = [sys.executable, "-m", "rootsd", "up", str(person.parent)]
    pipe = subprocess.PIPE
    ups = [
        subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=person.environment())
        for _ in range(sizes.pick(test=3, check=6, soak=6))
    ]
    told = [(up.communicate(timeout=120)[1], up.returncode) for up in ups]
    assert [said for said, status in told if status] == []
    assert [item["path"] for item in person.items("parent", "ls")] == [str(person.parent)]
    person.rootsd("down")
    assert person.run("check", str(person.parent)).returncode == 69
