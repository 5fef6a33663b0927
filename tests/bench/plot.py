"""Draw curves as SVG, readable on light and dark backgrounds; standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 300, 56, 60
# Colors are attributes, so that renderers without style sheets show them. The style sheet changes
# them for dark backgrounds.
INK, AXIS, GRID = "#24292f", "#57606a", "#d0d7de"
OURS = ("#0969da", "#1a7f37", "#8250df")
THEIRS = "#57606a"
STYLE = """
  @media (prefers-color-scheme: dark) {
    .ink { fill: #e6edf3; } .axis { stroke: #9198a1; } .grid { stroke: #30363d; }
    .ours0 { stroke: #58a6ff; } .ours1 { stroke: #3fb950; } .ours2 { stroke: #bc8cff; }
    .theirs { stroke: #9198a1; }
    .name0 { fill: #58a6ff; } .name1 { fill: #3fb950; } .name2 { fill: #bc8cff; }
    .name { fill: #9198a1; }
  }
"""


class Curve(NamedTuple):
    """A named line through points (x, y), all above zero. `is_ours` draws it thick and colored."""

    name: str
    points: Sequence[tuple[float, float]]
    is_ours: bool


class _Scale:
    """Maps values to pixels, logarithmically, from one power of ten to another."""

    def __init__(self, values: Sequence[float], low: float, high: float) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = max(math.ceil(math.log10(max(values))), self.first + 1)
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.low + share * (self.high - self.low)

    def ticks(self) -> list[int | float]:
        return [10**power for power in range(self.first, self.last + 1)]


def plot(curves: Sequence[Curve], title: str, x_title: str, y_title: str) -> str:
    """Return the text of an SVG file.

    Both axes are logarithmic, so a straight line of slope one means that the cost grows in
    proportion. Our curves are thick and colored, all others thin, dashed, and gray.
    """
    across = _Scale([x for curve in curves for x, _ in curve.points], LEFT, WIDTH - RIGHT)
    up = _Scale([y for curve in curves for _, y in curve.points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        _text(LEFT, 24, title, "start", size=16),
    ]
    parts += [_line("grid", LEFT, up(tick), WIDTH - RIGHT, up(tick)) for tick in up.ticks()]
    parts += [_text(LEFT - 8, up(tick) + 4, f"{tick:,g}", "end") for tick in up.ticks()]
    parts += [
        _line("grid", across(tick), TOP, across(tick), HEIGHT - BOTTOM) for tick in across.ticks()
    ]
    parts += [
        _text(across(tick), HEIGHT - BOTTOM + 20, f"{tick:,g}", "middle")
        for tick in across.ticks()
    ]
    parts += [
        _line("axis", LEFT, TOP, LEFT, HEIGHT - BOTTOM),
        _line("axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 15, x_title, "middle"),
        _text(LEFT, TOP - 10, y_title, "middle"),
    ]
    # Names beside the last points, moved apart where those lie close together.
    free = HEIGHT - BOTTOM + 8.0
    numbers = {id(curve): n for n, curve in enumerate(c for c in curves if c.is_ours)}
    for curve in sorted(curves, key=lambda each: each.points[-1][1]):
        free = min(up(curve.points[-1][1]) + 4, free - 17)
        parts.append(_drawn(curve, numbers.get(id(curve)), across, up, free))
    return "\n".join([*parts, "</svg>", ""])


def _drawn(curve: Curve, number: int | None, across: _Scale, up: _Scale, label_y: float) -> str:
    """Draw a curve with its name. `number` chooses the color; None is a curve of another."""
    places = [(across(x), up(y)) for x, y in curve.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    color = THEIRS if number is None else OURS[number]
    stroke = 'stroke-width="1.5" stroke-dasharray="5 4"' if number is None else 'stroke-width="3"'
    kind = "theirs" if number is None else f"ours{number}"
    name = "name" if number is None else f"name{number}"
    dots = "".join(
        f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{3 if number is None else 4}" '
        f'fill="{color}"/>'
        for x, y in places
    )
    label = _text(places[-1][0] + 12, label_y, curve.name, "start", kind=name, color=color)
    return (
        f'<polyline class="{kind}" points="{line}" fill="none" stroke="{color}" {stroke}/>'
        f"{dots}{label}"
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    color = AXIS if kind == "axis" else GRID
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} stroke="{color}"/>'


def _text(
    x: float, y: float, text: str, anchor: str, kind: str = "ink", color: str = INK, size: int = 0
) -> str:
    larger = f' font-size="{size}" font-weight="600"' if size else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place} fill="{color}"{larger}>{escape(text)}</text>'
