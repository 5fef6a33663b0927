"""When another server is needed, and what for."""

from __future__ import annotations

import math

import pytest

from rootsd.proxy.run.command import ServerCommand
from rootsd.proxy.run.restart import NO_RESTART, RestartDecision, RestartNeed, RestartPolicy
from rootsd.proxy.run.roots import RootFolder

A, B, C = (RootFolder(b"/" + name.encode(), name) for name in "abc")


def anywhere(_: bytes) -> bool:
    """All folders are on the disk."""
    return True


def nowhere(_: bytes) -> bool:
    """No folder is."""
    return False


def running(typed: str, *folders: RootFolder) -> RestartPolicy:
    renewal = RestartPolicy(ServerCommand(typed.split(), (), "/none"))
    renewal.start(folders)
    return renewal


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
def test_a_command_that_would_be_another_is_due(
    typed: str, given: list[RootFolder], now: list[RootFolder], due: RestartDecision
) -> None:
    assert running(typed, *given).by_command(now, anywhere) == due


@pytest.mark.parametrize(
    ("given", "now", "due"),
    [
        ([A, B], [A], NO_RESTART),
        ([A, B], [B], NO_RESTART),
        ([A], [], NO_RESTART),
        ([A, B], [A, C], RestartDecision(RestartNeed.WIDER)),
    ],
)
def test_a_folder_that_is_gone_is_no_reason(
    given: list[RootFolder], now: list[RootFolder], due: RestartDecision
) -> None:
    assert running("s {roots}", *given).by_command(now, nowhere) == due


def test_a_server_that_was_given_folders_may_have_to_lose_some() -> None:
    inner = RootFolder(b"/a/inner", "a/inner")
    assert RestartPolicy.by_answer([A, B], [A], anywhere) == RestartDecision(
        RestartNeed.NARROWER, (B,)
    )
    assert RestartPolicy.by_answer([A, B], [A], nowhere) == NO_RESTART
    assert RestartPolicy.by_answer([], [A], anywhere) == NO_RESTART
    assert RestartPolicy.by_answer([inner], [A], anywhere) == NO_RESTART, (
        "it lies in one that it may have"
    )
    assert RestartPolicy.by_answer([A], [inner], anywhere) == RestartDecision(
        RestartNeed.NARROWER, (A,)
    )


def test_where_no_server_runs_one_is_started_once_no_more_roots_come() -> None:
    renewal = running("s {roots}")
    assert renewal.deadline == math.inf
    renewal.appear(10.0)
    assert renewal.deadline == 10.3
    now = 10.0
    while now < 11.9:
        now += 0.2
        renewal.appear(now)
        assert now < renewal.deadline <= 12.0 + 1e-9
    assert renewal.deadline == 12.0
    renewal.start([A])
    assert renewal.deadline == math.inf


def test_nothing_is_due_before_the_first_start() -> None:
    assert (
        RestartPolicy(ServerCommand(["s", "{roots}"], (), "/none")).by_command([A], anywhere)
        == NO_RESTART
    )
