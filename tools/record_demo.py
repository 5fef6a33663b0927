"""Record docs/demo-*.svg: a real Claude Code behind the wall, and a person who decides beside it.

`make demo` runs this. On the left side of the terminal, Claude Code runs in `rootsd confine`, with
a scripted model. It needs another project, cannot see it, and asks for the folder. On the right
side, a person approves the folder, and later denies it. The text of the terminals is what they
showed. Only the path of the temporary home is shown as ~, and pauses are cut.

Needs Linux with user namespaces, tmux, and npm. See tests/support/agent_world.py.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP / "tests")]

from draw_terminal import THEMES  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import TerminalTheme  # noqa: E402
from rich.text import Text  # noqa: E402

from support.agent_programs import ClaudeCode  # noqa: E402
from support.agent_world import AgentWorld  # noqa: E402
from support.polling import until  # noqa: E402
from support.scripted_model import Call, ScriptedModel, Shell  # noqa: E402

_TMUX = ("tmux", "-L", "demo", "-f", "/dev/null")
COLUMNS, ROWS = 72, 24
AGENT, PERSON = ":0.0", ":0.1"
TESTS = "sh ~/src/shop/test.sh"
SCRIPT = "echo 3 tests passed\n"
CELL_WIDTH, CELL_HEIGHT = 8.0, 17.0
GAP, BAR = 16.0, 34.0
_CONSOLE = Console()


class Frame(NamedTuple):
    """The lines of both sides, with their escape sequences, and how long they are shown."""

    agent: tuple[str, ...]
    person: tuple[str, ...]
    seconds: float


@dataclass
class Scene:
    """Both sides in one tmux, and the frames so far."""

    world: AgentWorld
    variables: dict[str, str]
    frames: list[Frame] = field(default_factory=list)

    def open(self) -> None:
        """Start two shells side by side."""
        shell = ("env", "PS1=$ ", "bash", "--norc", "-i")
        size = ("-x", str(2 * COLUMNS + 1), "-y", str(ROWS))
        self._tmux("new-session", "-d", *size, *shell)
        self._tmux("split-window", "-h", *shell)
        self._tmux("set", "-g", "window-size", "manual")
        self.world.attach(*_TMUX)
        until(lambda: self.text(AGENT).startswith("$") and self.text(PERSON).startswith("$"))

    def text(self, pane: str) -> str:
        """Return the text of a side without colors."""
        return self._tmux("capture-pane", "-p", "-t", pane)

    def send(self, pane: str, *keys: str) -> None:
        """Press keys."""
        self._tmux("send-keys", "-t", pane, *keys)

    def type(self, pane: str, words: str) -> None:
        """Type `words`, with a frame after each word, and press Enter."""
        for word in words.split(" "):
            self.send(pane, "-l", "--", f"{word} ")
            until(lambda word=word: word in self.text(pane))  # type: ignore[misc]
            self.show(0.2)
        self.send(pane, "BSpace")
        self.show(0.4)
        self.send(pane, "Enter")

    def show(self, seconds: float) -> None:
        """Add a frame of what is there now."""
        self.frames.append(Frame(self._lines(AGENT), self._lines(PERSON), seconds))

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for `condition`, then add a frame."""
        until(condition)
        self.show(seconds)

    def _lines(self, pane: str) -> tuple[str, ...]:
        shown = self._tmux("capture-pane", "-p", "-e", "-t", pane)
        return tuple(shown.replace(str(self.world.home), "~").splitlines()[:ROWS])

    def _tmux(self, *words: str) -> str:
        return self.world.user.run((*_TMUX, *words), self.variables, self.world.home).output


def main() -> None:
    """Record the scene once for each theme."""
    for theme, colors in THEMES.items():
        frames = record(theme)
        (TOP / "docs" / f"demo-{theme}.svg").write_text(animate(frames, colors))


