"""The probe of what a system allows for the wall, and the command that helps."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from rootsd.control.doctor_checks import check_wall
from rootsd.core.doctor import Severity
from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.probe import Probe, probe, problem_of

GOOD = Probe(0, 0, 7, 0, overlay=True, restricts=False)


def test_the_probe_changes_nothing_in_this_process() -> None:
    found = probe()
    assert found == probe()
    if sys.platform == "linux":
        assert found.landlock == landlock.version()


def test_a_system_that_allows_everything_has_no_problem() -> None:
    assert problem_of(GOOD) is None
    assert check_wall(GOOD).condition is Severity.OK
    assert "caches are read-only" in check_wall(GOOD._replace(overlay=False)).finding


@pytest.mark.parametrize(
    ("found", "reason", "remedy"),
    [
        (GOOD._replace(namespaces=errno.EPERM), "forbidden here: Oper", "confine --static"),
        (GOOD._replace(namespaces=errno.EPERM, landlock=2), "forbidden here", "rootsd run"),
        (GOOD._replace(namespaces=errno.ENOSPC), "limit on user", "user.max_user_namespaces"),
        (
            GOOD._replace(namespaces=errno.EACCES, restricts=True),
            "AppArmor allows them only to programs with a profile, as the Debian package has one",
            "confine --static",
        ),
        (GOOD._replace(namespaces=errno.ENOSYS), "no user namespaces", "rootsd run"),
        (GOOD._replace(mounts=errno.ENOSYS, landlock=0), "Linux 5.12 or newer", "uname -r"),
        (GOOD._replace(seccomp=errno.EINVAL), "no seccomp", "uname -r"),
        (GOOD._replace(landlock=1), "no Landlock 2", "--on-revoke kill"),
        (GOOD._replace(landlock=0), "no Landlock 2", "--on-revoke kill"),
    ],
)
def test_each_refusal_has_a_reason_and_one_command(found: Probe, reason: str, remedy: str) -> None:
    finding = check_wall(found)
    assert finding.condition is Severity.WARNING
    assert reason in finding.finding
    assert remedy in (finding.remedy or "")


def test_a_policy_that_requires_the_wall_makes_its_absence_an_error() -> None:
    requirement = "the policy requires the wall (/etc/rootsd/policy.toml)"
    assert check_wall(GOOD, requirement) == check_wall(GOOD)
    finding = check_wall(GOOD._replace(namespaces=errno.EPERM), requirement)
    assert finding.condition is Severity.ERROR
    assert f"{requirement}, so no server starts" in finding.finding


def test_where_only_namespaces_are_missing_static_is_offered() -> None:
    without = GOOD._replace(namespaces=errno.EPERM)
    assert "with --static, Landlock 7" in check_wall(without).finding
    for older in (without._replace(landlock=2), without._replace(seccomp=errno.EINVAL)):
        assert "--static" not in check_wall(older).finding


def test_the_packages_own_rootsd_is_told_to_load_its_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    restricted = GOOD._replace(namespaces=errno.EACCES, restricts=True)
    monkeypatch.setattr("rootsd.wall.kernel.probe._PROFILE", str(tmp_path))
    assert "--static" in (check_wall(restricted).remedy or ""), "this one is another rootsd"
    monkeypatch.setattr(sys, "prefix", "/usr/lib/rootsd")
    assert check_wall(restricted).remedy == f"sudo apparmor_parser -r {tmp_path}"
