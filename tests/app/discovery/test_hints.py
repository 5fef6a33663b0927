"""Hints are sorted by what is to be looked at, and many about one thing are one."""

from __future__ import annotations

from rootsd.app.discovery.hints import Hints
from rootsd.host.watch.events import Change, Happening, Overflow, Purpose

CAME, LEFT, ITSELF = Change.CAME, Change.LEFT, Change.ITSELF


def _frontier(name: bytes, change: Change, moved: bool = False) -> Happening:
    return Happening(b"/w", name, change, Purpose.FRONTIER, moved)


def _of(*batch: Happening | Overflow) -> Hints:
    return Hints.of(batch, lambda changed: changed == b"/home/src")


def test_many_about_one_entry_are_one_and_what_left_is_remembered() -> None:
    batch = [_frontier(b"a", CAME), _frontier(b"a", LEFT), _frontier(b"a", CAME, moved=True)]
    assert _of(*batch, *batch).entries == {(b"/w", b"a"): (True, True)}
    assert _of(*batch, _frontier(b"a", LEFT)).entries == {(b"/w", b"a"): (True, False)}


def test_each_purpose_has_its_place() -> None:
    at_work = Happening(b"/w/.git", b"HEAD", CAME, Purpose.AT_WORK)
    hints = _of(
        at_work,
        Overflow(),
        Happening(b"/w/.git/worktrees", b"a", CAME, Purpose.LINKS),
        Happening(b"/r", b"", ITSELF, Purpose.ROOT),
        _frontier(b"", ITSELF),
        Happening(b"/home", b"src", CAME, Purpose.ABOVE),
        Happening(b"/etc", b"other", CAME, Purpose.ABOVE),
    )
    assert hints.at_work == [at_work]
    assert hints.overflow
    assert list(hints.links) == [b"/w/.git/worktrees"]
    assert list(hints.folders) == [b"/r", b"/w", b"/home"]
    assert hints.entries == {}


def test_what_only_came_or_was_altered_moves_no_folder_that_was_there() -> None:
    assert not _of(_frontier(b"a", CAME), _frontier(b"b", Change.ALTERED)).of_moves
    assert _of(_frontier(b"a", LEFT)).of_moves
    assert _of(_frontier(b"a", CAME, moved=True)).of_moves
    assert _of(Happening(b"/home", b"src", CAME, Purpose.ABOVE)).of_moves
    assert _of(Overflow()).of_moves
