"""Real MCP servers follow a real Claude Code through worktrees, folders, and shells.

A scripted model moves, and calls all servers after each move. Without rootsd, the servers stay
where the session began, and answer for the wrong tree.
"""

from __future__ import annotations

import json
import re
import shlex
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from support.agent_programs import ClaudeCode, Codex, Server
from support.agent_world import ROOTSD, AgentWorld
from support.followed_servers import (
    FOLLOWED,
    UNTRACKED,
    WHERE,
    Place,
    is_right,
    where_text,
)
from support.isolated_user import HANG_GUARD_S
from support.polling import until
from support.scripted_model import Call, Shell, Step
from support.sizes import Sizes

pytestmark = pytest.mark.needs("user-namespaces", "npm", "birth-times")
IN_CLAUDE = ".claude/worktrees"
# A client on a busy machine may be late. Then the call gets this error, which the contract allows.
LATE = "the client did not answer within a second"
TWO = ("files", "git")


class WithLib(ClaudeCode):
    """Claude Code with one more folder."""

    def __init__(self, lib: Path) -> None:
        self._lib = str(lib)

    def command(self, prompt: str) -> list[str]:
        return [*super().command(prompt), "--add-dir", self._lib, "--"]

    def environment(self, model: str) -> dict[str, str]:
        return {**super().environment(model), "MCP_TIMEOUT": "120000"}


def commit(world: AgentWorld, name: str, branch: str) -> None:
    """Commit what is in a project, on a branch that says which project it is."""
    project = world.parent / name
    (project / ".git" / "info" / "exclude").write_text("\n".join(UNTRACKED) + "\n")
    (project / WHERE).write_text(where_text(branch))
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    git = ("git", "-C", str(project), *identity)
    for words in (("checkout", "-qb", branch), ("add", "."), ("commit", "-qm", "first")):
        assert world.run_as_person(*git, *words).status == 0


def round_of_moves(world: AgentWorld) -> list[tuple[list[Step], Place]]:
    """Return the moves of one session in api, each with the place after it."""
    api, lib, docs = (world.parent / name for name in ("api", "lib", "docs"))
    tree = api / IN_CLAUDE / "fix"  # each session makes it again
    branch = f"worktree-{tree.name}"
    begin = Place(api, "main-of-api", (tree, docs), (lib,))
    main = Place(api, "main-of-api", (tree,), (lib, docs))
    added = json.dumps({"permissions": {"additionalDirectories": [str(docs)]}})
    settings = shlex.quote(str(settings_of(world)))
    return [
        ([], begin),
        ([Shell("cd sub && pwd")], begin),
        # Claude Code looks at its settings from time to time.
        ([Shell(f"echo {shlex.quote(added)} >{settings}; sleep 4")], main),
        (
            [
                Call("EnterWorktree", {"name": tree.name}),
                Shell(f"printf %s {shlex.quote(where_text(branch))} >{WHERE}"),
            ],
            Place(tree, branch, (api,), (lib, docs)),
        ),
        ([Call("ExitWorktree", {"action": "remove"})], main),
    ]


def settings_of(world: AgentWorld) -> Path:
    """Return the file with Claude Code's settings."""
    return world.home / ".claude" / "settings.json"


def servers(world: AgentWorld, names: Sequence[str], *, wrapped: bool) -> dict[str, Server]:
    """Return MCP servers for a session in api."""
    found, directory = {}, {"ROOTSD_DIR": str(world.directory)}
    for name in names:
        words, options = FOLLOWED[name].command(), FOLLOWED[name].options
        if wrapped:
            found[name] = Server((str(ROOTSD), "run", *options, "--", *words), directory)
        else:
            here = partial(re.sub, r"\{roots?\}", str(world.parent / "api"))
            own = dict(here(each).split("=", 1) for each in options if "=" in each)
            found[name] = Server(tuple(map(here, words)), own)
    return found


class Session(NamedTuple):
    """What one session has got. `late` counts the calls that the client kept waiting.

    `seconds` are those of the first calls after a move, as the agent sees them.
    """

    right: int
    late: int
    wrong: tuple[str, ...]
    seconds: tuple[tuple[str, float], ...]


