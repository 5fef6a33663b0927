"""Real agent programs behind the wall, with no option."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from support.agent_programs import FIVE, PROMPT, AgentProgram, ClaudeCode, Codex
from support.agent_world import AgentWorld
from support.confined_agents import (
    READERS_BELOW,
    ConfinedProgram,
    TypedProgram,
    draw_dot,
    reading,
    was_read,
)
from support.isolated_user import Group
from support.planted_files import PLANTED_FILES, kinds_of, script_of, traces_in
from support.polling import until
from support.scripted_model import Call, Shell

pytestmark = pytest.mark.needs("user-namespaces", "npm", "wall")


@pytest.mark.parametrize("program", FIVE, ids=lambda program: program.name)
def test_its_tools_follow_each_decision_in_one_session(
    program: AgentProgram, tmp_path: Path
) -> None:
    """The first try after each answer of `rootsd` counts, for the shell and for the file tool."""
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        api, wanted = world.parent / "api", world.parent / "wanted"
        for project in (api, wanted):
            draw_dot(project / "dot.png")
        world.rootsd("approve", "api")
        script = [
            *reading(program, api),
            *reading(program, wanted),
            *reading(program, wanted, lambda: world.rootsd("approve", "wanted")),
            *reading(program, wanted, lambda: world.rootsd("deny", "wanted")),
            Call("list_roots"),
        ]
        start = world.parent if program.name in READERS_BELOW else api
        servers = {"rootsd": world.bridge()}
        model = world.play(ConfinedProgram(program), script, servers, start)
    results = [model.results[number] for number in range(len(script))]
    found = [
        was_read(program, project, *results[number : number + 2])
        for number, project in enumerate((api, wanted, wanted, wanted))
        for number in [2 * number]
    ]
    assert found == [[True, True], [False, False], [True, True], [False, False]], results
    assert str(api) in results[-1]
    assert str(wanted) not in results[-1]


@pytest.mark.parametrize("program", [ClaudeCode(), Codex()], ids=lambda program: program.name)
def test_typed_in_a_shell_it_starts_behind_the_wall(program: AgentProgram, tmp_path: Path) -> None:
    """The control types `command` in front of it."""
    found = {}
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        api, wanted = world.parent / "api", world.parent / "wanted"
        for project in (api, wanted):
            draw_dot(project / "dot.png")
        world.rootsd("approve", "api")
        world.rootsd("connect", "--confine", program.name)
        script = [*reading(program, api), *reading(program, wanted)]
        for before in ((), ("command",)):
            model = world.play(TypedProgram(program, *before), script, {}, api)
            results = [model.results[number] for number in range(len(script))]
            found[before] = [
                was_read(program, project, *results[number : number + 2])
                for project, number in ((api, 0), (wanted, 2))
            ]
    assert found == {
        (): [[True, True], [False, False]],
        ("command",): [[True, True], [True, True]],
    }


def test_a_folder_that_the_agent_requests_opens_to_its_own_tools(tmp_path: Path) -> None:
    """A person approves it for this session alone."""
    program, reason = ClaudeCode(), "needed for the test"
    with AgentWorld(tmp_path, ["api", "wanted"]) as world:
        wanted = world.parent / "wanted"
        world.rootsd("approve", "api")

        def approve_when_asked() -> None:
            until(lambda: any(reason in str(item) for item in world.items("pending")))
            world.rootsd("approve", "wanted")

        asks = Call(
            "request_root",
            {"path": str(wanted), "reason": reason},
            before=threading.Thread(target=approve_when_asked).start,
        )
        opens = Shell(f"cat {wanted}/README.md")
        script = [*reading(program, wanted), asks, opens, *reading(program, wanted)]
        servers = {"rootsd": world.bridge()}
        model = world.play(ConfinedProgram(program), script, servers, world.parent / "api")
        published = world.published()
    results = [model.results[number] for number in range(len(script))]
    assert was_read(program, wanted, *results[:2]) == [False, False], results
    assert '"approved":true' in results[2].replace(" ", "")
    assert was_read(program, wanted, *results[4:]) == [True, True], results
    assert published == {"api"}, "the approval for the session ended with it"


@pytest.mark.parametrize("program", FIVE, ids=lambda program: program.name)
def test_its_next_start_outside_loads_nothing_that_was_planted(
    program: AgentProgram, tmp_path: Path
) -> None:
    """The control plants the same files from outside, and each of them is loaded."""
    plants, traces = PLANTED_FILES[program.name], tmp_path / "traces"
    with AgentWorld(tmp_path, ["api"]) as world:
        traces.mkdir()
        world.rootsd("approve", "api")
        # Half of the files exist outside, so they are read-only inside; the others are new.
        for plant in plants[::2]:
            file = world.home / plant.path.removeprefix("~/")
            if file.suffix == ".md":
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("---\nname: mine\ndescription: mine\n---\n")
        script = script_of(plants, traces)
        model = world.model([])
        program.configure(world.home, {}, model.url)
        model.close()
        before = files_in(world.home)
        model = world.play(ConfinedProgram(program), [Shell(script)], {}, world.parent / "api")
        assert files_in(world.home) == before
        assert "planted /" in model.results[0]
        assert start_outside(world, program, traces) == set()
        world.run_as_person("sh", "-c", script)
        found = start_outside(world, program, traces)
        assert found == kinds_of(plants)


def files_in(folder: Path) -> dict[Path, bytes]:
    """Return the content of every file below `folder`."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def start_outside(world: AgentWorld, program: AgentProgram, traces: Path) -> set[str]:
    """Start the agent without a wall, with the settings that are there. Return what it loaded."""
    model = world.model([Shell("true")])
    variables = {**world.variables(program.packages), **program.environment(model.url)}
    try:
        words = program.command(PROMPT)
        done = world.user.start(words, variables, world.parent / "api", Group.OWN).wait()
    finally:
        model.close()
    assert 0 in model.results, done.output
    return traces_in(PLANTED_FILES[program.name], traces, model.requests)