def record(theme: str) -> list[Frame]:
    """Play the scene, and return its frames."""
    # A short path, because lines wrap by it.
    with tempfile.TemporaryDirectory(prefix="", dir="/var/tmp") as folder:
        home = Path(folder) / "home"
        with AgentWorld(Path(folder), []) as world:
            for name in ("api", "shop"):
                world.parent = home / "src"
                world.parent.mkdir(exist_ok=True)
                world.make_project(name)
            (home / "src" / "shop" / "test.sh").write_text(SCRIPT)
            world.rootsd("up", str(home / "src"))
            until(lambda: len(world.items("pending")) == 2)  # noqa: PLR2004 - both projects
            world.rootsd("approve", "api")
            program = ClaudeCode()
            model = world.model([])
            try:
                program.configure(world.home, {"rootsd": world.bridge()}, model.url)
                environment = program.environment(model.url)
                _answer_first_questions(world.home, theme, environment["ANTHROPIC_API_KEY"])
                variables = {**world.variables(program.packages), **environment}
                return _play(Scene(world, variables), model)
            finally:
                model.close()


def _answer_first_questions(home: Path, theme: str, key: str) -> None:
    """Write what Claude Code would otherwise ask at its first start."""
    file = home / ".claude.json"
    answers = {
        "hasCompletedOnboarding": True,
        "theme": theme,
        "verbose": True,
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [key[-20:]]},
        "projects": {str(home / "src" / "api"): {"hasTrustDialogAccepted": True}},
    }
    file.write_text(json.dumps(json.loads(file.read_text()) | answers))


def _play(scene: Scene, model: ScriptedModel) -> list[Frame]:
    shop = {"path": str(scene.world.home / "src" / "shop"), "wait_seconds": 120}
    model.script += [
        Shell(TESTS),
        Call("request_root", {**shop, "reason": "to run its tests"}),
        Shell(TESTS),
    ]
    model.last_words = "All tests of the shop pass."
    scene.open()
    scene.send(AGENT, "cd ~/src/api && clear", "Enter")
    scene.show(1.0)
    scene.type(AGENT, "rootsd confine -- claude --dangerously-skip-permissions")
    scene.wait(lambda: "Claude Code" in scene.text(AGENT), 1.2)
    scene.send(AGENT, "-l", "Run the tests of the shop")
    scene.wait(lambda: "tests of the shop" in scene.text(AGENT), 1.2)
    scene.send(AGENT, "Enter")
    scene.wait(lambda: "cannot open" in scene.text(AGENT), 2.5)
    scene.wait(lambda: "waiting for the user" in scene.text(AGENT), 1.5)
    scene.type(PERSON, "rootsd pending shop")
    scene.wait(lambda: "asks for it" in scene.text(PERSON), 3.0)
    scene.type(PERSON, "rootsd approve shop")
    scene.wait(lambda: model.last_words in scene.text(AGENT), 4.0)
    scene.type(PERSON, "rootsd deny shop")
    until(
        lambda: not any(item["name"] == "shop" for item in scene.world.items("ls", "--published"))
    )
    scene.show(1.5)
    model.script.append(Shell(TESTS))
    model.last_words = "The folder is gone again."
    scene.send(AGENT, "-l", "Run them again")
    scene.wait(lambda: "Run them again" in scene.text(AGENT), 1.0)
    scene.send(AGENT, "Enter")
    scene.wait(lambda: model.last_words in scene.text(AGENT), 5.0)
    return scene.frames


def animate(frames: Sequence[Frame], theme: TerminalTheme) -> str:
    """Return an SVG that shows the frames one after the other, again and again.

    Each different line is drawn once, and is visible in the frames that have it. Without motion,
    only the last frame is shown.
    """
    ends = [sum(frame.seconds for frame in frames[: n + 1]) for n in range(len(frames))]
    seen: dict[tuple[int, int, str], list[int]] = {}
    for number, frame in enumerate(frames):
        for side, lines in enumerate((frame.agent, frame.person)):
            for row, line in enumerate(lines):
                if line.strip():
                    seen.setdefault((side, row, line), []).append(number)
    rules, drawn = [], []
    for index, ((side, row, line), shown) in enumerate(seen.items()):
        if len(shown) < len(frames):
            rules.append(_keyframes(index, shown, ends))
        hidden = "" if len(frames) - 1 in shown else ' visibility="hidden"'
        drawn.append(f'<g class="k{index}"{hidden}>{_drawn(side, row, line, theme)}</g>')
    return _svg(rules, drawn, ends[-1], theme)


