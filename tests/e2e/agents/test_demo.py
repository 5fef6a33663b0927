"""The recorded scene of README happens: a real agent gets a folder, and a browser shows it so."""

from __future__ import annotations

import pytest
from record_demo import COLUMNS, TITLE, record
from terminal_picture import picture

from support.browser import characters_in_browser, lines_of, rows_of

pytestmark = pytest.mark.needs("chromium", "user-namespaces", "npm", "tmux", "wall")


def test_the_agent_opens_the_folder_only_when_it_is_approved() -> None:
    frames = record("dark")
    texts = ["\n".join(lines_of(frame.lines)) for frame in frames]

    def first(words: str) -> int:
        return next(n for n, text in enumerate(texts) if words in text)

    assert first("cannot open") < first("approved  shop") < first("3 tests passed")
    assert "requested" in texts[-1]
    assert "~/src/api/tests.txt" in texts[-1]
    middles = [
        sum(frame.seconds for frame in frames[:n]) + frame.seconds / 2
        for n, frame in enumerate(frames)
    ]
    (shown,) = characters_in_browser([(picture(frames, COLUMNS, "dark", TITLE), middles)])
    assert [rows_of(characters) for characters in shown] == [
        lines_of(frame.lines) for frame in frames
    ]
