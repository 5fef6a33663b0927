"""The words after `rootsd bridge`, and SDK clients at its pipes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from rootsd.bridge.main import greeting_of, main
from rootsd.wire.hello import Hello, Scope
from support.bridges import HANG_GUARD_S, PING, run
from support.publishing import FakeSource, root
from support.serving import published


@pytest.mark.parametrize(
    ("words", "greeting"),
    [
        ("", None),
        ("--client x", Hello(client="x")),
        ("--client=x=y", Hello(client="x=y")),
        ("--any-uri", Hello(scope=Scope(any_uri=True))),
        ("--only api --only=web", Hello(scope=Scope(names=("api", "web")))),
        ("--only tag:work --only tag:a:b", Hello(scope=Scope(tags=("work", "a:b")))),
        ("--only --client", Hello(scope=Scope(names=("--client",)))),
    ],
)
def test_words_become_a_greeting(words: str, greeting: Hello | None) -> None:
    assert greeting_of(words.split()) == greeting


def test_the_working_directory_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert greeting_of(["--only", "cwd"]) == Hello(scope=Scope(cwd=os.getcwd()))


def test_a_working_directory_that_is_gone_narrows_to_nothing_by_an_error(
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
def test_words_it_does_not_have_are_refused(flags: list[str]) -> None:
    done = run(PING, *flags)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage: rootsd bridge" in done.stderr


def bridged(*flags: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", *flags],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"]},
        cwd="/",
    )


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_an_sdk_client_works_through_it_in_every_mode(
    mode: str,
) -> None:
    source = FakeSource(root("/src/api"))
    with published(source), anyio.fail_after(HANG_GUARD_S):
        async with Client(bridged("--client", "a test"), mode=mode) as client:
            listed = await client.call_tool("list_roots", {})
            assert listed.structured_content["roots"][0]["name"] == "api"
            assert len((await client.list_resources()).resources) == 2


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_an_sdk_client_sees_only_what_its_bridge_was_narrowed_to(
    mode: str,
) -> None:
    source = FakeSource(root("/src/api"), root("/src/web", tags=("work",)), root("/src/docs"))
    with published(source), anyio.fail_after(HANG_GUARD_S):
        async with Client(bridged("--only", "tag:work", "--only", "docs"), mode=mode) as client:
            listed = await client.call_tool("list_roots", {})
            names = {item["name"] for item in listed.structured_content["roots"]}
            assert names == {"web", "docs"}
