"""Draw curves as SVG, readable on light and dark backgrounds; standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 20, 60
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .axis { stroke: #57606a; } .grid { stroke: #d0d7de; }
  .c0 { --c: #0969da; } .c1 { --c: #1a7f37; } .c2 { --c: #8250df; }
  .c3 { --c: #bc4c00; } .c4 { --c: #cf222e; }
  polyline { fill: none; stroke: var(--c); stroke-width: 2; }
  circle { fill: var(--c); } .name { fill: var(--c); }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .axis { stroke: #9198a1; } .grid { stroke: #30363d; }
    .c0 { --c: #58a6ff; } .c1 { --c: #3fb950; } .c2 { --c: #bc8cff; }
    .c3 { --c: #ffa657; } .c4 { --c: #ff7b72; } .name { fill: var(--c); }
  }
"""


class Curve(NamedTuple):
    """A named line through points (x, y), all above zero."""

    name: str
    points: Sequence[tuple[float, float]]


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


def plot(curves: Sequence[Curve], x_title: str, y_title: str) -> str:
    """The text of an SVG file; both axes are logarithmic, so that a straight line of slope one
    means cost in proportion."""
    across = _Scale([x for curve in curves for x, _ in curve.points], LEFT, WIDTH - RIGHT)
    up = _Scale([y for curve in curves for _, y in curve.points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(y_title)} against {escape(x_title)}</title><style>{STYLE}</style>",
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
        _text(LEFT - 8, TOP + 24, y_title, "end"),
    ]
    # Names beside the last points, moved apart where those lie close together.
    free = HEIGHT - BOTTOM + 8.0
    for number, curve in sorted(enumerate(curves), key=lambda each: each[1].points[-1][1]):
        free = min(up(curve.points[-1][1]) + 4, free - 17)
        parts.append(_drawn(curve, f"c{number % 5}", across, up, free))
    return "\n".join([*parts, "</svg>", ""])


def _drawn(curve: Curve, color: str, across: _Scale, up: _Scale, label_y: float) -> str:
    places = [(across(x), up(y)) for x, y in curve.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
    label = _text(places[-1][0] + 10, label_y, curve.name, "start", "name")
    return f'<g class="{color}"><polyline points="{line}"/>{dots}{label}</g>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    return f'<text{look} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
