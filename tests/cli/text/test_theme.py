"""The colors of the command line: what has one, and on which backgrounds it is readable."""

from __future__ import annotations

import re

import pytest
from rich.color import ColorType
from rich.style import Style

from rootsd.cli.text.theme import STYLES, Tone
from support.fake_daemon import FakeDaemon
from support.sample_answers import ANSWERS
from support.terminal import Shell

# The first eight colors of terminals, as RGB: (background, colors).
PALETTES = {
    "xterm on black": ("000000", "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5"),
    "xterm on white": ("ffffff", "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5"),
    "VS Code dark": ("1e1e1e", "000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5"),
    "VS Code light": ("ffffff", "000000 cd3131 00bc00 949800 0451a5 bc05bc 0598bc 555555"),
    "Solarized dark": ("002b36", "073642 dc322f 859900 b58900 268bd2 d33682 2aa198 eee8d5"),
    "Solarized light": ("fdf6e3", "073642 dc322f 859900 b58900 268bd2 d33682 2aa198 eee8d5"),
}
LEAST_CONTRAST = 1.8  # cyan of xterm on white; its yellow has 1.7 and its white 1.3
SGR = re.compile(r"\x1b\[[0-9;]*m")


def _luminance(rgb: str) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    parts = [int(rgb[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", PALETTES)
def test_every_color_is_readable_on_light_and_dark_backgrounds(palette: str) -> None:
    background, colors = PALETTES[palette][0], PALETTES[palette][1].split()
    for tone, notation in STYLES.items():
        color = Style.parse(notation).color
        if color is None:
            continue
        assert color.type is ColorType.STANDARD
        assert color.number is not None
        contrast = _contrast(colors[color.number], background)
        assert contrast >= LEAST_CONTRAST, (tone, palette, contrast)


def test_the_palettes_would_show_an_unreadable_color() -> None:
    least = {
        number: min(
            _contrast(colors.split()[number], background)
            for background, colors in PALETTES.values()
        )
        for number in range(8)
    }
    assert {number for number, contrast in least.items() if contrast < LEAST_CONTRAST} >= {0, 3, 7}


def test_every_tone_has_a_style() -> None:
    assert set(STYLES) == set(Tone)


def test_status_colors_its_labels_and_the_next_command(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers |= ANSWERS
    out = shell.run_in_color("status").out
    assert "\x1b[1mdaemon\x1b[0m    running" in out
    assert "\x1b[36mrootsd pending\x1b[0m" in out


def test_an_error_colors_its_first_word_and_the_next_command(
    daemon: FakeDaemon, shell: Shell
) -> None:
    del daemon
    out = shell.run_in_color("nonsense").out
    assert out.startswith("\x1b[1;31merror:\x1b[0m there is no command")
    assert "try: \x1b[36mrootsd --help\x1b[0m" in out


def test_help_colors_headings_and_options(shell: Shell) -> None:
    out = shell.run_in_color("approve", "--help").out
    assert "\x1b[1mOptions\x1b[0m:" in out
    assert "\x1b[36m--read-only\x1b[0m" in out
    assert SGR.sub("", out) == shell.run_on_terminal("approve", "--help").out


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "unknown"}])
@pytest.mark.parametrize("words", [("status",), ("ls",), ("nonsense",), ("ls", "--help")])
def test_nothing_is_colored_without_colors(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], variables: dict[str, str]
) -> None:
    daemon.answers |= ANSWERS
    assert "\x1b" in shell.run_in_color(*words).out
    assert "\x1b" not in shell.run_in_color(*words, **variables).out
