"""The pictures of terminals in docs: they show what rootsd prints, also in a real browser."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest
from draw_pictures import COLUMNS, MOVING, SCREEN, SESSIONS, TOP, screen, session_of, still
from rich.cells import cell_len
from terminal_picture import MARGIN, THEMES, Frame, picture

from support.browser import MISPLACED, Character, characters_in_browser, lines_of, rows_of
from support.documents import drawn, normal, shows

DOCS = TOP / "docs"
STILLS = [*SESSIONS, SCREEN]
STORY = (
    "rootsd exposure",
    "rootsd confine -- claude",
    "cannot open ~/src/shop",
    "waiting for the user to decide",
    "rootsd approve shop",
    "3 tests passed",
    "rootsd sessions --report claude",
)
SMALLEST_PX = 12


@pytest.fixture(scope="module")
def current() -> Mapping[str, str]:
    """What the terminal of each picture that does not move shows now."""
    return {name: session_of(words, shows) for name, words in SESSIONS.items()} | {
        SCREEN: screen(shows)
    }


def committed(name: str, theme: str) -> str:
    return (DOCS / f"{name}-{theme}.svg").read_text()


@pytest.mark.parametrize("name", STILLS)
def test_the_pictures_show_the_current_output(current: Mapping[str, str], name: str) -> None:
    """If this fails because the output changed, run `make screens`."""
    for theme in THEMES:
        assert drawn(committed(name, theme)) == drawn(still(current[name], theme))


@pytest.mark.parametrize(
    "name",
    [path.name for path in DOCS.glob("diagram-*.svg")]
    + [f"{name}-{theme}.svg" for name in (*STILLS, MOVING) for theme in THEMES],
)
def test_the_pictures_are_used_and_load_nothing(name: str) -> None:
    text = (DOCS / name).read_text()
    assert not re.search(r"@font-face|@import|href|url\((?!#)", text)
    assert any(name in page.read_text() for page in DOCS.rglob("*.md"))
    assert "/home-" not in text


def test_a_picture_of_other_output_is_detected() -> None:
    green = still("$ rootsd\n\x1b[32mok\x1b[0m pid 7", "dark")
    assert drawn(green) == drawn(still("$ rootsd\n\x1b[32mok\x1b[0m pid 12345", "dark"))
    for other in ("\x1b[32mno\x1b[0m pid 7", "\x1b[1;31mok\x1b[0m pid 7", "ok pid 7"):
        assert drawn(green) != drawn(still(f"$ rootsd\n{other}", "dark"))


def test_drawing_omits_nothing() -> None:
    written = still("\x1b[32mgreen\x1b[0m <b> & more", "dark")
    assert all(word in written for word in ("green", "&lt;b&gt;", "&amp;", "more"))
    assert normal("\x1b[32mx\x1b[0m") == "x"


@pytest.mark.parametrize("theme", THEMES)
def test_every_color_of_text_is_readable_on_its_paper(theme: str) -> None:
    colors = THEMES[theme]

    def light(rgb: tuple[int, int, int]) -> float:
        red, green, blue = (math.pow(part / 255, 2.2) for part in rgb)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    paper = light(colors.background_color)
    for ink in (colors.foreground_color, *(colors.ansi_colors[n] for n in range(1, 7))):
        low, high = sorted((light(ink), paper))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def assert_is_large_and_whole(characters: list[Character], svg: str) -> None:
    """Fail if a character is too small to read in a README, or outside of its picture."""
    width, height = (int(re.search(rf' {side}="(\d+)"', svg)[1]) for side in ("width", "height"))  # type: ignore[index]
    assert min(each.font_pixels for each in characters) >= SMALLEST_PX
    assert min(min(each.left, each.top) for each in characters) >= 0
    assert max(each.right for each in characters) <= width - MARGIN / 2
    assert max(each.bottom for each in characters) <= height


@pytest.mark.needs("chromium")
def test_a_browser_shows_each_picture_as_the_terminal_does(current: Mapping[str, str]) -> None:
    cases = [(text, still(text, theme)) for text in current.values() for theme in THEMES]
    shown = characters_in_browser([(svg, [0.0]) for _, svg in cases])
    for (text, svg), (characters,) in zip(cases, shown, strict=True):
        assert rows_of(characters) == lines_of(text.rstrip().splitlines())
        assert_is_large_and_whole(characters, svg)


@pytest.mark.needs("chromium")
def test_a_browser_tells_the_story_of_the_moving_picture() -> None:
    svgs = [committed(MOVING, theme) for theme in THEMES]
    length = float(re.search(r"animation:([\d.]+)s", svgs[0])[1])  # type: ignore[index]
    assert 15 < length < 22
    times = [quarter / 4 for quarter in range(int(length * 4))]
    shown = characters_in_browser([(svg, times) for svg in svgs])
    for svg, moments in zip(svgs, shown, strict=True):
        texts = ["\n".join(rows_of(characters)) for characters in moments]
        begins = [next(n for n, text in enumerate(texts) if beat in text) for beat in STORY]
        assert begins == sorted(begins)
        assert texts[0].count("\n") > 5
        for characters, text in zip(moments, texts, strict=True):
            assert MISPLACED not in text
            assert_is_large_and_whole(characters, svg)


TRICKY = (
    "\x1b[1;36m$\x1b[0m   two   spaces  \x1b[7m reversed  \x1b[0m end",
    "  ▐▛███▛█  a <b> & \x1b[31mred\x1b[0m",
    "│ \x1b[1mbold\x1b[0m ───╮ 漢字 │",
)


def in_the_old_way(svg: str) -> str:
    """Draw two lines with their spaces, which Chromium does not keep."""
    pieces = "".join(
        f'<text x="{MARGIN}" y="{MARGIN + 15 + 19 * row}" textLength="{cell_len(line) * 10}">'
        f"<tspan>{line}</tspan></text>"
        for row, line in enumerate(("  leading", "plain"))
    )
    return re.sub(r"<g>.*</g>", pieces, svg, flags=re.DOTALL).replace(
        "<svg ", '<svg xml:space="preserve" ', 1
    )


@pytest.mark.needs("chromium")
def test_a_browser_keeps_columns_and_frames_and_sees_collapsed_spaces_and_small_text() -> None:
    first, last = Frame(("first",), 1.0), Frame(TRICKY, 1.0)
    moving = picture([first, last], COLUMNS, "dark", "two frames")
    old = in_the_old_way(still("  leading\nplain", "dark"))
    wide = still("x" * 130, "dark")
    (begin, end), (broken,), (small,) = characters_in_browser(
        [(moving, [0.5, 1.5]), (old, [0.0]), (wide, [0.0])]
    )
    assert rows_of(begin) == ["first"]
    assert rows_of(end) == lines_of(TRICKY)
    assert rows_of(broken)[1] == "plain"
    assert rows_of(broken)[0] != "  leading"
    assert max(each.font_pixels for each in small) < SMALLEST_PX
