"""The folders that `rootsd acp` gets from the daemon, also from inside a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable
from rootsd.link import sandbox
from rootsd.proxy.acp.folders import ApprovedFolders
from rootsd.proxy.run.roots import RootFolder
from rootsd.wire.hello import HELLO_METHOD
from rootsd.wire.requested_scope import RequestedScope
from support.fake_daemon import FakeDaemon

API = {"uri": "file:///src/api", "name": "api", "_meta": {"rootsd/access": "read-write"}}


@pytest.fixture
def mcp_socket(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    """The socket of a daemon that a sandbox shows."""
    daemon = FakeDaemon(rootsd_dir)
    daemon.socket = rootsd_dir / "run" / "pub" / "mcp.sock"
    daemon.answers = {HELLO_METHOD: {}, "roots/list": {"roots": [API]}}
    with daemon:
        yield daemon


@pytest.mark.parametrize("place", ["the wall", "a container", "bubblewrap"])
def test_where_only_the_mcp_socket_is_visible_the_roots_come_from_there(
    mcp_socket: FakeDaemon, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "the wall":
        monkeypatch.setenv(sandbox.CONFINED_VARIABLE, "1")
    elif place == "bubblewrap":
        (rootsd_dir / "run" / "ctl").mkdir()
        monkeypatch.setattr(sandbox, "in_sandbox", lambda: True)
    approved = ApprovedFolders("an editor", RequestedScope(names=("api",)))
    assert approved.approved() == (RootFolder(b"/src/api", "api"),)
    assert [each["scope"] for each in mcp_socket.asked(HELLO_METHOD)] == [{"names": ["api"]}]


def test_in_a_sandbox_without_a_daemon_the_error_says_so() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sandbox.CONFINED_VARIABLE, "1")
        with pytest.raises(DaemonUnreachable, match="rootsd is not running"):
            ApprovedFolders("an editor", RequestedScope()).approved()
