"""Draw docs/terminal-*.svg: the real output of rootsd, on a light and on a dark terminal.

`make screens` runs this. Each picture shows one shell session in its own home folder. The commands
run on a terminal, and their output is drawn with its colors. The home folder is shown as ~, and
nothing else is changed.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TOP = Path(__file__).parent.parent
COLUMNS, ROWS = 92, 40
# Runs a command in a home, and returns what a terminal shows.
Shows = Callable[[Path, str], str]
PICTURES: Mapping[str, Sequence[str]] = {
    "terminal-decide": (
        "rootsd up ~/src",
        "rootsd pending",
        "rootsd approve acme/api web --tag work --yes",
        "rootsd",
    ),
    "terminal-show": ("rootsd show tool", "rootsd why ~/src/acme/api/README"),
    "terminal-exposure": ("rootsd exposure",),
}
_GREY = [(110, 110, 110), (180, 180, 180)]
THEMES = {
    "light": TerminalTheme(
        (255, 255, 255), (36, 41, 47),
        [(36, 41, 47), (207, 34, 46), (17, 99, 41), (154, 103, 0), (9, 105, 218),
         (130, 80, 223), (27, 124, 131), _GREY[0]],
    ),
    "dark": TerminalTheme(
        (22, 27, 34), (201, 209, 217),
        [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255),
         (188, 140, 255), (57, 197, 207), _GREY[1]],
    ),
}  # fmt: skip


def main() -> None:
    """Draw every picture in both themes."""
    for name, commands in PICTURES.items():
        written = session_of(commands)
        for theme in THEMES:
            (TOP / "docs" / f"{name}-{theme}.svg").write_text(draw(written, theme))


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


def draw(written: str, theme: str) -> str:
    """Return an SVG of a terminal's text. The same text always gives the same picture."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(written.rstrip()))
    return svg_of(console, theme)


def svg_of(console: Console, theme: str) -> str:
    """Return an SVG of what a console has recorded."""
    # No font from another site: a picture in a README loads nothing, and reports no reader.
    own_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    own_fonts = own_fonts.replace("<svg ", '<svg xml:space="preserve" ', 1)
    own_fonts = own_fonts.replace("Fira Code", "ui-monospace, Menlo, Consolas, monospace")
    return console.export_svg(
        title="rootsd", theme=THEMES[theme], code_format=own_fonts, unique_id="rootsd"
    )


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


if __name__ == "__main__":
    main()
