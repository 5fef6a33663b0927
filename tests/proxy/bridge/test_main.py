"""The arguments of `rootsd bridge`, and SDK clients that use a bridge."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import ResourceTemplateReference

from rootsd.proxy.bridge.main import main, parse_arguments
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope
from support.bridges import HANG_GUARD_S, INITIALIZE, META_2026, PING, bridge, notice, run
from support.list_roots_output import listed
from support.mcp_harness import FakeSource, root
from support.threaded_publisher import published

APPROVED = "roots://approved"


@pytest.mark.parametrize(
    ("words", "greeting"),
    [
        ("", None),
        ("--client x", Hello(client="x")),
        ("--client=x=y", Hello(client="x=y")),
        ("--any-uri", Hello(scope=RequestedScope(any_uri=True))),
        ("--only api --only=web", Hello(scope=RequestedScope(names=("api", "web")))),
        ("--only tag:work --only tag:a:b", Hello(scope=RequestedScope(tags=("work", "a:b")))),
        ("--only --client", Hello(scope=RequestedScope(names=("--client",)))),
    ],
)
def test_arguments_become_a_hello(words: str, greeting: Hello | None) -> None:
    assert parse_arguments(words.split()) == greeting


def test_the_working_directory_is_sent_unchanged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_arguments(["--only", "cwd"]) == Hello(scope=RequestedScope(cwd=os.getcwd()))


def test_a_deleted_working_directory_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["--only", "cwd"]) == 2
    assert "the working directory is gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [["--nonsense"], ["--client"], ["--client="], ["word"], ["--only"], ["--only", "tag:"],
     ["--any-uri=no"]],
)  # fmt: skip
def test_unknown_arguments_are_refused(flags: list[str]) -> None:
    done = run(PING, *flags)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.endswith(b"; try: rootsd bridge --help\n")


def bridged(*flags: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", *flags],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"]},
        cwd="/",
    )


@asynccontextmanager
async def told_of(client: Client, notices: Notices) -> AsyncIterator[None]:
    """Subscribed to the set, as the client's era has it; hears of one change before it ends."""
    with anyio.fail_after(HANG_GUARD_S):
        if client.protocol_version < "2026-07-28":
            await client.session.subscribe_resource(APPROVED)
            yield
            await notices.updated.wait()
        else:
            async with client.listen(resource_subscriptions=[APPROVED]) as stream:
                yield
                assert await anext(aiter(stream)) == ResourceUpdated(uri=APPROVED)


class Notices:
    """What a client of the handshake era is told."""

    def __init__(self) -> None:
        self.updated = anyio.Event()

    async def take(self, message: object) -> None:
        if type(message).__name__ == "ResourceUpdatedNotification":
            self.updated.set()


async def text_of(client: Client, uri: str) -> Any:  # noqa: ANN401
    contents: Any = (await client.read_resource(uri)).contents[0]
    return json.loads(contents.text)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize(
    ("mode", "version"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
async def test_an_sdk_client_can_use_everything_in_every_mode(mode: str, version: str) -> None:
    notices = Notices()
    source = FakeSource(root("/src/api"))
    parameters = bridged("--client", "a test")
    with published(source) as roots, anyio.fail_after(HANG_GUARD_S):
        async with Client(parameters, mode=mode, message_handler=notices.take) as client:
            assert client.protocol_version == version
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "list_roots", "resolve_root", "request_root",
            ]  # fmt: skip
            assert listed(await client.call_tool("list_roots", {})) == {"api": "/src/api"}
            found = await client.call_tool("resolve_root", {"path": "/src/api/x"})
            assert found.structured_content["relative"] == "x"
            wish = {"path": "/src/web", "reason": "to fix it", "wait_seconds": 0}
            asked = await client.call_tool("request_root", wish)
            assert asked.structured_content["approved"] is False
            uris = [each.uri for each in (await client.list_resources()).resources]
            assert uris == [APPROVED, "roots://root/api"]
            templates = (await client.list_resource_templates()).resource_templates
            assert [each.uri_template for each in templates] == ["roots://root/{+name}"]
            reference = ResourceTemplateReference(uri="roots://root/{+name}")
            completed = await client.complete(reference, {"name": "name", "value": "a"})
            assert completed.completion.values == ["api"]
            async with told_of(client, notices):
                await to_thread.run_sync(roots.set, root("/src/web"))
            assert (await text_of(client, APPROVED))["roots"][0]["uri"] == "file:///src/web"
            assert (await text_of(client, "roots://root/web"))["path"] == "/src/web"
    assert [client for _, client, _ in source.requests] == ["a test"]


def test_a_client_may_probe_first_and_then_initialize() -> None:
    listing = {"name": "list_roots", "arguments": {}}
    with published(FakeSource(root("/src/api"))), bridge() as client:
        probed = client.ask("probe", "server/discover", {"_meta": META_2026})
        assert probed["result"]["supportedVersions"] == ["2026-07-28"]
        greeted = client.ask(0, "initialize", INITIALIZE)
        assert greeted["result"]["protocolVersion"] == "2025-11-25"
        client.say(notice("notifications/initialized"))
        old = client.ask(1, "tools/call", listing)["result"]
        new = client.ask(2, "tools/call", {**listing, "_meta": META_2026})["result"]
        assert old["content"] == new["content"]
        assert ("resultType" in old, new["resultType"]) == (False, "complete")
        assert client.leave() == 0


async def test_an_sdk_client_sees_only_the_scope_of_its_bridge() -> None:
    source = FakeSource(root("/src/api"), root("/src/web", tags=("work",)), root("/src/docs"))
    with published(source), anyio.fail_after(HANG_GUARD_S):
        async with Client(bridged("--only", "tag:work", "--only", "docs")) as client:
            names = listed(await client.call_tool("list_roots", {})).keys()
            assert names == {"web", "docs"}
