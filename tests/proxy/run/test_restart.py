"""When a server must be restarted, and why."""

from __future__ import annotations

import math

import pytest

from rootsd.proxy.run.command import ServerCommand
from rootsd.proxy.run.restart import NO_RESTART, RestartDecision, RestartNeed, RestartPolicy
from rootsd.proxy.run.roots import RootFolder

A, B, C = (RootFolder(b"/" + name.encode(), name) for name in "abc")


def anywhere(_: bytes) -> bool:
    """Say that every folder is on the disk."""
    return True


def nowhere(_: bytes) -> bool:
    """Say that no folder is on the disk."""
    return False


def running(typed: str, *folders: RootFolder) -> RestartPolicy:
    restart_policy = RestartPolicy(ServerCommand(typed.split(), (), "/none"))
    restart_policy.start(folders)
    return restart_policy


@pytest.mark.parametrize(
    ("typed", "given", "now", "due"),
    [
        ("s {roots}", [A], [A, B], RestartDecision(RestartNeed.WIDER)),
        ("s {roots}", [A, B], [A], RestartDecision(RestartNeed.NARROWER, (B,))),
        ("s {roots}", [A, B], [A, C], RestartDecision(RestartNeed.NARROWER, (B,))),
        ("s {roots}", [A, B], [], RestartDecision(RestartNeed.NARROWER, (A, B))),
        ("s {roots}", [A, B], [A, B], NO_RESTART),
        ("s {root}", [A], [A, B], NO_RESTART),
        ("s {root}", [B], [A, B], RestartDecision(RestartNeed.WIDER)),
        ("s {root:a}", [A, B], [A], NO_RESTART),
        ("s {root:a}", [A], [A._replace(name="x")], RestartDecision(RestartNeed.WIDER)),
        ("s", [A], [], NO_RESTART),
    ],
)
def test_a_changed_command_needs_a_restart(
    typed: str, given: list[RootFolder], now: list[RootFolder], due: RestartDecision
) -> None:
    assert running(typed, *given).for_command(now, anywhere) == due


@pytest.mark.parametrize(
    ("given", "now", "due"),
    [
        ([A, B], [A], NO_RESTART),
        ([A, B], [B], NO_RESTART),
        ([A], [], NO_RESTART),
        ([A, B], [A, C], RestartDecision(RestartNeed.WIDER)),
    ],
)
def test_a_deleted_folder_needs_no_restart(
    given: list[RootFolder], now: list[RootFolder], due: RestartDecision
) -> None:
    assert running("s {roots}", *given).for_command(now, nowhere) == due


def test_a_server_with_a_denied_folder_needs_a_restart() -> None:
    inner = RootFolder(b"/a/inner", "a/inner")
    assert RestartPolicy.for_sent_roots([A, B], [A], anywhere) == RestartDecision(
        RestartNeed.NARROWER, (B,)
    )
    assert RestartPolicy.for_sent_roots([A, B], [A], nowhere) == NO_RESTART
    assert RestartPolicy.for_sent_roots([inner], [A], nowhere) == NO_RESTART, (
        "it lies in one that it may have"
    )
    assert RestartPolicy.for_sent_roots([A], [inner], anywhere) == RestartDecision(
        RestartNeed.NARROWER, (A,)
    )


def test_a_server_whose_working_directory_is_denied_or_approved_needs_a_restart() -> None:
    policy = RestartPolicy(ServerCommand(["s"], (), "/none", b"/a/sub"))
    assert policy.start([A, B]).folder is None
    assert policy.for_command([A], anywhere) == NO_RESTART, "it never had that one"
    assert policy.for_command([B], nowhere) == NO_RESTART, "it was deleted"
    assert policy.for_command([B], anywhere) == RestartDecision(RestartNeed.NARROWER, (A,))
    assert policy.start([B]).folder == "/none"
    assert policy.for_command([], anywhere) == NO_RESTART
    assert policy.for_command([A, B], anywhere) == RestartDecision(RestartNeed.WIDER)


def test_a_server_without_an_approved_folder_needs_a_restart() -> None:
    inner, wider = RootFolder(b"/a/inner", "a/inner"), RestartDecision(RestartNeed.WIDER)
    assert RestartPolicy.for_sent_roots([], [A], anywhere) == wider
    assert RestartPolicy.for_sent_roots([A], [A, B], anywhere) == wider
    assert RestartPolicy.for_sent_roots([A], [A, B], nowhere) == NO_RESTART
    assert RestartPolicy.for_sent_roots([A], [A, inner], anywhere) == NO_RESTART


def test_a_start_waits_until_no_more_roots_appear() -> None:
    restart_policy = running("s {roots}")
    assert restart_policy.deadline == math.inf
    restart_policy.roots_appeared(10.0)
    assert restart_policy.deadline == 10.3
    now = 10.0
    while now < 11.9:
        now += 0.2
        restart_policy.roots_appeared(now)
        assert now < restart_policy.deadline <= 12.0 + 1e-9
    assert restart_policy.deadline == 12.0
    restart_policy.start([A])
    assert restart_policy.deadline == math.inf


def test_no_restart_is_needed_before_the_first_start() -> None:
    assert (
        RestartPolicy(ServerCommand(["s", "{roots}"], (), "/none")).for_command([A], anywhere)
        == NO_RESTART
    )
