"""Real MCP servers follow a real Claude Code through worktrees, folders, and shells.

A scripted model moves, and calls both servers after each move. Without rootsd, the servers stay
where the session began, and answer for the wrong tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from support.agent_programs import ClaudeCode, Codex, Server
from support.agent_world import ROOTSD, AgentWorld
from support.polling import until
from support.real_servers import SERVERS
from support.scripted_model import Call, Shell, Step
from support.sizes import Sizes

pytestmark = pytest.mark.needs("user-namespaces", "npm", "birth-times")
IN_CLAUDE = ".claude/worktrees"
# A client on a busy machine may be late. Then the call gets this error, which the contract allows.
LATE = "the client did not answer within a second"


class WithLib(ClaudeCode):
    """Claude Code with one more folder."""

    def __init__(self, lib: Path) -> None:
        self._lib = str(lib)

    def command(self, prompt: str) -> list[str]:
        return [*super().command(prompt), "--add-dir", self._lib, "--"]


class Question(NamedTuple):
    """A call of a server. A right answer has these texts, and names no folder of `lacks`."""

    call: Call
    has: tuple[str, ...]
    lacks: tuple[Path, ...] = ()

    def is_right(self, answer: str) -> bool:
        named = (re.search(rf"{re.escape(str(each))}(?![\w/.-])", answer) for each in self.lacks)
        return all(text in answer for text in self.has) and not any(named)


class Place(NamedTuple):
    """Where the session works: a checkout with its branch. `others` are its other checkouts."""

    folder: Path
    branch: str
    others: tuple[Path, ...]


def commit(world: AgentWorld, name: str, branch: str) -> None:
    """Commit what is in a project, on a branch that says which project it is."""
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    git = ("git", "-C", str(world.parent / name), *identity)
    for words in (("checkout", "-qb", branch), ("add", "."), ("commit", "-qm", "first")):
        assert world.run_as_person(*git, *words).status == 0


PLACE_TOOLS = {
    "files": "list_allowed_directories",
    "everything": "get-roots-list",
    "sdk": "show_roots",
}
COMMANDS = {
    "files": lambda: [*SERVERS["server-filesystem"].command(), "{root}"],
    "git": SERVERS["mcp-server-git"].command,
    "everything": SERVERS["server-everything"].command,
    "sdk": SERVERS["SDK server with ListRoots"].command,
}
TWO = ("files", "git")


def question(server: str, place: Place, lib: Path) -> Question:
    """Ask a server where it is. The session has `lib`, too."""
    if server == "git":
        return Question(Call("git_status", {"repo_path": "."}), (f"On branch {place.branch}\n",))
    return Question(Call(PLACE_TOOLS[server]), (str(place.folder), str(lib)), place.others)


def round_of_moves(
    world: AgentWorld, number: int, times: int, names: Sequence[str]
) -> list[Step | Question]:
    """Return moves of one session in api, with questions after each, so many `times`."""
    api, lib = world.parent / "api", world.parent / "lib"
    tree = api / IN_CLAUDE / f"fix{number}"
    main = Place(api, "main-of-api", (tree,))
    moves: list[tuple[list[Step], Place]] = [
        ([Shell("sleep 8")], main),  # until all servers are there
        ([Shell("cd sub && pwd")], main),
        (
            [Call("EnterWorktree", {"name": tree.name})],
            Place(tree, f"worktree-{tree.name}", (api,)),
        ),
        ([Call("ExitWorktree", {"action": "remove"})], main),
    ]
    return [
        step
        for move, place in moves
        for step in [*move, *[question(name, place, lib) for name in names] * times]
    ]


def servers(world: AgentWorld, names: Sequence[str], *, wrapped: bool) -> dict[str, Server]:
    """Return MCP servers for a session in api."""
    found = {}
    for name in names:
        words = COMMANDS[name]()
        here = [re.sub(r"\{roots?\}", str(world.parent / "api"), word) for word in words]
        command = (str(ROOTSD), "run", "--", *words) if wrapped else tuple(here)
        found[name] = Server(command, {"ROOTSD_DIR": str(world.directory)})
    return found


def wrong_answers(
    world: AgentWorld, number: int, times: int, names: Sequence[str], *, wrapped: bool
) -> tuple[int, Sequence[str]]:
    """Play one session. Return the number of answers, and the wrong ones.

    If the client was late, there is no answer.
    """
    steps = round_of_moves(world, number, times, names)
    script = [step.call if isinstance(step, Question) else step for step in steps]
    used = servers(world, names, wrapped=wrapped)
    model = world.play(WithLib(world.parent / "lib"), script, used, world.parent / "api")
    questions = {at: step for at, step in enumerate(steps) if isinstance(step, Question)}
    answers = {at: model.results[at] for at in questions if LATE not in model.results[at]}
    wrong = [
        f"{at}: {questions[at]} {answer!r}"
        for at, answer in answers.items()
        if not questions[at].is_right(answer + "\n")
    ]
    return len(answers), wrong


@pytest.fixture
def world(tmp_path: Path) -> AgentWorld:
    """Return a world with the repositories api and lib."""
    return AgentWorld(tmp_path, ["api", "lib"])


def prepare(world: AgentWorld) -> None:
    (world.parent / "api" / "sub").mkdir()
    (world.parent / "api" / "sub" / "file").touch()
    (world.home / ".claude").mkdir()
    for name in ("api", "lib"):
        commit(world, name, f"main-of-{name}")
    until(lambda: len(world.items("pending")) == 2)
    world.rootsd("approve", "api", "lib", "--yes")


def test_no_server_answers_for_a_tree_where_the_agent_is_not(
    world: AgentWorld, sizes: Sizes
) -> None:
    sessions, times, names = sizes.pick(
        test=(1, 1, TWO), check=(1, 1, TWO), soak=(16, 4, tuple(COMMANDS))
    )
    answered, wrong = 0, list[str]()
    with world:
        prepare(world)
        for number in range(sessions):
            more, found = wrong_answers(world, number, times, names, wrapped=True)
            answered += more
            wrong += found
    assert answered >= 0.99 * 4 * len(names) * sessions * times
    assert wrong == [], "\n".join(wrong)


def test_without_rootsd_servers_answer_for_the_wrong_tree(world: AgentWorld) -> None:
    with world:
        prepare(world)
        _, wrong = wrong_answers(world, 0, 1, TWO, wrapped=False)
    assert len(wrong) >= 2


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
