"""Draw docs/diagram-*.svg: which program talks to which, on a light and on a dark page.

`make screens` runs this. A picture has its own colors and no background, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

TOP = Path(__file__).parent.parent
WIDTH = 600
LINE = 21
_FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_CODE = "ui-monospace, Menlo, Consolas, monospace"


@dataclass(frozen=True, slots=True)
class Colors:
    """The colors of one theme."""

    text: str
    note: str
    box: str
    edge: str
    own: str
    own_edge: str
    refused: str


COLORS = {
    "light": Colors("#24292f", "#57606a", "#f6f8fa", "#8c959f", "#e6f5f3", "#00796b", "#cf222e"),
    "dark": Colors("#e6edf3", "#a5afba", "#21262d", "#768390", "#10302c", "#4db6ac", "#ff7b72"),
}


@dataclass(frozen=True, slots=True)
class Box:
    """A program or a file, with a line of code below its title. `own` marks rootsd's parts."""

    x: int
    y: int
    width: int
    height: int
    title: str
    code: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A dashed border around the boxes that are together in one place."""

    x: int
    y: int
    width: int
    height: int
    title: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A straight arrow with a text at its middle. A refused one is crossed out."""

    x: int
    y: int
    to_x: int
    to_y: int
    text: str = ""
    refused: bool = False


Shape = Box | Frame | Arrow
DIAGRAMS: Mapping[str, tuple[int, Sequence[Shape]]] = {
    "diagram-clients": (
        240,
        (
            Box(5, 20, 150, 80, "You", "rootsd approve"),
            Box(5, 140, 150, 80, "Your projects", "~/src"),
            Box(220, 20, 150, 200, "The daemon", "one list", own=True),
            Box(445, 5, 150, 66, "Claude Code", "rootsd bridge"),
            Box(445, 87, 150, 66, "Cursor", "rootsd bridge"),
            Box(445, 169, 150, 66, "MCP server", "rootsd run"),
            Arrow(155, 60, 218, 60),
            Arrow(155, 180, 218, 180),
            Arrow(370, 38, 443, 38),
            Arrow(370, 120, 443, 120),
            Arrow(370, 202, 443, 202),
        ),
    ),
    "diagram-servers": (
        220,
        (
            Box(5, 130, 130, 70, "Client"),
            Box(235, 130, 130, 70, "rootsd run", own=True),
            Box(465, 130, 130, 70, "Server"),
            Box(235, 5, 130, 60, "The daemon", own=True),
            Arrow(300, 65, 300, 128, "current roots"),
            Arrow(135, 165, 233, 165, "messages"),
            Arrow(365, 165, 463, 165, "and roots"),
        ),
    ),
    "diagram-service": (
        200,
        (
            Box(5, 70, 130, 70, "Clients"),
            Frame(195, 5, 400, 190, "systemd"),
            Box(215, 70, 150, 70, "Sockets", "stay open", own=True),
            Box(425, 70, 150, 70, "The daemon", "starts again", own=True),
            Arrow(135, 105, 213, 105),
            Arrow(365, 105, 423, 105),
        ),
    ),
    "diagram-shell": (
        100,
        (
            Box(5, 15, 150, 70, "The daemon", own=True),
            Box(225, 15, 150, 70, "A small file", "prompt", own=True),
            Box(445, 15, 150, 70, "Your prompt", "3 pending $"),
            Arrow(155, 50, 223, 50, "writes"),
            Arrow(443, 50, 377, 50, "reads"),
        ),
    ),
    "diagram-sandboxes": (
        270,
        (
            Frame(5, 5, 170, 260, "Sandbox"),
            Box(20, 105, 140, 60, "Agent"),
            Box(240, 20, 150, 60, "For clients", "pub/", own=True),
            Box(240, 105, 150, 60, "For you", "ctl/", own=True),
            Box(240, 190, 150, 60, "Decisions", "~/.local/…", own=True),
            Box(455, 20, 140, 230, "The daemon", own=True),
            Arrow(160, 120, 238, 50),
            Arrow(160, 135, 238, 135, refused=True),
            Arrow(160, 150, 238, 220, refused=True),
            Arrow(390, 50, 453, 50),
            Arrow(390, 135, 453, 135),
            Arrow(390, 220, 453, 220),
        ),
    ),
}


def main() -> None:
    """Draw every diagram in both themes."""
    for name in DIAGRAMS:
        for theme in COLORS:
            (TOP / "docs" / f"{name}-{theme}.svg").write_text(draw(name, theme))


def draw(name: str, theme: str) -> str:
    """Return the SVG of a diagram. The same diagram always gives the same picture."""
    height, shapes = DIAGRAMS[name]
    colors = COLORS[theme]
    drawn = "\n".join(line for shape in shapes for line in _shape(shape, colors))
    return f"""<svg viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
text {{ font: 16px {_FONT}; fill: {colors.text}; text-anchor: middle }}
.code {{ font: 14px {_CODE}; fill: {colors.note} }}
.note {{ font-size: 14px; fill: {colors.note} }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="{colors.edge}"/></marker></defs>
{drawn}
</svg>
"""


def _shape(shape: Shape, colors: Colors) -> Iterator[str]:
    match shape:
        case Box():
            yield from _box(shape, colors)
        case Frame():
            yield (
                f'<rect x="{shape.x}" y="{shape.y}" width="{shape.width}"'
                f' height="{shape.height}" rx="8" fill="none" stroke="{colors.edge}"'
                ' stroke-dasharray="6 5" stroke-width="1.5"/>'
            )
            yield _text(shape.x + shape.width / 2, shape.y + LINE + 3, shape.title, "note")
        case Arrow():
            yield from _arrow(shape, colors)


def _box(box: Box, colors: Colors) -> Iterator[str]:
    fill, edge = (colors.own, colors.own_edge) if box.own else (colors.box, colors.edge)
    yield (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"'
        f' fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'
    )
    middle = box.x + box.width / 2
    below = box.y + box.height / 2 + 5
    if not box.code:
        yield _text(middle, below, box.title)
    else:
        yield _text(middle, below - LINE / 2, box.title)
        yield _text(middle, below + LINE / 2, box.code, "code")


def _arrow(arrow: Arrow, colors: Colors) -> Iterator[str]:
    color = colors.refused if arrow.refused else colors.edge
    dashes = ' stroke-dasharray="4 4"' if arrow.refused else ' marker-end="url(#tip)"'
    yield (
        f'<path d="M{arrow.x} {arrow.y}L{arrow.to_x} {arrow.to_y}" stroke="{color}"'
        f' stroke-width="1.8"{dashes}/>'
    )
    x, y = (arrow.x + arrow.to_x) / 2, (arrow.y + arrow.to_y) / 2
    if arrow.refused:
        cross = f"M{x - 7} {y - 7}l14 14M{x + 7} {y - 7}l-14 14"
        yield f'<path d="{cross}" stroke="{color}" stroke-width="2.5"/>'
    elif arrow.text and arrow.x == arrow.to_x:
        yield _text(x + 60, y + 5, arrow.text, "note")
    elif arrow.text:
        yield _text(x, y - 9, arrow.text, "note")


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(text)}</text>'


if __name__ == "__main__":
    main()
