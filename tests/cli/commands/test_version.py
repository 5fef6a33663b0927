"""`rootsd version`."""

from __future__ import annotations

import json

from rootsd import __version__
from support.fake_daemon import FakeDaemon, a_status
from support.terminal import Shell


def test_without_a_daemon_it_prints_its_own_version(shell: Shell) -> None:
    done = shell.run("version")
    assert (done.status, done.out) == (0, f"rootsd {__version__}\n")
    assert done.err == "The daemon is not running: rootsd up\n"
    assert json.loads(shell.run("version", "--json").out) == {
        "schema": "rootsd/1", "command": "version", "revision": None, "version": __version__,
        "daemon": None, "items": [], "warnings": [],
    }  # fmt: skip


def test_with_a_daemon_it_prints_both_versions(daemon: FakeDaemon, shell: Shell) -> None:
    about = {"version": __version__, "pid": 1, "since": "2026-11-20T08:11:02Z"}
    daemon.answers["status"] = a_status(daemon=about)
    assert shell.run("version").out == f"rootsd {__version__}\ndaemon {__version__}\n"
    assert json.loads(shell.run("version", "--json").out)["daemon"] == about


def test_two_versions_are_a_warning_with_the_next_command(
    daemon: FakeDaemon, shell: Shell
) -> None:
    about = {"version": "0.0.1", "pid": 1, "since": "2026-11-20T08:11:02Z"}
    daemon.answers["status"] = a_status(daemon=about)
    done = shell.run("version")
    assert (done.status, done.out) == (0, f"rootsd {__version__}\ndaemon 0.0.1\n")
    assert "rootsd down && rootsd up" in done.err
