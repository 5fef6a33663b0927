"""Draw the pictures of terminals in docs/, each on a light and on a dark one.

`make screens` draws what commands print, and the screen of `rootsd ui`, with a real daemon, real
projects, and an MCP client. `make demo` records the moving picture, see record_demo.py. The home
folder is shown as ~, and nothing else is changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from terminal_picture import THEMES, Frame, picture
from textual.app import App

from rootsd.cli.ui.app import RootsdScreen

TOP = Path(__file__).parent.parent
COLUMNS, ROWS = 92, 40
# Runs a command in a home, and returns what a terminal shows.
Shows = Callable[[Path, str], str]
SESSIONS: Mapping[str, Sequence[str]] = {
    "terminal-decide": (
        "rootsd up ~/src",
        "rootsd pending",
        "rootsd approve acme/api web --tag work --yes",
        "rootsd",
    ),
    "terminal-show": ("rootsd show tool", "rootsd why ~/src/acme/api/README"),
    "terminal-exposure": ("rootsd exposure",),
}
SCREEN, SCREEN_SIZE = "screen-ui", (110, 26)
MOVING = "demo"
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
    """Draw the pictures in both themes: those that move, or those that do not."""
    if sys.argv[1:] == [MOVING]:
        import record_demo  # noqa: PLC0415 - it needs more than we do

        for theme in THEMES:
            _write(MOVING, theme, record_demo.picture_of(theme))
        return
    stills = {name: session_of(commands) for name, commands in SESSIONS.items()}
    stills[SCREEN] = screen()
    for name, written in stills.items():
        for theme in THEMES:
            _write(name, theme, still(written, theme))


def _write(name: str, theme: str, drawn: str) -> None:
    (TOP / "docs" / f"{name}-{theme}.svg").write_text(drawn)


def on_terminal(home: Path, command: str) -> str:
    """Return the terminal output of a command of the shell."""
    return shown_on_terminal(("/bin/sh", "-c", command), COLUMNS, home, environment_of(home))


def shown_on_terminal(
    words: Sequence[str], columns: int, folder: Path, environment: Mapping[str, str]
) -> str:
    """Return the terminal output of a command, with standard error."""

    def start(terminal: int) -> Callable[[], object]:
        return subprocess.Popen(
            words, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, cwd=folder
        ).wait

    return shown_by(start, columns)


def shown_by(start: Callable[[int], Callable[[], object]], columns: int) -> str:
    """Return what a process shows on the terminal that `start` gets. It returns a way to wait."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, columns))
    wait = start(theirs)
    os.close(theirs)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the last writer has closed it
            break
        parts.append(part)
    os.close(ours)
    wait()
    lines = b"".join(parts).decode().replace("\r\n", "\n").splitlines(keepends=True)
    # A line of progress is drawn over itself: what is left is what stands behind the last return.
    return "".join(line.rpartition("\r")[2].replace("\x1b[K", "") for line in lines)


def environment_of(home: Path) -> dict[str, str]:
    """Return an environment with only the user's language, and the rootsd of this checkout."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return {
        "HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", "ROOTSD_DIR": str(home / ".rootsd"),
        "TERM": "xterm-256color",
    }  # fmt: skip


def session_of(commands: Sequence[str], shows: Shows = on_terminal) -> str:
    """Return the terminal output of these commands, each after its prompt, in a new home."""
    with a_home(shows) as home:
        return "".join(_session(home, commands, shows)).replace(str(home), "~")


def still(written: str, theme: str) -> str:
    """Return an SVG of a terminal's text."""
    lines = tuple(written.rstrip().splitlines())
    columns = max(COLUMNS, *(Text.from_ansi(line).cell_len for line in lines))
    return picture([Frame(lines)], columns, theme, "rootsd")


def screen(shows: Shows = on_terminal) -> str:
    """Return the text of the screen, with its colors."""
    with a_home(shows) as home, patch.dict(os.environ, environment_of(home), clear=True):
        shows(home, "rootsd up ~/src")
        shows(home, "rootsd approve acme/api --tag work")
        with _a_client(home):
            return asyncio.run(_screen()).replace(str(home), "~")


