"""The session server refuses to load the SDK of another installed version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rootsd
from rootsd.mcp.sessions import server as module
from rootsd.mcp.sessions.server import SessionServer
from rootsd.system.ipc.unix_socket import Peer


class Stream:
    closed = False

    async def aclose(self) -> None:
        self.closed = True


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
    reception = SessionServer(
        None,  # type: ignore[arg-type]  # nothing is opened
        None,  # type: ignore[arg-type]  # nobody is answered
        None,  # type: ignore[arg-type]  # nobody is looked at
        None,  # type: ignore[arg-type]  # nobody is behind a wall
        connected=lambda: pytest.fail("somebody was let in"),
        outdated=lambda: outdated.append(True),
    )
    if removed:
        installed.unlink()
    else:
        (tmp_path / "new").write_text("")
        os.replace(tmp_path / "new", installed)
    stream = Stream()
    await reception.serve(stream, Peer(1, 2), lambda: None)  # type: ignore[arg-type]
    assert (stream.closed, outdated, loaded) == (True, [True], [])
