"""Where a server starts: in its working directory if that lies in a root."""

from __future__ import annotations

import os
from pathlib import Path

from support.mcp_harness import FakeSource, root
from support.polling import until
from support.run_proxy import SCRIPTED, command, started
from support.threaded_publisher import published


def start_folder(cwd: Path | str, *server: str, flags: tuple[str, ...] = (), **more: str) -> str:
    """Return where a silent server starts if its client starts `rootsd run` in `cwd`."""
    line = command(*(server or (*SCRIPTED, "--deaf")), flags=flags)
    with started(line, cwd=cwd, **more) as client:
        client.shake_hands()
        told = client.call("where", "started")
        assert told["pwd"] == told["folder"] or told["pwd"] == os.environ.get("PWD")
        return str(told["folder"])


def test_a_server_starts_in_a_root_or_in_the_empty_folder(tmp_path: Path) -> None:
    """Servers of MCP 2026-07-28 do not ask for roots and use their working directory."""
    inside, other = tmp_path / "api" / "sub", tmp_path / "other"
    for folder in (inside, other):
        folder.mkdir(parents=True)
    copy = other / "server.py"
    copy.write_text(Path(SCRIPTED[-1]).read_text())
    relative = (*SCRIPTED[:-1], "server.py", "--deaf")
    with published(FakeSource(root(f"{tmp_path}/api"))):
        assert start_folder(inside) == str(inside)
        for place in ("/", other, tmp_path):
            assert Path(start_folder(place)).name.startswith("no-approved-roots")
        assert Path(start_folder(tmp_path, HOME=str(tmp_path))).name.startswith(
            "no-approved-roots"
        )
        assert start_folder(other, flags=("--keep-cwd",)) == str(other)
        assert start_folder(other, *relative) == str(other), "the command names a file there"
    assert Path(start_folder(inside)).name.startswith("no-approved-roots"), "without a daemon"


def test_a_silent_server_leaves_a_folder_that_is_denied_and_enters_one_that_is_approved(
    tmp_path: Path,
) -> None:
    (tmp_path / "api").mkdir()
    api = root(f"{tmp_path}/api")
    line = command(*SCRIPTED, "--deaf")
    with published(FakeSource(api)) as roots, started(line, cwd=tmp_path / "api") as client:
        client.shake_hands()
        assert client.call(0, "started")["folder"] == f"{tmp_path}/api"
        roots.set()
        assert until(lambda: "no-approved-roots" in client.call(1, "started")["folder"])
        roots.set(api)
        assert until(lambda: client.call(1, "started")["folder"] == f"{tmp_path}/api")


def test_control_a_server_that_starts_where_its_client_is_sees_everything() -> None:
    with published(FakeSource()), started([*SCRIPTED, "--deaf"], cwd="/") as client:
        client.shake_hands()
        assert client.call(1, "started")["folder"] == "/"
