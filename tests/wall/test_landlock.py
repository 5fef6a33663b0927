"""The kernel refuses everything that a ruleset does not allow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rootsd.wall.kernel.landlock import Right, Ruleset
from support.subprocesses import run_python

pytestmark = pytest.mark.needs("landlock")

ATTEMPTS = """
import errno, os, subprocess, sys
from rootsd.wall.kernel.landlock import READ
from rootsd.wall.kernel.landlock import WRITE
from rootsd.wall.kernel.landlock import Ruleset

def attempt(what, action):
    try:
        action()
    except OSError as error:
        print(what, errno.errorcode[error.errno])
    else:
        print(what, "ok")

def write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))

place, state = map(os.fsencode, sys.argv[1:])
rules = Ruleset()
rules.allow(b"/", READ)
rules.allow(state, WRITE)
rules.allow(b"/dev/null", WRITE)
rules.restrict()
attempt("write", lambda: write(place + b"/file"))
attempt("make", lambda: write(place + b"/new"))
attempt("rename", lambda: os.rename(place + b"/file", place + b"/other"))
attempt("remove", lambda: os.unlink(place + b"/file"))
attempt("start", lambda: subprocess.run(["true"], check=True))
attempt("read", lambda: os.close(os.open(place + b"/file", os.O_RDONLY)))
attempt("list", lambda: os.listdir(place))
attempt("keep", lambda: write(state + b"/new"))
attempt("null", lambda: os.close(os.open(b"/dev/null", os.O_WRONLY)))
"""


def test_everything_not_allowed_is_refused(tmp_path: Path) -> None:
    place, state = tmp_path / "place", tmp_path / "state"
    place.mkdir()
    state.mkdir()
    (place / "file").touch()
    printed, complaint = run_python((), ATTEMPTS, place, state)
    assert complaint == ""
    told = dict(line.split() for line in printed.splitlines())
    refused = {what for what, result in told.items() if result == "EACCES"}
    assert refused == {"write", "make", "rename", "remove", "start"}
    assert {what for what, result in told.items() if result == "ok"} == told.keys() - refused


def test_a_missing_path_cannot_be_allowed(tmp_path: Path) -> None:
    rules = Ruleset()
    with pytest.raises(FileNotFoundError):
        rules.allow(bytes(tmp_path / "none"), Right.READ_FILE)


def test_a_ruleset_restricts_nothing_before_it_is_applied(tmp_path: Path) -> None:
    Ruleset().allow(bytes(tmp_path), Right.READ_FILE)
    (tmp_path / "new").touch()
    subprocess.run(["true"], check=True)
