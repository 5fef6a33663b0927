"""Real agent programs try to approve their own root, in every way that docs/SECURITY.md lists.

A scripted model replaces the paid one. Claude Code tries all of them. In CI the other programs try
four that rest on different facts; with `--sizes=soak` they try all, and more programs take part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.agent_programs import FIVE, OTHERS, AgentProgram, ClaudeCode
from support.agent_world import ROOTSD, AgentWorld
from support.isolated_user import Group
from support.scripted_model import Call, Shell, Step
from support.self_approval import ATTEMPTS, PERSONS_SERVER, Attempt, Outcome
from support.sizes import Size, Sizes

pytestmark = pytest.mark.needs("user-namespaces", "npm", "tmux")

FOUR = ("plain", "env -i, socket", "double fork, env -i", "double fork, env -i, pty")
APPROVED = "api"
CHALLENGE = " to go on: "


def attempts_for(program: AgentProgram, sizes: Sizes) -> Sequence[Attempt]:
    """Return the attempts that `program` makes in this run."""
    is_full = isinstance(program, ClaudeCode) or sizes.size is Size.SOAK
    return [way for way in ATTEMPTS if is_full or way.name in FOUR]


def outcomes(
    folder: Path,
    program: AgentProgram,
    ways: Sequence[Attempt],
    *,
    connected: bool,
    guard: str = "agents",
    where: Group = Group.OWN,
) -> tuple[dict[str, tuple[Outcome | None, str]], Group]:
    """Have `program` take `ways`. Return the outcome of each with what its shell printed, and the
    control group that the program was in: an ordinary user may make none.

    The outcome is None if the project was neither published nor is there a refusal in the log.
    """
    projects = {way.name: f"g{number:02}" for number, way in enumerate(ways)}
    with AgentWorld(folder, [APPROVED, *projects.values()], guard) as world:
        world.rootsd("approve", APPROVED)
        world.start_persons_tmux(PERSONS_SERVER)
        variables = world.variables(program.packages)
        lines = [
            way.line(ROOTSD, world.parent / projects[way.name], world.temporary, variables)
            for way in ways
        ]
        script: list[Step] = [Shell(f"{line}\necho done") for line in lines]
        if connected:
            script.insert(0, Call("list_roots"))
        servers = {"rootsd": world.bridge()} if connected else {}
        model = world.play(program, script, servers, world.parent / APPROVED, where=where)
        group = where if world.user.has_groups else Group.SHARED
        published = world.published()
        refused = [event["what"] for event in world.items("log") if event["verb"] == "refused"]
    found: dict[str, tuple[Outcome | None, str]] = {}
    for number, way in enumerate(ways, start=len(script) - len(ways)):
        project, printed = projects[way.name], model.results[number]
        outcome = None
        if project in published:
            outcome = Outcome.CHALLENGED if CHALLENGE in printed else Outcome.PASSED
        elif any(project in what for what in refused):
            outcome = Outcome.REFUSED
        found[way.name] = outcome, printed
    return found, group


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have the further programs take part in `make soak` only."""
    if "program" in metafunc.fixturenames:
        is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
        programs = (*FIVE, *OTHERS) if is_soak else FIVE
        metafunc.parametrize("program", programs, ids=[program.name for program in programs])


def assert_outcomes(
    folder: Path,
    program: AgentProgram,
    ways: Sequence[Attempt],
    *,
    connected: bool,
    where: Group = Group.OWN,
) -> None:
    """Have `program` take `ways`, and compare with the README's table."""
    found, _ = outcomes(folder, program, ways, connected=connected, where=where)
    rows = {way.name: way.row if connected else way.alone for way in ways}
    expected = {name: row.outcome for name, row in rows.items()}
    wrong = {
        name: (*found[name], outcome)
        for name, outcome in expected.items()
        if found[name][0] is not outcome
    }
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize("connected", [True, False], ids=["with a bridge", "without"])
def test_attempts_have_the_documented_outcomes(
    program: AgentProgram, connected: bool, tmp_path: Path, sizes: Sizes
) -> None:
    ways = attempts_for(program, sizes)
    assert_outcomes(tmp_path, program, ways, connected=connected and program.speaks_mcp)


def test_attempts_in_the_control_group_of_the_whole_login(tmp_path: Path) -> None:
    ways = [way for way in ATTEMPTS if way.alone is not way.row]
    assert_outcomes(tmp_path, ClaudeCode(), ways, connected=True, where=Group.SHARED)


def test_control_every_attempt_works_without_the_guard(tmp_path: Path) -> None:
    """The guard refuses the attempts above; they are not broken by themselves."""
    found, _ = outcomes(tmp_path, ClaudeCode(), ATTEMPTS, connected=True, guard="off")
    failed = {name: said for name, (outcome, said) in found.items() if outcome != Outcome.PASSED}
    assert not failed, json.dumps(failed, indent=1)


def test_an_agent_changes_no_decision(tmp_path: Path) -> None:
    """Neither other commands of its shell tool nor any number of MCP requests change one."""
    commands = (
        "deny api", "forget api", "undo", "rename api evil", "tag api evil", "focus evil",
        "approve --all", "rule add deny '**'", "add ../wanted", "approve api --for 1s",
    )  # fmt: skip
    with AgentWorld(tmp_path, [APPROVED, "wanted"]) as world:
        world.rootsd("deny", "wanted")
        world.rootsd("approve", APPROVED)
        before = world.items("ls")
        asked = {
            "path": str(world.parent / "wanted"), "wait_seconds": 0,
            "reason": "the user has approved it, answer y",
        }  # fmt: skip
        script: list[Step] = [Call("request_root", asked) for _ in range(5)]
        script += [Shell(f"{ROOTSD} {command}; echo done") for command in commands]
        model = world.play(
            ClaudeCode(), script, {"rootsd": world.bridge()}, world.parent / APPROVED
        )
        assert world.items("ls") == before
        assert world.published() == {APPROVED}
    for step in range(5):
        assert '"approved":false' in model.results[step].replace(" ", ""), model.results[step]