def _keyframes(index: int, shown: Sequence[int], ends: Sequence[float]) -> str:
    """Return the CSS that shows a line in the frames `shown`."""
    total = ends[-1]
    steps = ["0%{visibility:hidden}"]
    for number in range(len(ends)):
        is_shown, was_shown = number in shown, number - 1 in shown
        if is_shown != was_shown:
            start = ends[number - 1] / total * 100 if number else 0.0
            steps.append(f"{start:.2f}%{{visibility:{'visible' if is_shown else 'hidden'}}}")
    return f"@keyframes k{index}{{{''.join(steps)}}}.k{index}{{animation-name:k{index}}}"


def _drawn(side: int, row: int, line: str, theme: TerminalTheme) -> str:
    x = GAP + side * (COLUMNS * CELL_WIDTH + 2 * GAP)
    y = BAR + row * CELL_HEIGHT
    shapes, spans = [], []
    for start, text, color, background, is_bold in _segments(line, theme):
        left = x + start * CELL_WIDTH
        if background:
            size = f'width="{len(text) * CELL_WIDTH:.0f}" height="{CELL_HEIGHT:.0f}"'
            shapes.append(f'<rect x="{left:.0f}" y="{y:.0f}" {size} fill="{background}"/>')
        if text.strip():
            weight = ' font-weight="bold"' if is_bold else ""
            length = f'textLength="{len(text) * CELL_WIDTH:.0f}"'
            spans.append(
                f'<tspan x="{left:.0f}" {length} fill="{color}"{weight}>{escape(text)}</tspan>'
            )
    words = f'<text y="{y + 13:.0f}">{"".join(spans)}</text>' if spans else ""
    return "".join(shapes) + words


def _segments(line: str, theme: TerminalTheme) -> Iterator[tuple[int, str, str, str, bool]]:
    """Yield the parts of a line: column, text, color, background or nothing, and if it is bold."""
    text = Text.from_ansi(line)
    plain = text.plain
    styles = [text.get_style_at_offset(_CONSOLE, offset) for offset in range(len(plain))]
    start = 0
    for offset in range(1, len(plain) + 1):
        if offset < len(plain) and styles[offset] == styles[start]:
            continue
        style = styles[start]
        front, back = style.color, style.bgcolor
        color = front.get_truecolor(theme).hex if front else theme.foreground_color.hex
        background = back.get_truecolor(theme, foreground=False).hex if back else ""
        if style.reverse:
            color, background = background or theme.background_color.hex, color
        yield start, plain[start:offset], color, background, bool(style.bold)
        start = offset


def _svg(rules: Sequence[str], drawn: Sequence[str], seconds: float, theme: TerminalTheme) -> str:
    width = 2 * (COLUMNS * CELL_WIDTH) + 4 * GAP
    height = BAR + ROWS * CELL_HEIGHT + GAP
    middle = width / 2
    paper, ink = theme.background_color.hex, theme.foreground_color.hex
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">
<title>An agent asks for a folder, a person approves it, and later denies it</title>
<style>g{{animation:{seconds:.1f}s step-end infinite}}
@media (prefers-reduced-motion: reduce){{g{{animation:none}}}}
{chr(10).join(rules)}</style>
<rect width="100%" height="100%" rx="8" fill="{paper}"/>
<text x="{GAP:.0f}" y="20" fill="{ink}" opacity="0.7">an agent</text>
<text x="{middle + GAP:.0f}" y="20" fill="{ink}" opacity="0.7">a person</text>
<line x1="{middle:.0f}" y1="10" x2="{middle:.0f}" y2="{height - 10:.0f}" stroke="{ink}" \
opacity="0.3"/>
{chr(10).join(drawn)}
</svg>
"""


if __name__ == "__main__":
    main()
