"""Record the moving picture: a person sees what an agent can reach, and puts it behind the wall.

A real Claude Code, with a scripted model, runs in `rootsd confine`. It needs another project,
cannot open it, and asks for it. In a second terminal, a person approves. At the end, the person
reads the report. The text is what the terminals showed. Only the path of the temporary home is
shown as ~, pauses are cut, and the first line says what happens.

Needs Linux with user namespaces, tmux, and npm. See tests/support/agent_world.py.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from terminal_picture import Frame, picture

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

from support.agent_programs import ClaudeCode  # noqa: E402
from support.agent_world import AgentWorld  # noqa: E402
from support.polling import until  # noqa: E402
from support.scripted_model import Call, ScriptedModel, Shell  # noqa: E402

TITLE = "An agent behind the wall asks for a project, a person approves it, and reads the report"
_TMUX = ("tmux", "-L", "demo", "-f", "/dev/null")
COLUMNS, ROWS = 80, 22
AGENT, PERSON = ":0.0", ":0.1"
TESTS = "sh ~/src/shop/test.sh"
NOTED = f"{TESTS} | tee tests.txt"
_NO_DOWNLOADS = {"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1"}
SCRIPT = "echo 3 tests passed\n"
PROMPT = r"\[\e[1;36m\]$\[\e[0m\] "


@dataclass
class Scene:
    """Two terminals in one tmux, and the frames so far. Each frame shows one of the terminals."""

    world: AgentWorld
    variables: dict[str, str]
    frames: list[Frame] = field(default_factory=list)
    seen: str = AGENT
    heading: str = ""

    def open(self) -> None:
        """Start two shells side by side."""
        shell = ("env", f"PS1={PROMPT}", "bash", "--norc", "-i")
        size = ("-x", str(2 * COLUMNS + 1), "-y", str(ROWS))
        self._tmux("new-session", "-d", *size, *shell)
        self._tmux("split-window", "-h", *shell)
        self._tmux("set", "-g", "window-size", "manual")
        self.world.attach(*_TMUX)
        until(lambda: self.text(AGENT).startswith("$") and self.text(PERSON).startswith("$"))

    def text(self, pane: str) -> str:
        """Return the text of a side without colors."""
        return self._tmux("capture-pane", "-p", "-t", pane)

    def turn_to(self, pane: str, heading: str) -> None:
        """Show this terminal from now on, below a line that says what happens."""
        self.seen, self.heading = pane, heading

    def send(self, *keys: str) -> None:
        """Press keys."""
        self._tmux("send-keys", "-t", self.seen, *keys)

    def type(self, command: str) -> None:
        """Type a command at the prompt, with a frame after each word, and press Enter."""
        self.wait("$")
        typed = "$"
        for word in command.split(" "):
            self.send("-l", "--", f" {word}" if typed != "$" else word)
            typed += f" {word}"
            self.wait(typed, 0.15)
        self.show(0.3)
        self.send("Enter")

    def wait(self, end: str, seconds: float = 0.0) -> None:
        """Wait until the text on the terminal ends so, and show it for this time."""
        self.wait_until(lambda: self.text(self.seen).rstrip().endswith(end), seconds)

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for `condition`, and show what is there then for this time."""
        until(condition)
        if seconds:
            self.show(seconds)

    def show(self, seconds: float) -> None:
        """Show what is on the terminal now for this time."""
        heading = f"\x1b[1;7;36m {self.heading:{COLUMNS - 1}}\x1b[0m"
        self.frames.append(Frame((heading, *self._lines()), seconds))

    def wait_for(self, text: str, seconds: float) -> None:
        """Wait until the text is on the terminal, and show it for this time."""
        self.wait_until(lambda: text in self.text(self.seen), seconds)

    def _lines(self) -> tuple[str, ...]:
        shown = self._tmux("capture-pane", "-p", "-e", "-t", self.seen)
        return tuple(shown.replace(str(self.world.home), "~").splitlines()[:ROWS])

    def _tmux(self, *words: str) -> str:
        return self.world.user.run((*_TMUX, *words), self.variables, self.world.home).output


def picture_of(theme: str) -> str:
    """Play the scene, and return it as an SVG."""
    return picture(record(theme), COLUMNS, theme, TITLE)


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
            program = ClaudeCode()
            model = world.model([])
            try:
                program.configure(world.home, {"rootsd": world.bridge()}, model.url)
                environment = {**program.environment(model.url), **_NO_DOWNLOADS}
                _set_up(world.home, theme, environment["ANTHROPIC_API_KEY"])
                variables = {**world.variables(program.packages), **environment}
                return _play(Scene(world, variables), model)
            finally:
                model.close()


def _set_up(home: Path, theme: str, key: str) -> None:
    """Write the settings of a person who lets Claude Code do anything, past its questions."""
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
    texts = {
        ".claude/settings.json": json.dumps(
            {
                "permissions": {"defaultMode": "bypassPermissions"},
                "skipDangerousModePermissionPrompt": True,
            }
        ),
        ".ssh/id_ed25519": "a key\n",
        ".aws/credentials": "another key\n",
    }
    for name, text in texts.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)


def _play(scene: Scene, model: ScriptedModel) -> list[Frame]:
    shop = {"path": str(scene.world.home / "src" / "shop"), "wait_seconds": 120}
    model.script += [
        Shell(TESTS),
        Call("request_root", {**shop, "reason": "to run its tests"}),
        Shell(NOTED),
    ]
    model.last_words = "All tests of the shop pass. I noted that in tests.txt."
    scene.open()
    scene.turn_to(PERSON, "")
    scene.send("rootsd approve api && clear", "Enter")
    until(lambda: scene.world.published() == {"api"})
    scene.turn_to(AGENT, "1  See what your agents can reach.")
    scene.send("cd ~/src/api && clear", "Enter")
    scene.wait_until(lambda: scene.text(AGENT).strip() == "$", 0.0)
    scene.send("rootsd exposure", "Enter")
    scene.wait_for("Each reason", 3.2)
    scene.turn_to(AGENT, "2  Start your agent behind the wall, in one project.")
    scene.send("C-l")
    scene.type("rootsd confine -- claude")
    scene.wait_for("Claude Code", 0.8)
    scene.send("-l", "Run the tests of ~/src/shop")
    scene.wait_for("tests of ~/src/shop", 0.8)
    scene.send("Enter")
    scene.turn_to(AGENT, "3  It cannot open another project, so it asks for it.")
    scene.wait_for("cannot open", 1.4)
    scene.wait_for("waiting for the user", 1.4)
    scene.turn_to(PERSON, "4  In another terminal, you decide.")
    scene.type("rootsd pending shop")
    scene.wait("$", 2.2)
    scene.type("rootsd approve shop")
    scene.wait("$", 1.4)
    scene.turn_to(AGENT, "5  The agent goes on at once.")
    scene.wait_for(model.last_words, 2.2)
    scene.turn_to(AGENT, "6  At the end, you see what it did.")
    scene.send("-l", "/exit")
    scene.wait_for("/exit", 0.0)
    scene.send("Enter")
    scene.wait_for("the whole report", 0.0)
    scene.send("C-l")
    scene.type("rootsd sessions --report claude")
    scene.wait("$", 3.6)
    return scene.frames
