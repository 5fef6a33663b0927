"""When another server is needed, and what for."""

from __future__ import annotations

import math

import pytest

from rootsd.relay.arguments import Command
from rootsd.relay.renewal import NOT_DUE, Due, Need, Renewal
from rootsd.relay.roots import Folder

A, B, C = (Folder(b"/" + name.encode(), name) for name in "abc")


def anywhere(_: bytes) -> bool:
    """All folders are on the disk."""
    return True


def nowhere(_: bytes) -> bool:
    """No folder is."""
    return False


def running(typed: str, *folders: Folder) -> Renewal:
    renewal = Renewal(Command(typed.split(), (), "/none"))
    renewal.start(folders)
    return renewal


@pytest.mark.parametrize(
    ("typed", "given", "now", "due"),
    [
        ("s {roots}", [A], [A, B], Due(Need.WIDER)),
        ("s {roots}", [A, B], [A], Due(Need.NARROWER, (B,))),
        ("s {roots}", [A, B], [A, C], Due(Need.NARROWER, (B,))),
        ("s {roots}", [A, B], [], Due(Need.NARROWER, (A, B))),
        ("s {roots}", [A, B], [A, B], NOT_DUE),
        ("s {root}", [A], [A, B], NOT_DUE),
        ("s {root}", [B], [A, B], Due(Need.WIDER)),
        ("s {root:a}", [A, B], [A], NOT_DUE),
        ("s {root:a}", [A], [A._replace(name="x")], Due(Need.WIDER)),
        ("s", [A], [], NOT_DUE),
    ],
)
def test_a_command_that_would_be_another_is_due(
    typed: str, given: list[Folder], now: list[Folder], due: Due
) -> None:
    assert running(typed, *given).by_command(now, anywhere) == due


@pytest.mark.parametrize(
    ("given", "now", "due"),
    [
        ([A, B], [A], NOT_DUE),
        ([A, B], [B], NOT_DUE),
        ([A], [], NOT_DUE),
        ([A, B], [A, C], Due(Need.WIDER)),
    ],
)
def test_a_folder_that_is_gone_is_no_reason(
    given: list[Folder], now: list[Folder], due: Due
) -> None:
    assert running("s {roots}", *given).by_command(now, nowhere) == due


def test_a_server_that_was_given_folders_may_have_to_lose_some() -> None:
    inner = Folder(b"/a/inner", "a/inner")
    assert Renewal.by_answer([A, B], [A], anywhere) == Due(Need.NARROWER, (B,))
    assert Renewal.by_answer([A, B], [A], nowhere) == NOT_DUE
    assert Renewal.by_answer([], [A], anywhere) == NOT_DUE
    assert Renewal.by_answer([inner], [A], anywhere) == NOT_DUE, "it lies in one that it may have"
    assert Renewal.by_answer([A], [inner], anywhere) == Due(Need.NARROWER, (A,))


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
    assert Renewal(Command(["s", "{roots}"], (), "/none")).by_command([A], anywhere) == NOT_DUE
