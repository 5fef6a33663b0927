"""Clients that cannot answer a question while their own call is open, with real MCP servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bridges import Message, request
from support.followed_servers import FOLLOWED, WHERE, FollowedServer, Place, is_right, where_text
from support.person import Resident
from support.run_proxy import RunProxyClient, command, started
from support.sizes import Sizes

pytestmark = pytest.mark.needs("npm")
TWO = ("ripgrep", "memory")


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Resident]:
    """Yield a person who approved the projects alpha and beta, each on a branch of that name."""
    person = Resident(tmp_path)
    for name in ("alpha", "beta"):
        folder = person.clone(name)
        subprocess.run(["git", "-C", str(folder), "checkout", "-qb", name], check=True)
        (folder / ".obsidian").mkdir()  # this makes it a vault
        (folder / "code.py").touch()  # Serena wants a source
        (folder / WHERE).write_text(where_text(name))
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "alpha", "beta", "--yes")
    yield person
    person.run("down")


def ask(client: RunProxyClient, server: FollowedServer, id_: int) -> None:
    """Send the call alone."""
    tool, arguments = server.call.tool.partition("__")[2], server.call.arguments
    client.say(request(id_, "tools/call", {"name": tool, "arguments": arguments}))


def text_of(answer: Message) -> str:
    return json.dumps(answer["result"])


def test_a_client_that_cannot_answer_while_its_call_is_open_gets_an_error(
    person: Resident, sizes: Sizes
) -> None:
    alpha, beta = (person.parent / name for name in ("alpha", "beta"))
    environment = {name: person.environment()[name] for name in ("HOME", "PATH", "ROOTSD_DIR")}
    for name in sizes.pick(test=TWO, check=TWO, soak=tuple(FOLLOWED)):
        server = FOLLOWED[name]
        line = command(*server.command(), flags=server.options)
        with started(line, cwd=alpha, **environment) as client:
            client.opened = [alpha]
            client.shake_hands_with_roots()
            ask(client, server, 1)
            assert is_right(server, text_of(client.answer()), Place(alpha, "alpha", (beta,)))
            client.opened = [beta]
            ask(client, server, 2)
            assert "did not answer within a second" in client.answer_late()["error"]["message"]
            ask(client, server, 3)
            assert is_right(server, text_of(client.answer()), Place(beta, "beta", (alpha,)))
