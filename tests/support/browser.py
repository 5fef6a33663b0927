"""What a real browser draws of a picture: each character, and where it is.

The picture is as wide as a picture in a README. Chromium runs without a window, and its own
layout says where each character is. A moving picture stands still at each time of interest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text
from terminal_picture import CELL_HEIGHT, CELL_WIDTH, MARGIN

from support.needs import BROWSERS

README_WIDTH = 830
MISPLACED = "\ufffd"
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    f"--window-size={README_WIDTH},1000", "--dump-dom",
)  # fmt: skip
_TIMEOUT_S = 180
_TOLERANCE = 0.2
_PAGE = """<!DOCTYPE html><meta charset="utf-8">
<body style="margin:0; width:%(width)spx"><pre id="result"></pre><script>
const charactersOf = (svg, origin, scale) => {
  const nodes = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT), found = [];
  while (nodes.nextNode()) {
    const node = nodes.currentNode, style = getComputedStyle(node.parentElement);
    if (!node.parentElement.closest("text") || style.visibility !== "visible") continue;
    for (let n = 0; n < node.length; n++) {
      const range = document.createRange();
      range.setStart(node, n);
      range.setEnd(node, n + 1);
      for (const box of range.getClientRects()) {
        const across = [box.left - origin.left, box.right - origin.left];
        const down = [box.top - origin.top, box.bottom - origin.top];
        found.push([node.data[n], ...[...across, ...down].map((place) => place / scale),
                    parseFloat(style.fontSize) * scale]);
      }
    }
  }
  return found;
};
const result = %(pictures)s.map(([text, times]) => {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  svg.style.width = "100%%";
  svg.style.height = "auto";
  document.body.append(svg);
  const origin = svg.getBoundingClientRect();
  const scale = origin.width / svg.viewBox.baseVal.width;
  const moments = times.map((seconds) => {
    for (const each of document.getAnimations()) {
      each.pause();
      each.currentTime = seconds * 1000;
    }
    return charactersOf(svg, origin, scale);
  });
  svg.remove();
  return moments;
});
document.getElementById("result").textContent = JSON.stringify(result);
</script>"""


class Character(NamedTuple):
    """A character, its box in units of the picture, and the size of its font in pixels."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    font_pixels: float


def characters_in_browser(
    pictures: Sequence[tuple[str, Sequence[float]]],
) -> list[list[list[Character]]]:
    """Return the visible characters of each SVG at each of its times, which are in seconds."""
    program = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        # A tag in a picture would end the script.
        data = json.dumps(pictures).replace("</", "<\\/")
        page.write_text(_PAGE % {"width": README_WIDTH, "pictures": data})
        done = subprocess.run(
            [program, *_OPTIONS, f"--user-data-dir={folder}/user", page.as_uri()],
            capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
            env={**os.environ, "HOME": folder},
        )  # fmt: skip
    found = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, f"{done.returncode} {done.stdout[-500:]} {done.stderr[-2000:]}"
    return [
        [[Character(*each) for each in moment] for moment in moments]
        for moments in json.loads(unescape(found[1]))
    ]


def lines_of(lines: Sequence[str]) -> list[str]:
    """Return the text of a terminal's lines, which have escape sequences."""
    texts = [Text.from_ansi(line).plain.replace("\u00a0", " ").rstrip() for line in lines]
    while texts and not texts[-1]:
        del texts[-1]
    return texts


def rows_of(characters: Sequence[Character]) -> list[str]:
    """Return the rows of text that a person sees, as far as each character is in its own cells.

    A character that is between two cells, over another one, or cut off is MISPLACED.
    """
    rows: dict[int, dict[int, str]] = {}
    for each in characters:
        cells = cell_len(each.text)
        column = (each.left - MARGIN) / CELL_WIDTH
        end = (each.right - MARGIN) / CELL_WIDTH
        row = ((each.top + each.bottom) / 2 - MARGIN) / CELL_HEIGHT
        is_placed = (
            min(column, row) > -_TOLERANCE
            and abs(column - round(column)) < _TOLERANCE
            and end - round(column) - cells < _TOLERANCE
            and abs(row % 1 - 0.5) < _TOLERANCE
        )
        line = rows.setdefault(int(row), {})
        is_free = round(column) not in line
        line[round(column)] = each.text if is_placed and is_free else MISPLACED
        line.update({round(column) + more: "" for more in range(1, cells)})
    return [_text_of(rows.get(row, {})) for row in range(max(rows, default=-1) + 1)]


def _text_of(line: Mapping[int, str]) -> str:
    return "".join(line.get(column, " ") for column in range(max(line, default=-1) + 1)).rstrip()