async def _screen() -> str:
    app = RootsdScreen()
    async with app.run_test(size=SCREEN_SIZE) as pilot, asyncio.timeout(_PATIENCE_S):
        while "1 root  " not in text_of_screen(app):
            await pilot.pause()
        await pilot.press("slash", *"tool", "enter", "escape")
        while "agents run" not in text_of_screen(app):
            await pilot.pause()
        return colored_text_of_screen(app)


def colored_text_of_screen(app: App[Any]) -> str:
    """Return the text on the screen of a running app, with its colors."""
    file = StringIO()
    console = Console(file=file, width=app.size.width, force_terminal=True)
    for line in _lines_of(app):
        console.print(Text.assemble(*((each.text, each.style or "") for each in line)))
    return file.getvalue()


def text_of_screen(app: App[Any]) -> str:
    """Return the text on the screen of a running app, without colors."""
    return "\n".join("".join(each.text for each in line).rstrip() for line in _lines_of(app))


def _lines_of(app: App[Any]) -> list[list[Segment]]:
    # Textual has no public way to read the drawn lines of a screen as text.
    return [list(strip) for strip in app.screen._compositor.render_strips()]  # noqa: SLF001


@contextmanager
def a_home(shows: Shows = on_terminal) -> Iterator[Path]:
    """Yield a home folder with a few projects. At the end, it and its daemon are gone."""
    home = Path(tempfile.mkdtemp(prefix="home-"))
    try:
        for name in ("src/acme/api", "src/beta/api", "src/web"):
            (home / name).mkdir(parents=True)
            _git(home / name, "init", "-q")
            (home / name / "README").write_text("hello\n")
            _git(home / name, "add", "README")
            _git(home / name, "commit", "-qm", "first")
            origin = f"git@example.org:{name.removeprefix('src/')}.git"
            _git(home / name, "remote", "add", "origin", origin)
        tool = home / "src/tool"
        tool.mkdir()
        (tool / "pyproject.toml").write_text('[project]\nname = "tool"\n')
        (tool / ".env").write_text("KEY=value\n")
        (tool / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "x"}}}\n')
        _set_up_agents(home)
        _let_us_decide(home, shows)
        yield home
    finally:
        shows(home, "rootsd down")
        shutil.rmtree(home)


def _set_up_agents(home: Path) -> None:
    """Write settings of three agents, as a person has them before rootsd."""
    (home / ".ssh").mkdir()
    npx = home / ".local/bin/npx"
    server = {"command": str(npx), "args": ["-y", "@acme/issues"]}
    rules = {"deny": ["Read(~/.shh/**)"], "additionalDirectories": ["~/src/web"]}
    texts = {
        ".local/bin/npx": "#!/bin/sh\n",
        ".claude.json": json.dumps({"mcpServers": {"issues": server}}, indent=2),
        ".claude/settings.json": json.dumps({"permissions": rules}, indent=2),
        ".codex/config.toml": 'sandbox_mode = "danger-full-access"\n',
        ".gemini/settings.json": "{}\n",
    }
    for name, text in texts.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    npx.chmod(0o755)


def _let_us_decide(home: Path, shows: Shows) -> None:
    """Make the guard know this program, which types the commands, in a person's place."""
    config = home / ".rootsd/config/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[approval]\nguard = "off"\n')
    empty = home / "empty"
    empty.mkdir()
    shows(home, "rootsd up ~/empty")
    shows(home, f"rootsd guard allow {__file__}")
    shows(home, "rootsd guard agents")
    shows(home, "rootsd parent rm ~/empty")
    shows(home, "rootsd down")
    empty.rmdir()
    config.unlink()


def _session(home: Path, commands: Sequence[str], shows: Shows) -> Iterator[str]:
    """Return the output of each command, after its prompt."""
    if commands[0].split()[1] != "up":
        shows(home, "rootsd up ~/src")
        shows(home, "rootsd approve acme/api")
    for command in commands:
        yield f"\x1b[1;34m$\x1b[0m \x1b[1m{command}\x1b[0m\n"
        yield shows(home, command) + "\n"


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    command = ["git", *identity, "-c", "init.defaultBranch=main", "-C", str(folder), *words]
    subprocess.run(command, check=True, capture_output=True)


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
