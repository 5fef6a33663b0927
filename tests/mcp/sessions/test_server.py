"""The session server refuses to load the SDK of another installed version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rootsd
from rootsd.mcp.connection import serve_session
from rootsd.mcp.sessions import server as module
from rootsd.mcp.sessions.server import SessionServer
from rootsd.net.unix_socket import Peer


class Stream:
    closed = False

    async def aclose(self) -> None:
        self.closed = True


def a_server(outdated: list[bool]) -> SessionServer:
    return SessionServer(
        None,  # type: ignore[arg-type]  # nothing is opened
        None,  # type: ignore[arg-type]  # nobody is answered
        None,  # type: ignore[arg-type]  # nobody is looked at
        None,  # type: ignore[arg-type]  # nobody is behind a wall
        connected=lambda: pytest.fail("somebody was let in"),
        outdated=lambda: outdated.append(True),
    )


async def test_the_sdk_is_loaded_early_once_and_never_from_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "__init__.py"
    installed.write_text("")
    monkeypatch.setattr(rootsd, "__file__", str(installed))
    loaded, outdated = list[bool](), list[bool]()

    def load() -> object:
        loaded.append(True)
        return serve_session

    monkeypatch.setattr(module, "_import_serve_session", load)
    server = a_server(outdated)
    await server.load_early()
    await server.load_early()
    assert loaded == [True]
    server = a_server(outdated)
    installed.unlink()
    await server.load_early()
    assert (loaded, outdated) == ([True], []), "the daemon may go on until somebody comes"


@pytest.mark.parametrize("removed", [True, False], ids=["removed", "replaced"])
async def test_two_versions_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    installed = tmp_path / "__init__.py"
    installed.write_text("")
    monkeypatch.setattr(rootsd, "__file__", str(installed))
    loaded = list[bool]()
    monkeypatch.setattr(module, "_import_serve_session", lambda: loaded.append(True))
    outdated = list[bool]()
    reception = a_server(outdated)
    if removed:
        installed.unlink()
    else:
        (tmp_path / "new").write_text("")
        os.replace(tmp_path / "new", installed)
    stream = Stream()
    await reception.serve(stream, Peer(1, 2), lambda: None)  # type: ignore[arg-type]
    assert (stream.closed, outdated, loaded) == (True, [True], [])
