"""Draw what a terminal shows as an SVG: one frame, or several that follow each other.

Each piece of text has its own place, so a picture does not depend on spaces or on the font of its
reader. A picture loads nothing: no font of another site learns who reads a README.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 10, 19, 16.6
MARGIN, BASELINE = 14, 15
# The colors of mark.svg, and those that go with them.
THEMES = {
    "light": TerminalTheme(
        (250, 253, 252), (16, 42, 39),
        [(16, 42, 39), (186, 30, 44), (46, 110, 20), (150, 78, 20), (20, 96, 170),
         (124, 67, 176), (13, 107, 94), (90, 107, 103)],
        [(120, 138, 133), (186, 30, 44), (46, 110, 20), (150, 78, 20), (20, 96, 170),
         (124, 67, 176), (13, 107, 94), (16, 42, 39)],
    ),
    "dark": TerminalTheme(
        (8, 31, 28), (232, 245, 239),
        [(58, 84, 78), (255, 133, 124), (150, 216, 110), (242, 166, 90), (122, 182, 255),
         (205, 160, 255), (95, 211, 168), (168, 186, 181)],
        [(95, 143, 134), (255, 133, 124), (150, 216, 110), (242, 166, 90), (122, 182, 255),
         (205, 160, 255), (95, 211, 168), (255, 255, 255)],
    ),
}  # fmt: skip
_CONSOLE = Console()
# Words with single spaces, or one character again and again: one font draws either of them.
_PIECE = re.compile(r"[!-~]+(?: [!-~]+)*|([^ -~])\1*")


class Frame(NamedTuple):
    """The lines of a terminal, with their escape sequences, and how long they are shown."""

    lines: tuple[str, ...]
    seconds: float = 0.0


def picture(frames: Sequence[Frame], columns: int, theme: str, title: str) -> str:
    """Return an SVG that shows the frames one after the other, again and again.

    Each different line is drawn once, and is visible in the frames that have it. Without motion,
    only the last frame is shown. The same frames always give the same picture.
    """
    colors = THEMES[theme]
    seen: dict[tuple[int, str], list[int]] = {}
    for number, frame in enumerate(frames):
        for row, line in enumerate(frame.lines):
            if line.strip():
                seen.setdefault((row, line), []).append(number)
    rules, drawn = [], []
    for index, ((row, line), shown) in enumerate(seen.items()):
        motion = ""
        if len(shown) < len(frames):
            rules.append(_keyframes(index, shown, [frame.seconds for frame in frames]))
            hidden = "" if len(frames) - 1 in shown else ' visibility="hidden"'
            motion = f' class="m k{index}"{hidden}'
        drawn.append(f"<g{motion}>{''.join(_shapes(row, line, colors))}</g>")
    if rules:
        seconds = sum(frame.seconds for frame in frames)
        rules[:0] = [
            f".m{{animation:{seconds:.1f}s step-end infinite}}",
            "@media (prefers-reduced-motion:reduce){.m{animation:none}}",
        ]
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = max(len(frame.lines) for frame in frames) * CELL_HEIGHT + 2 * MARGIN
    paper, edge = colors.background_color.hex, colors.ansi_colors[8].hex
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', \
monospace" font-size="{FONT_SIZE}">
<title>{escape(title)}</title>
<style>{chr(10).join(rules)}</style>
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6" fill="{paper}" \
stroke="{edge}" stroke-opacity="0.5"/>
{chr(10).join(drawn)}
</svg>
"""


def _keyframes(index: int, shown: Sequence[int], seconds: Sequence[float]) -> str:
    """Return the CSS that shows a line in the frames `shown`."""
    steps = []
    for number in range(len(seconds)):
        is_shown = number in shown
        if number == 0 or is_shown != (number - 1 in shown):
            start = sum(seconds[:number]) / sum(seconds) * 100
            steps.append(f"{start:.2f}%{{visibility:{'visible' if is_shown else 'hidden'}}}")
    return f"@keyframes k{index}{{{''.join(steps)}}}.k{index}{{animation-name:k{index}}}"


def _shapes(row: int, line: str, colors: TerminalTheme) -> Iterator[str]:
    """Yield the shapes of a line: the colored areas, and each piece of text at its place."""
    top = MARGIN + row * CELL_HEIGHT
    for column, text, style in _runs(line):
        ink, area = _ink_and_area(style, colors)
        left = MARGIN + column * CELL_WIDTH
        if area:
            size = f'width="{cell_len(text) * CELL_WIDTH}" height="{CELL_HEIGHT}"'
            yield f'<rect x="{left}" y="{top}" {size} fill="{area}"/>'
        looks = f'fill="{ink}"'
        looks += ' font-weight="bold"' if style.bold else ""
        looks += ' opacity="0.75"' if style.dim else ""
        looks += ' text-decoration="underline"' if style.underline else ""
        for found in _PIECE.finditer(text):
            x = left + cell_len(text[: found.start()]) * CELL_WIDTH
            length = f'textLength="{cell_len(found[0]) * CELL_WIDTH}"'
            place = f'x="{x}" y="{top + BASELINE}" {length} lengthAdjust="spacingAndGlyphs"'
            yield f"<text {place} {looks}>{escape(found[0])}</text>"


def _runs(line: str) -> Iterator[tuple[int, str, Style]]:
    """Yield the parts of a line that look the same: the column, the text, and the style."""
    text = Text.from_ansi(line.replace("\u00a0", " "))
    plain = text.plain
    styles = [text.get_style_at_offset(_CONSOLE, offset) for offset in range(len(plain))]
    start = 0
    for offset in range(1, len(plain) + 1):
        if offset == len(plain) or styles[offset] != styles[start]:
            yield cell_len(plain[:start]), plain[start:offset], styles[start]
            start = offset


def _ink_and_area(style: Style, colors: TerminalTheme) -> tuple[str, str]:
    """Return the color of the text, and that of the area behind it, or nothing."""
    front, back = style.color, style.bgcolor
    ink = (front.get_truecolor(colors) if front else colors.foreground_color).hex
    area = ""
    if back and not back.is_default:
        area = back.get_truecolor(colors, foreground=False).hex
    return (area or colors.background_color.hex, ink) if style.reverse else (ink, area)
