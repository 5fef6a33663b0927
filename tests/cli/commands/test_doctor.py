"""`rootsd doctor`: findings, fixes, and exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.cli.answers import doctor
from rootsd.cli.answers.doctor import DoctorCheck
from rootsd.core.doctor import DoctorFinding, error, ok, warning
from rootsd.core.errors import ErrorCode, RootsdError
from support.fake_daemon import FakeDaemon, Objection, a_status
from support.terminal import Shell

INSIDE = {
    "topic": "clock", "condition": "ok", "finding": "noon", "remedy": None, "seen_by": "daemon",
}  # fmt: skip


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[DoctorCheck]:
    """The findings of the command itself."""
    seen = [DoctorCheck(ok("disk", "room"))]
    monkeypatch.setattr(doctor, "run_checks", lambda session: iter(seen))
    return seen


@pytest.fixture
def inside(daemon: FakeDaemon) -> FakeDaemon:
    daemon.answers["examine"] = {"items": [INSIDE]}
    daemon.answers["status"] = a_status()
    return daemon


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_without_problems_it_says_so(
    shell: Shell, seen: list[DoctorCheck], inside: FakeDaemon
) -> None:
    done = shell.run("doctor")
    assert (done.status, done.err) == (0, "No problems found.\n")
    assert rows(done.out) == [
        ["ok", "disk", "room", "", "command"], ["ok", "clock", "noon", "", "daemon"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "status", "summary"),
    [
        (warning("disk", "little", "df -h"), 0, "1 warning found."),
        (error("disk", "none", "df -h"), 1, "1 error found."),
    ],
)
def test_the_exit_status_is_1_for_an_error(
    shell: Shell,
    seen: list[DoctorCheck],
    inside: FakeDaemon,
    found: DoctorFinding,
    status: int,
    summary: str,
) -> None:
    seen[:] = [DoctorCheck(found)]
    done = shell.run("doctor")
    assert done.status == status
    assert done.err.startswith(summary)
    assert rows(done.out)[0][3] == "df -h"
    quiet = shell.run("doctor", "-q")
    assert [row[1] for row in rows(quiet.out)] == ["disk"]
    assert quiet.err == ""


def test_a_finding_and_its_remedy_have_separate_lines_on_a_terminal(
    shell: Shell, seen: list[DoctorCheck], inside: FakeDaemon
) -> None:
    seen[:] = [
        DoctorCheck(error("service", "no manager:\n  its bus is gone", "loginctl\n  enable x"))
    ]
    shown = shell.run_on_terminal("doctor").out.splitlines()
    assert shown[:2] == [
        "error    service        no manager: its bus is gone",
        "                        → loginctl enable x",
    ]
    piped = rows(shell.run("doctor").out)
    assert piped[0][2:4] == ["no manager: its bus is gone", "loginctl enable x"]


def test_a_failed_fix_says_so_in_readable_lines(
    shell: Shell, seen: list[DoctorCheck], inside: FakeDaemon
) -> None:
    def cure() -> None:
        raise RootsdError("it ended at once\nno space left")

    seen[:] = [DoctorCheck(error("daemon", "it is\ngone", "rootsd up"), cure)]
    assert shell.run("doctor", "--fix").err.splitlines()[:2] == [
        "warning: it is gone: it ended at once",
        "  no space left",
    ]


@pytest.mark.parametrize(
    "trouble", [None, RootsdError("no"), OSError(1, "not permitted")], ids=["done", "no", "os"]
)
def test_fix_repairs_what_it_can_and_reports_the_rest(
    shell: Shell, seen: list[DoctorCheck], inside: FakeDaemon, trouble: Exception | None
) -> None:
    def cure() -> None:
        if trouble is not None:
            raise trouble
        seen[:] = [DoctorCheck(ok("state", "closed"))]

    seen[:] = [
        DoctorCheck(error("state", "open", "chmod"), cure),
        DoctorCheck(warning("clock", "odd", "x")),
    ]
    assert shell.run("doctor").status == 1
    done = shell.run("doctor", "--fix")
    assert done.status == (0 if trouble is None else 1)
    assert ("fixed: open" in done.err) == (trouble is None)
    assert ("warning: open" in done.err) == (trouble is not None)


def test_fix_leaves_correct_parts_alone(
    shell: Shell, seen: list[DoctorCheck], inside: FakeDaemon
) -> None:
    def cure() -> None:
        raise AssertionError

    seen[:] = [DoctorCheck(ok("state", "closed"), cure)]
    assert shell.run("doctor", "--fix").status == 0


def test_without_a_daemon_only_the_outside_is_checked(shell: Shell, home: Path) -> None:
    done = shell.run("doctor")
    assert done.status == 1
    assert ["error", "daemon", "the daemon is not running", "rootsd up", "command"] in rows(
        done.out
    )


def test_a_daemon_that_fails_to_examine_itself_is_an_error(
    shell: Shell, seen: list[DoctorCheck], daemon: FakeDaemon
) -> None:
    daemon.answers["examine"] = Objection(ErrorCode.BUSY, "busy", "rootsd doctor")
    done = shell.run("doctor")
    assert done.status == 1
    assert rows(done.out)[-1] == ["error", "daemon", "busy", "rootsd doctor", "command"]
