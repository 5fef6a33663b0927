"""The progress line: redrawn in place, throttled, cleared at the end, never in a pipe."""

from __future__ import annotations

import io

import pytest

from rootsd.cli.text.render import Flags
from rootsd.cli.text.terminal import ProgressLine
from rootsd.wire.scans import ScanProgressItem


def notice(folders: int = 1204, parent: str = "/src") -> ScanProgressItem:
    return ScanProgressItem(folders=folders, projects=3, parent=parent)


def test_the_line_is_drawn_in_place_and_cleared() -> None:
    stream = io.StringIO()
    with ProgressLine(stream) as line:
        line.show(notice())
        assert stream.getvalue() == "\r\x1b[Kscanning: 3 projects in 1,204 folders  /src"
    assert stream.getvalue().endswith("\r\x1b[K")


def test_redraws_are_throttled() -> None:
    stream, now = io.StringIO(), [0.0]
    line = ProgressLine(stream, clock=lambda: now[0])
    for moment in (0.0, 0.05, 0.09, 0.11, 0.12):
        now[0] = moment
        line.show(notice(folders=int(moment * 100)))
    assert stream.getvalue().count("\r") == 2
    assert " 11 folders" in stream.getvalue()


@pytest.mark.parametrize("width", [20, 45, 60, 80])
def test_it_never_wraps(width: int) -> None:
    stream = io.StringIO()
    ProgressLine(stream, width).show(notice(folders=10**9, parent="/long" * 50))
    assert len(stream.getvalue().removeprefix("\r\x1b[K")) < width


def test_a_hostile_parent_cannot_reach_the_terminal() -> None:
    stream = io.StringIO()
    ProgressLine(stream).show(notice(parent="/\x1b[2J\n"))
    assert "\x1b[2J" not in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_nothing_is_cleared_if_nothing_was_drawn() -> None:
    stream = io.StringIO()
    with ProgressLine(stream):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("flags", [Flags(), Flags(quiet=True), Flags(json=True)])
def test_a_pipe_gets_no_progress(capsys: pytest.CaptureFixture[str], flags: Flags) -> None:
    with ProgressLine.for_flags(flags) as line:
        line.show(notice())
    assert capsys.readouterr() == ("", "")