def play(world: AgentWorld, times: int, names: Sequence[str], *, wrapped: bool) -> Session:
    """Play one session, with `times` calls of each server after each move."""
    settings_of(world).unlink(missing_ok=True)
    script, asked, first = list[Step](), dict[int, tuple[str, Place]](), list[int]()
    for steps, place in round_of_moves(world):
        script += steps
        first += range(len(script), len(script) + len(names))
        for name in [*names] * times:
            asked[len(script)] = name, place
            script.append(FOLLOWED[name].call)
    program = WithLib(world.parent / "lib")
    used = servers(world, names, wrapped=wrapped)
    limit_s = HANG_GUARD_S + 60 * len(names)
    model = world.play(program, script, used, world.parent / "api", seconds=limit_s)
    late = {at for at in asked if LATE in model.results[at]}
    wrong = [
        f"{at} {name}, {place}: {model.results[at]!r}"
        for at, (name, place) in asked.items()
        if at not in late and not is_right(FOLLOWED[name], model.results[at], place)
    ]
    seconds = tuple((asked[at][0], model.seconds[at]) for at in first)
    return Session(len(asked) - len(late) - len(wrong), len(late), tuple(wrong), seconds)


@pytest.fixture
def world(tmp_path: Path) -> AgentWorld:
    """Return a world with the repositories api, lib, and docs."""
    return AgentWorld(tmp_path, ["api", "lib", "docs"])


def prepare(world: AgentWorld) -> None:
    api = world.parent / "api"
    (api / ".obsidian").mkdir()  # this makes it a vault
    (api / ".obsidian" / "app.json").write_text("{}")
    (api / "sub").mkdir()
    (api / "sub" / "code.py").touch()  # Serena wants a source
    (world.home / ".claude").mkdir()
    names = ("api", "lib", "docs")
    for name in names:
        commit(world, name, f"main-of-{name}")
    until(lambda: len(world.items("pending")) == len(names))
    world.rootsd("approve", *names, "--yes")


def test_no_server_answers_for_a_tree_where_the_agent_is_not(
    world: AgentWorld, sizes: Sizes
) -> None:
    count, times, names = sizes.pick(
        test=(1, 1, TWO), check=(1, 1, TWO), soak=(10, 2, tuple(FOLLOWED))
    )
    with world:
        prepare(world)
        sessions = [play(world, times, names, wrapped=True) for _ in range(count)]
    right, late = (sum(each) for each in list(zip(*sessions, strict=True))[:2])
    wrong = [each for session in sessions for each in session.wrong]
    print(f"{right} right, {late} late, {len(wrong)} wrong")  # noqa: T201
    for name in names:
        found = sorted(took for each in sessions for who, took in each.seconds if who == name)
        print(f"{name}: first call {statistics.median(found):.2f} s, at most {found[-1]:.2f} s")  # noqa: T201
    assert wrong == [], "\n".join(wrong)
    assert late <= right / 99


def test_without_rootsd_servers_answer_for_the_wrong_tree(world: AgentWorld, sizes: Sizes) -> None:
    names = sizes.pick(test=TWO, check=TWO, soak=tuple(FOLLOWED))
    with world:
        prepare(world)
        wrong = play(world, 1, names, wrapped=False).wrong
    right = {name for name in names if not any(f" {name}, " in each for each in wrong)}
    assert right <= {"sdk"}, "it asks in each call, and Claude Code answers rightly"


class WithFolder(Codex):
    """Codex with one more folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def command(self, prompt: str) -> list[str]:
        sandbox = ("--skip-git-repo-check", "--sandbox", "workspace-write")
        return ["codex", "exec", *sandbox, "--add-dir", self._folder, prompt]


@pytest.mark.parametrize("wrapped", [True, False], ids=["rootsd", "control"])
def test_a_server_of_codex_has_the_folders_of_the_session(
    world: AgentWorld, *, wrapped: bool
) -> None:
    with world:
        prepare(world)
        used = servers(world, TWO, wrapped=wrapped)
        script = [Call("list_allowed_directories")] * 2
        program = WithFolder(world.parent / "lib")
        model = world.play(program, script, {"files": used["files"]}, world.parent / "api")
    assert str(world.parent / "api") in model.results[1]
    assert (str(world.parent / "lib") in model.results[1]) == wrapped
