"""The examples run unchanged against a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from support.list_roots_output import text_of_result
from support.person import HANG_GUARD, Person

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SERVER = EXAMPLES / "python" / "server.py"


# The answers to the model, in the order of the calls.
REASONS = (
    "not in a folder that the user approved",
    "not in a folder that the user approved",
    "No such file",
    "Is a directory",
    "can't decode",
    "ymlink loop",
    "try: rootsd up",
)


@pytest.fixture
def person(person: Person) -> Person:
    """Return a person with one approved root and one pending project."""
    person.clone("api")
    person.clone("web")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    return person


@contextmanager
def running(person: Person, *command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=person.environment(),
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_the_client_answers_a_server_and_notifies_it_of_changes(person: Person) -> None:
    with running(
        person, sys.executable, str(EXAMPLES / "python" / "client.py"), sys.executable, str(SERVER)
    ) as process:
        assert says(process).startswith("connected")
        assert says(process) == "roots: api"
        person.rootsd("approve", "web")
        assert says(process) == "roots: api web"
        person.rootsd("deny", "api", "web", "--yes")
        last = says(process)
        assert last == "roots:" or (last == "roots: web" and says(process) == "roots:")


async def test_the_server_reads_only_files_in_a_root(person: Person) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[str(SERVER)],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(person.home)},
    )
    escape = person.parent / "api" / "link"
    escape.symlink_to(person.parent / "web" / "README")
    binary = person.parent / "api" / "binary"
    binary.write_bytes(b"\xff\xfe")
    loop = person.parent / "api" / "loop"
    loop.symlink_to(loop)
    with anyio.fail_after(HANG_GUARD):
        async with Client(parameters) as client:
            read = [
                await client.call_tool("read_file", {"path": str(path)})
                for path in (
                    person.parent / "api" / "README",
                    person.parent / "web" / "README",
                    escape,
                    person.parent / "api" / "none",
                    person.parent / "api",
                    binary,
                    loop,
                )
            ]
            await to_thread.run_sync(person.rootsd, "down")
            read.append(await client.call_tool("read_file", {"path": str(escape)}))
    assert [result.is_error for result in read] == [False, *[True] * 7]
    assert "hello" in str(read[0].content)
    reasons = [text_of_result(result) for result in read[1:]]
    assert all(reason in said for reason, said in zip(REASONS, reasons, strict=True)), reasons
    assert not any("Traceback" in said for said in reasons)


@pytest.mark.needs("node")
def test_node_follows_the_roots_over_the_socket(person: Person) -> None:
    script = str(EXAMPLES / "node" / "roots.mjs")
    with running(person, "node", script) as process:
        assert [root["name"] for root in json.loads(says(process))] == ["api"]
        person.rootsd("deny", "api")
        assert json.loads(says(process)) == []
        person.rootsd("down")
        assert process.wait(HANG_GUARD) == 1
        assert process.stderr
        assert "closed the connection" in process.stderr.read()
    with running(person, "node", script) as process:
        assert process.wait(HANG_GUARD) == 1
        assert process.stderr
        assert "rootsd up" in process.stderr.read()
