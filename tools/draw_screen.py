"""Draw docs/screen-ui-*.svg: the screen of `rootsd ui`, on a light and on a dark terminal.

`make screens` runs this. The screen runs without a terminal, but with a real daemon, real
projects, and an MCP client. The home folder is shown as ~, and nothing else is changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from draw_terminal import THEMES, TOP, Shows, a_home, environment_of, on_terminal, svg_of
from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from textual.app import App

from rootsd.cli.ui.app import RootsdScreen

NAME = "screen-ui"
SIZE = (112, 30)
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "claude-code", "version": "1"},
}
_MESSAGES: Sequence[Mapping[str, Any]] = (
    {"id": 1, "method": "initialize", "params": _INITIALIZE},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "list_roots", "arguments": {}}},
)
_PATIENCE_S = 60


def main() -> None:
    """Draw the screen in both themes."""
    for theme, picture in draw_screens().items():
        (TOP / "docs" / f"{NAME}-{theme}.svg").write_text(picture)


def draw_screens(shows: Shows = on_terminal) -> Mapping[str, str]:
    """Return the picture of the screen in each theme."""
    with a_home(shows) as home, patch.dict(os.environ, environment_of(home), clear=True):
        shows(home, "rootsd up ~/src")
        shows(home, "rootsd approve acme/api --tag work")
        with _a_client(home):
            pictures = asyncio.run(_pictures())
    return {theme: picture.replace(str(home), "~") for theme, picture in pictures.items()}


async def _pictures() -> Mapping[str, str]:
    app = RootsdScreen()
    async with app.run_test(size=SIZE) as pilot, asyncio.timeout(_PATIENCE_S):
        while "1 root," not in text_of_screen(app):
            await pilot.pause()
        await pilot.press("slash", *"tool", "enter", "escape")
        while ".mcp.json" not in text_of_screen(app):
            await pilot.pause()
        return {theme: draw_screen(app, theme) for theme in THEMES}


def draw_screen(app: App[Any], theme: str) -> str:
    """Return an SVG of the screen of a running app."""
    console = Console(record=True, width=app.size.width, file=StringIO(), force_terminal=True)
    for line in _lines_of(app):
        console.print(Text.assemble(*((each.text, each.style or "") for each in line)))
    return svg_of(console, theme)


def text_of_screen(app: App[Any]) -> str:
    """Return the text on the screen of a running app, without colors."""
    return "\n".join("".join(each.text for each in line).rstrip() for line in _lines_of(app))


def _lines_of(app: App[Any]) -> list[list[Segment]]:
    # Textual has no public way to read the drawn lines of a screen as text.
    return [list(strip) for strip in app.screen._compositor.render_strips()]  # noqa: SLF001


@contextmanager
def _a_client(home: Path) -> Iterator[None]:
    """Run an MCP client that has got its roots."""
    client = subprocess.Popen(
        [sys.executable, "-m", "rootsd", "bridge"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment_of(home),
    )  # fmt: skip
    with client:
        assert client.stdin is not None
        assert client.stdout is not None
        for message in _MESSAGES:
            client.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            client.stdin.flush()
            if "id" in message:
                client.stdout.readline()
        yield
        client.stdin.close()


if __name__ == "__main__":
    main()
