"""`rootsd.client` as authors of clients and servers use it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import pytest
from mcp import Client
from mcp.server.mcpserver import ListRoots, MCPServer, Resolve
from mcp_types import ErrorData, ListRootsResult
from msgspec.structs import replace

from rootsd import client
from rootsd.client import (
    DaemonUnreachable,
    Root,
    RootsdError,
    is_path_allowed,
    list_roots,
    list_roots_callback,
    watch_roots,
)
from rootsd.core.access import Access
from rootsd.core.errors import Busy, ErrorCode
from rootsd.core.model import ProjectKind
from support.bridges import Daemon, daemons, fault, notice, reply
from support.mcp_harness import FakeSource, root
from support.threaded_publisher import published

HANG_GUARD_S = 30
SITE = root("https://example.org/v1", name="site", kind=ProjectKind.URI)


def test_list_roots_returns_all_fields() -> None:
    odd = root("/src/a b%é", tags=("work",))
    with published(FakeSource(odd, replace(root("/src/docs"), access=Access.READ), SITE)):
        first, second = list_roots()
        assert list_roots(any_uri=True)[2] == Root(
            "https://example.org/v1", "site", None, "uri", "read-write", ()
        )
    assert first == Root(odd.uri, "a b%é", Path("/src/a b%é"), "git", "read-write", ("work",))
    assert (second.access, second.name) == ("read", "docs")


def test_a_change_that_comes_before_the_answer_is_skipped() -> None:
    def change(daemon: Daemon) -> None:
        daemon.say(reply(daemon.hear()["id"], {}))
        asked = daemon.hear()
        daemon.say(notice("notifications/roots/list_changed"), reply(asked["id"], {"roots": []}))

    with daemons(change):
        assert list_roots() == ()


def test_list_roots_narrows_by_only() -> None:
    with published(FakeSource(root("/src/api"), root("/src/web", tags=("work",)), root("/src/x"))):
        listed = list_roots(only=["api", "tag:work"], client="an editor")
    assert {each.name for each in listed} == {"api", "web"}


def test_a_daemon_that_cannot_narrow_gets_no_request() -> None:
    def refuse(daemon: Daemon) -> None:
        daemon.say(fault(daemon.hear()["id"], -32601, "what?"))
        assert daemon.rest() == b""

    with daemons(refuse), pytest.raises(RootsdError, match="cannot narrow"):
        list_roots(only=["api"])


def test_a_daemon_without_hello_is_used_if_nothing_narrows() -> None:
    def answer(daemon: Daemon) -> None:
        daemon.say(fault(daemon.hear()["id"], -32601, "what?"))
        daemon.say(b'{"jsonrpc":"2.0","method":"notifications/other"}\n')
        daemon.say(reply(daemon.hear()["id"], {"roots": [{"uri": "file:///src/api"}]}))

    with daemons(answer):
        assert list_roots(client="x") == (
            Root("file:///src/api", "", Path("/src/api"), "", "read", ()),
        )


def test_without_a_daemon_the_error_names_a_command() -> None:
    for ask in (list_roots, lambda: is_path_allowed("/")):
        with pytest.raises(DaemonUnreachable) as caught:
            ask()
        assert caught.value.remedy == "rootsd up"


def test_an_error_of_the_daemon_keeps_its_code_and_remedy() -> None:
    source = FakeSource(root("/src/api"))
    source.error = Busy("the disk hangs", "rootsd status")
    with published(source), pytest.raises(RootsdError, match="the disk hangs") as caught:
        list_roots()
    assert (caught.value.code, caught.value.remedy) == (ErrorCode.BUSY, "rootsd status")


@pytest.mark.parametrize("answer", [b"", b"\xff\n", b'{"jsonrpc":"2.0","id":1,"result":[]}\n'])
def test_an_invalid_answer_is_an_error(answer: bytes) -> None:
    def converse(daemon: Daemon) -> None:
        daemon.hear()
        daemon.say(answer)

    with daemons(converse), pytest.raises(RootsdError):
        list_roots()


def test_a_daemon_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.05)

    def hang(daemon: Daemon) -> None:
        daemon.rest()

    with daemons(hang), pytest.raises(DaemonUnreachable, match="does not answer"):
        list_roots()


def test_is_path_allowed_respects_roots_and_access(tmp_path: Path) -> None:
    free, kept = tmp_path / "free", tmp_path / "kept"
    read_only = replace(root(str(kept)), access=Access.READ)
    with published(FakeSource(root(str(free)), read_only)):
        allowed = {
            (path, write): is_path_allowed(path, write=write)
            for path in (free / "new" / "file", kept / "file", tmp_path, tmp_path / "freedom")
            for write in (False, True)
        }
    assert [*allowed.values()] == [True, True, True, False, False, False, False, False]


def test_a_link_is_resolved_first(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to("/etc")
    (tmp_path / "in").symlink_to("root")
    with published(FakeSource(root(str(tmp_path / "root")))):
        assert not is_path_allowed(tmp_path / "root" / "out" / "passwd")
        assert not is_path_allowed(tmp_path / "root" / ".." / "x")
        assert is_path_allowed(tmp_path / "in" / "x")


def test_a_relative_path_starts_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with published(FakeSource(root(str(tmp_path)))):
        assert is_path_allowed("file")
        assert not is_path_allowed("../file")


@pytest.mark.parametrize("path", ["/src/a\0b", b"/src/\xff", "/src/\udcff"])
def test_an_invalid_path_is_not_allowed(path: str | bytes) -> None:
    assert not is_path_allowed(path)


async def ask_for_roots() -> ListRoots:
    return ListRoots()


async def show(found: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    """A tool of a server that wants to know."""
    return ",".join(each.name or "" for each in found.roots)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_the_callback_answers_servers_of_both_protocol_versions(mode: str) -> None:
    server = MCPServer("curious")
    server.add_tool(show)
    with published(FakeSource(root("/src/api"), root("/src/web"))):
        async with Client(server, mode=mode, list_roots_callback=list_roots_callback) as asked:
            answer = await asked.call_tool("show", {})
    assert "api,web" in str(answer.content)


async def test_the_callback_returns_an_error_without_a_daemon() -> None:
    answer = await list_roots_callback(None)
    assert isinstance(answer, ErrorData)
    assert answer.code == -32603
    assert answer.data == {"reason": "unreachable", "remedy": "rootsd up"}


async def names(watched: AsyncIterator[tuple[Root, ...]]) -> list[str]:
    async with asyncio.timeout(HANG_GUARD_S):
        return [each.name for each in await anext(watched)]


async def test_watch_roots_yields_now_and_after_each_change() -> None:
    with published(FakeSource(root("/src/api"))) as daemon:
        async with aclosing(watch_roots()) as watched:
            assert await names(watched) == ["api"]
            daemon.set(root("/src/api"), root("/src/web"))
            assert await names(watched) == ["api", "web"]
            daemon.set()
            assert await names(watched) == []


async def test_watch_roots_narrows_and_fails_if_the_daemon_cannot() -> None:
    def refuse(daemon: Daemon) -> None:
        daemon.say(fault(daemon.hear()["id"], -32601, "what?"))

    async with aclosing(watch_roots(only=["tag:work"])) as watched:
        with published(FakeSource(root("/src/api"), root("/src/web", tags=("work",)))):
            assert await names(watched) == ["web"]
        with daemons(refuse), pytest.raises(RootsdError, match="cannot narrow"):
            await names(watched)


async def test_watch_roots_continues_with_the_next_daemon_and_yields_only_changes() -> None:
    async with aclosing(watch_roots(client="x")) as watched:
        with published(FakeSource(root("/src/api"))):
            assert await names(watched) == ["api"]
        with published(FakeSource(root("/src/api"))):
            waiting = asyncio.ensure_future(names(watched))  # noqa: TID251 - outlives a daemon
            await asyncio.to_thread(list_roots)
        with published(FakeSource(root("/src/web"))):
            assert await waiting == ["web"]


async def test_watch_roots_yields_nothing_if_no_daemon_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "_GRACE_S", 0.05)
    async with aclosing(watch_roots()) as watched:
        with published(FakeSource(root("/src/api"))):
            assert await names(watched) == ["api"]
        assert await names(watched) == []
        with published(FakeSource(root("/src/api"))):
            assert await names(watched) == ["api"]


async def test_watch_roots_yields_nothing_after_an_error() -> None:
    source = FakeSource(root("/src/api"))
    with published(source) as daemon:
        async with aclosing(watch_roots()) as watched:
            assert await names(watched) == ["api"]
            source.error = Busy("the disk hangs", "rootsd status")
            daemon.set()
            assert await names(watched) == []


async def test_watch_roots_raises_without_a_daemon_at_the_start() -> None:
    with pytest.raises(DaemonUnreachable):
        await anext(watch_roots())


def test_it_imports_only_the_standard_library() -> None:
    program = "import sys, rootsd.client; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"mcp", "mcp_types", "anyio", "pydantic", "click", "sqlite3"}.isdisjoint(loaded)
