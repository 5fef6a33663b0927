"""`rootsd acp` between a client and an agent that both use the public SDK of ACP."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import acp
import anyio
import pytest
from acp import schema

from rootsd.core.errors import Exit
from support import acp_agent
from support.person import Person
from support.polling import until

AGENT = (sys.executable, acp_agent.__file__)


class Editor:
    """A client that serves files from the disk, and keeps what the agent says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.served: list[str] = []
        self.connection: Any = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ANN401
        self.said.append(update.content.text)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:  # noqa: ANN401
        self.served.append(path)
        return acp.ReadTextFileResponse(content=await anyio.Path(path).read_text())

    async def write_text_file(
        self,
        session_id: str,
        path: str,
        content: str,
        **_: Any,  # noqa: ANN401
    ) -> None:
        self.served.append(path)
        await anyio.Path(path).write_text(content)

    async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:  # noqa: ANN401
        self.served.append(str(more["cwd"]))
        return acp.CreateTerminalResponse(terminal_id="t1")

    async def request_permission(self, session_id: str, **_: Any) -> Any:  # noqa: ANN401
        chosen = schema.AllowedOutcome(outcome="selected", option_id="yes")
        return acp.RequestPermissionResponse(outcome=chosen)

    async def begin(self, folder: Path, **more: Any) -> Any:  # noqa: ANN401
        """Begin a session in a folder."""
        return await self.connection.new_session(str(folder), mcp_servers=[], **more)

    async def ask(self, session: str, verb: str, value: object) -> Any:  # noqa: ANN401
        """Return what the agent says about an order."""
        block = acp.text_block(json.dumps({verb: value}))
        await self.connection.prompt(session_id=session, prompt=[block])
        return json.loads(self.said[-1])


@asynccontextmanager
async def editor_of(person: Person, *flags: str) -> AsyncIterator[Editor]:
    """Start the agent behind the relay, and do the handshake."""
    editor = Editor()
    words = ("-m", "rootsd", "acp", *flags, "--", *AGENT)
    started = acp.spawn_agent_process(
        editor, sys.executable, *words, env=person.environment(), cwd=person.parent / "api",
        use_unstable_protocol=True,
    )  # fmt: skip
    async with started as (connection, _):
        editor.connection = connection
        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        declared = schema.ClientCapabilities(fs=files, terminal=True)
        await connection.initialize(acp.PROTOCOL_VERSION, client_capabilities=declared)
        yield editor


@pytest.fixture
def person_with_projects(person: Person) -> Person:
    """Return a person who has approved `api` and `web`, but not `secret`."""
    for name in ("api", "web", "secret"):
        (person.clone(name) / "README.md").write_text(f"{name}\n")
    person.run("up", str(person.parent))
    assert person.run("approve", "api", "web", "--yes").returncode == Exit.OK
    return person


async def test_both_sides_of_the_sdk_meet_as_without_the_relay(
    person_with_projects: Person,
) -> None:
    person = person_with_projects
    api = person.parent / "api"
    person.run("tag", "api", "work")
    person.run("tag", "web", "work")
    async with editor_of(person) as editor:
        begun = await editor.begin(api)
        assert begun.field_meta["folders"] == [str(api), str(person.parent / "web")]
        assert begun.field_meta["servers"] == ["rootsd"]
        assert begun.field_meta["capabilities"]["fs"]["readTextFile"] is True
        assert await editor.ask("s0", "read", f"{api}/README.md") == "api\n"
        assert await editor.ask("s0", "write", f"{api}/new") == "written"
        assert await editor.ask("s0", "terminal", str(api)) == "t1"
        assert await editor.ask("s0", "permission", "anything") == "selected"
        assert await editor.connection.ext_method("x/y", {"a": 1}) == {"method": "x/y", "a": 1}
        listed = await editor.connection.list_sessions()
        assert [session.session_id for session in listed.sessions] == ["s0"]


async def test_an_unapproved_folder_is_refused_and_pending_until_a_person_approves_it(
    person_with_projects: Person,
) -> None:
    person = person_with_projects
    api, secret = person.parent / "api", person.parent / "secret"
    async with editor_of(person) as editor:
        for refused in (
            editor.begin(secret),
            editor.begin(api, additional_directories=[str(secret)]),
        ):
            with pytest.raises(acp.RequestError, match=f"rootsd approve {secret}") as error:
                await refused
            assert error.value.code == -32602
        until(lambda: "asks for it" in json.dumps(person.items("pending")))
        await editor.begin(api)
        answer = await editor.ask("s0", "read", f"{secret}/README.md")
        assert (answer["code"], editor.served) == (-32002, [])
        assert person.run("approve", "secret").returncode == Exit.OK
        await editor.begin(secret)
        assert await editor.ask("s1", "read", f"{secret}/README.md") == "secret\n"
        # An older session goes on with a folder that was approved later.
        for go_on in (editor.connection.resume_session, editor.connection.load_session):
            assert person.run("deny", "secret").returncode == Exit.OK
            again = partial(
                go_on, cwd=str(api), session_id="s0", additional_directories=[str(secret)]
            )
            with pytest.raises(acp.RequestError, match=f"rootsd approve {secret}"):
                await again()
            assert (await editor.ask("s0", "read", f"{secret}/README.md"))["code"] == -32002
            assert person.run("approve", "secret").returncode == Exit.OK
            assert (await again()).field_meta["folders"] == [str(api), str(secret)]
            assert await editor.ask("s0", "read", f"{secret}/README.md") == "secret\n"


@pytest.mark.needs("wall")
async def test_a_session_behind_the_wall_edits_tests_and_commits(
    person_with_projects: Person,
) -> None:
    person = person_with_projects
    api, web, secret = (person.parent / name for name in ("api", "web", "secret"))
    work = "echo x > new && test -f new && git add new && git commit -qm new"
    support = str(Path(acp_agent.__file__).parents[1])
    async with editor_of(person, "--confine", "--read", support) as editor:
        begun = await editor.begin(api)
        assert "fs" not in begun.field_meta["capabilities"] or not any(
            begun.field_meta["capabilities"]["fs"].values()
        )
        look = ["ls", str(person.parent)]
        assert await editor.ask("s0", "own", [look, "/"]) == "api\n"
        assert await editor.ask("s0", "own", [["sh", "-c", work], str(api)]) == ""
        person.git("-C", str(api), "cat-file", "-e", "HEAD:new")
        for verb, value in (("read", f"{api}/new"), ("write", f"{api}/x"), ("terminal", str(api))):
            assert (await editor.ask("s0", verb, value))["code"] == -32602
        assert editor.served == []
        await editor.begin(web)  # the wall opens for another session
        assert await editor.ask("s1", "own", [look, "/"]) == "api\nweb\n"
        with pytest.raises(acp.RequestError, match="is not approved"):
            await editor.begin(secret)
        assert "secret" not in await editor.ask("s1", "own", [look, "/"])
        # A root with a denied project is withheld from agents without the wall.
        (web / "vendor" / "key").mkdir(parents=True)
        person.run("deny", str(web / "vendor"))
        await editor.begin(web)
        assert await editor.ask("s2", "own", [["ls", "vendor"], str(web)]) == ""
        with pytest.raises(acp.RequestError, match="is not approved"):
            await editor.begin(web / "vendor" / "key")
    async with editor_of(person) as editor:
        with pytest.raises(acp.RequestError, match=r"has a denied folder.*rootsd acp --confine"):
            await editor.begin(web)
