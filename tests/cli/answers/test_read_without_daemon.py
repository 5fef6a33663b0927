"""Verbs that only read do so from the store without a daemon, and warn, or fail as usual."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.control.offline import OFFLINE_WARNING
from rootsd.core.model import Inspection
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.state.store.store import Store
from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.sample_decisions import NOON, approved, decide
from support.stores import outside
from support.terminal import Shell

_APPROVED = approved(1)
_CHANGED = replace(
    _APPROVED,
    observed=replace(_APPROVED.observed, inspection=Inspection(b"", None, "", ((".envrc", "1"),))),
    ruling=replace(_APPROVED.ruling, files=()),
)


@pytest.fixture
def state(rootsd_dir: Path) -> Path:
    """The folder of a store with one approval."""
    folder = rootsd_dir / "state"
    folder.mkdir(0o700, parents=True)
    with closing(Store.open(folder, outside(folder))) as store:
        store.append([decide(_CHANGED)], NOON)
    return folder


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("ls",), "p1\tapproved"),
        (("ls", "p1", "--kind", "git"), "p1\tapproved"),
        (("pending", "--count", "--tag", "work"), "0\n"),
        (("ls", "--paths"), "/p1\n"),
        (("log",), "\tapproved\t"),
        (("review", "--changed"), "/p1\n  new     .envrc\n"),
    ],
)
def test_the_stored_state_is_shown_with_a_warning(
    state: Path, shell: Shell, words: tuple[str, ...], shown: str
) -> None:
    done = shell.run(*words)
    assert done.status == 0
    assert shown in done.out
    assert done.err == f"warning: {OFFLINE_WARNING}\n"


@pytest.mark.parametrize("words", [("log", "-f"), ("approve", "p1"), ("show", "p1")])
def test_verbs_that_need_a_daemon_say_so(
    state: Path, shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run(*words)
    assert (done.status, done.out) == (69, "")
    assert done.err.endswith("try: rootsd up\n")


def test_a_running_daemon_is_asked(state: Path, daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(an_item("web"))
    done = shell.run("ls")
    assert "web" in done.out
    assert done.err == ""


def test_without_a_store_or_with_a_locked_one_the_usual_error_is_raised(
    shell: Shell, rootsd_dir: Path
) -> None:
    assert shell.run("log").status == 69
    assert not rootsd_dir.exists()
    state = rootsd_dir / "state"
    state.mkdir(0o700, parents=True)
    with closing(Store.open(state, outside(state))):
        pass
    with DaemonLock.acquire(state, LockRecord(os.getpid(), "0", {})):
        assert shell.run("log").status == 69
