"""The pictures of the screen in docs are what the screen draws."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from draw_screen import NAME, draw_screens
from draw_terminal import THEMES, TOP

from support.documents import drawn, shows


@pytest.fixture(scope="module")
def current() -> Mapping[str, str]:
    return draw_screens(shows)


@pytest.mark.parametrize("theme", THEMES)
def test_the_pictures_show_the_current_screen(current: Mapping[str, str], theme: str) -> None:
    """If this fails because the screen changed, run `make screens`."""
    picture = (TOP / "docs" / f"{NAME}-{theme}.svg").read_text()
    assert drawn(picture) == drawn(current[theme])
    assert not re.search(r"@font-face|@import|href|url\((?!#)", picture)
    assert "/home-" not in picture


def test_a_picture_of_another_screen_is_detected(current: Mapping[str, str]) -> None:
    other = current["dark"].replace("Pending", "Waiting")
    assert drawn(other) != drawn(current["dark"])
