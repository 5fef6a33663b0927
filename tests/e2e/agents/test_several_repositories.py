"""One session of a real agent over three repositories, with its own tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.agents.folder_flags import with_folders
from support.agent_programs import EDITORS, AgentProgram
from support.agent_world import AgentWorld
from support.confined_agents import ConfinedProgram, draw_dot, editing, reading, was_read
from support.sizes import Size

pytestmark = pytest.mark.needs("user-namespaces", "npm", "wall")

ALWAYS = ("claude", "codex")
AT_SOAK = ("gemini", "copilot", "opencode", "qwen")
# Its model learns of a folder from the person.
HAS_NO_FLAG = ("opencode",)


class ToldProgram(ConfinedProgram):
    """An agent without a wall. A person tells it about folders, by its flag if it has one."""

    def __init__(self, program: AgentProgram, folders: list[Path]) -> None:
        super().__init__(program)
        self._folders = map(str, folders)

    def command(self, prompt: str) -> list[str]:
        """Return the words that run one prompt outside."""
        words = self._program.command(prompt)
        return [*(with_folders(words, self._folders) or words)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let most agents take part only in `make soak`."""
    is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
    names = (*ALWAYS, *AT_SOAK) if is_soak else ALWAYS
    metafunc.parametrize("program", [EDITORS[name] for name in names], ids=names)


def test_its_own_tools_work_in_the_added_repositories_only(
    program: AgentProgram, tmp_path: Path
) -> None:
    """The control has no wall, and reads and edits the fourth repository, too."""
    with AgentWorld(tmp_path, ["api", "web", "lib", "secret"]) as world:
        others = [world.parent / name for name in ("web", "lib", "secret")]
        world.rootsd("approve", "api", "web", "lib", "--yes")
        walled = worked_in(world, ConfinedProgram(program, "--add", "web,lib"), others)
        control = worked_in(world, ToldProgram(program, others), others)
    works = (program.name not in HAS_NO_FLAG, True, True)
    assert walled == [works, works, (False, False, False)]
    assert control == [works] * 3


def worked_in(
    world: AgentWorld, program: ConfinedProgram, projects: list[Path]
) -> list[tuple[bool, bool, bool]]:
    """Return for each project: was the model told, was a file read, and was one changed?"""
    script = []
    for project in projects:
        draw_dot(project / "dot.png")
        (project / "README.md").write_text(f"the text of {project.name}\n")
        script += [*reading(program, project)[1:], editing(program, project)]
    model = world.play(program, script, {}, world.parent / "api")
    return [
        (
            str(project) in str(model.requests[0]),
            was_read(program, project, "", model.results[2 * number])[1],
            (project / "README.md").read_text() == f"the edited of {project.name}\n",
        )
        for number, project in enumerate(projects)
    ]
