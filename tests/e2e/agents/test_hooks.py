"""`rootsd connect --hook` and real agents: a file tool is refused in a denied folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rootsd.wall.git.left_behind import SessionEnd
from rootsd.wall.git.session_baseline import SessionBaseline
from support.agent_programs import (
    AgentProgram,
    ClaudeCode,
    Codex,
    CopilotCli,
    GeminiCli,
    QwenCode,
    Servers,
)
from support.agent_world import ROOTSD, AgentWorld
from support.scripted_model import Call, Shell, Step

pytestmark = pytest.mark.needs("user-namespaces", "npm")
REASON = "a person denied this folder"


class TrustingCodex(Codex):
    """Codex that runs a hook which nobody has reviewed."""

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        *words, prompt = super().command(prompt)
        return [*words, "--dangerously-bypass-hook-trust", prompt]


@dataclass
class Wide:
    """Gemini CLI or Qwen Code with all folders in its workspace, which it would not leave."""

    program: AgentProgram
    folder: str

    def __getattr__(self, name: str) -> object:
        return getattr(self.program, name)

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt."""
        program, *words = self.program.command(prompt)
        return [program, "--include-directories", self.folder, *words]


@dataclass
class Connected:
    """A program whose own settings get the hook after they were written.

    `after` may change them once more.
    """

    program: AgentProgram
    world: AgentWorld
    flags: tuple[str, ...] = ()
    after: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> object:
        return getattr(self.program, name)

    def configure(self, home: Path, servers: Servers, model: str) -> None:
        """Write the settings, and connect the client as a person does."""
        self.program.configure(home, servers, model)
        name = {"claude": "claude-code"}.get(self.program.name, self.program.name)
        self.world.rootsd("connect", name, "--hook", *self.flags)
        self.after()


def read(file: Path) -> Step:
    """Return a step that reads `file` with the tool of most programs."""
    return Call("read_file", {"absolute_path": str(file), "file_path": str(file)})


def view(file: Path) -> Step:
    """Return a step that reads `file` with the tool of Copilot CLI."""
    return Call("view", {"path": str(file)})


def patch(file: Path) -> Step:
    """Return a step that edits `file` with a patch, as Codex does."""
    lines = f"*** Begin Patch\n*** Update File: {file}\n@@\n-the text\n+x\n*** End Patch\n"
    return Shell(f"apply_patch <<'EOF'\n{lines}EOF\n")


@pytest.mark.parametrize(
    ("program", "step", "proof"),
    [
        (TrustingCodex(), patch, "Updated the following files"),
        (CopilotCli(), view, "the text"),
        (GeminiCli(), read, "the text"),
        (QwenCode(), read, "the text"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_its_file_tool_is_refused_in_a_denied_folder(
    tmp_path: Path, program: AgentProgram, step: Callable[[Path], Step], proof: str
) -> None:
    """The first session has no hook, so the hook is the reason for the refusal in the second."""
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        world.rootsd("deny", "secret")
        file = world.parent / "secret" / "notes.txt"
        file.write_text("the text\n")
        if isinstance(program, GeminiCli | QwenCode):
            program = Wide(program, str(world.parent))  # type: ignore[assignment]
        free = world.play(program, [step(file)], {}, world.parent / "api").results[0]
        file.write_text("the text\n")
        hooked: AgentProgram = Connected(program, world)  # type: ignore[assignment]
        refused = world.play(hooked, [step(file)], {}, world.parent / "api").results[0]
        assert file.read_text() == "the text\n"
    assert (proof in free, REASON in free) == (True, False), free
    assert (proof in refused, REASON in refused) == (False, True), refused


@pytest.mark.parametrize(("flags", "is_refused"), [(("--strict",), True), ((), False)])
def test_claude_code_reads_nothing_without_the_program_of_a_strict_hook(
    tmp_path: Path, flags: tuple[str, ...], *, is_refused: bool
) -> None:
    """The hook that is there allows one folder and refuses the other. A missing one is silent."""
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        world.rootsd("deny", "secret")
        script = [
            Call("Read", {"file_path": str(world.parent / name / "README.md")})
            for name in ("api", "secret")
        ]
        settings = world.home / ".claude" / "settings.json"

        def remove_program() -> None:
            text = settings.read_text()
            settings.write_text(text.replace(f"{ROOTSD} hook", f"{ROOTSD}-gone hook"))

        hooked = Connected(ClaudeCode(), world, flags)
        there = world.play(hooked, script, {}, world.parent / "api").results  # type: ignore[arg-type]
        hooked.after = remove_program
        gone = world.play(hooked, script, {}, world.parent / "api").results  # type: ignore[arg-type]
        theirs = world.parent / "api" / ".claude" / "settings.json"
        theirs.parent.mkdir()
        theirs.write_text('{"disableAllHooks": true}')
        off = world.play(hooked, script, {}, world.parent / "api").results  # type: ignore[arg-type]
    assert ["the text of" in there[step] for step in (0, 1)] == [True, False], there
    assert REASON in there[1]
    assert ["the text of" in gone[step] for step in (0, 1)] == [not is_refused] * 2, gone
    assert ["the text of" in off[step] for step in (0, 1)] == [True, True], "docs/SYNC.md says so"


def test_claude_code_asks_about_unreviewed_changes_once_and_does_nothing_before_an_answer(
    tmp_path: Path,
) -> None:
    """Nobody can answer here, so its first call is refused, with the question as the reason."""
    with AgentWorld(tmp_path, ["api"]) as world:
        world.rootsd("approve", "api")
        api = world.parent / "api"
        read = Call("Read", {"file_path": str(api / "README.md")})
        hooked = Connected(ClaudeCode(), world, ("--confine", "claude"))
        before = world.play(hooked, [read], {}, api).results  # type: ignore[arg-type]
        baseline = SessionBaseline(os.fsencode(world.directory / "state/confine/claude/0"))
        baseline.add([os.fsencode(api)])
        (api / ".envrc").write_text("planted\n")
        baseline.conclude(SessionEnd.ORDERLY)
        after = world.play(hooked, [read, read], {}, api).results  # type: ignore[arg-type]
    asked = "changed .envrc behind the wall"
    assert ("the text of api" in before[0], asked in before[0]) == (True, False), before
    assert ("the text of api" in after[0], asked in after[0]) == (False, True), after
    assert ("the text of api" in after[1], asked in after[1]) == (True, False), after
