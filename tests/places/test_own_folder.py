"""ROOTSD_DIR names a folder that only a person put there, and that nobody else can replace."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from rootsd.core.errors import ErrorCode
from rootsd.core.project_kind import PROJECT_FILES, VCS_NAMES
from rootsd.places import own_folder, runtime_dir
from rootsd.places.own_folder import traversed_folders, why_unusable
from support import preloaded

HANG_GUARD_S = 60
VERBS = [
    ["ls"], ["status"], ["up"], ["down"], ["approve", "x"], ["check", "/"], ["pending", "--count"],
    ["bridge"], ["run", "--", "true"], ["confine", "--", "true"], ["daemon"], ["sync", "run"],
    ["service", "status"], ["config", "check"], ["doctor"],
]  # fmt: skip


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder that is no project, in which others cannot write."""
    folder = tmp_path / "top"
    folder.mkdir(mode=0o700)
    return folder


def why(folder: Path, home: Path = Path("/home/none")) -> str | None:
    return why_unusable(os.fsencode(folder), (), os.fsencode(home))


def project(folder: Path, marker: str = ".git") -> Path:
    (folder / marker).mkdir(parents=True)
    return folder


MARKERS = sorted(map(os.fsdecode, VCS_NAMES | PROJECT_FILES))


@pytest.mark.parametrize("marker", [*MARKERS, "x.csproj", "x.code-workspace", "x.cabal", "bare"])
def test_a_folder_in_a_project_is_refused_whether_it_exists_or_not(top: Path, marker: str) -> None:
    inside = top / "clone" / "deep" / ".rootsd"
    assert why(inside) is None
    for name in ("HEAD", "objects", "refs") if marker == "bare" else (marker,):
        project(top / "clone", name)
    assert f"in the project {top}/clone" in (why(inside) or "")
    inside.mkdir(parents=True)
    assert f"in the project {top}/clone" in (why(inside) or "")
    assert "in the project" in (why(top / "clone") or "")
    assert why(top) is None


def test_a_link_does_not_lead_into_or_through_a_project(top: Path) -> None:
    clone, good = project(top / "clone"), top / "good"
    good.mkdir()
    (clone / "data").mkdir()
    (top / "in").symlink_to("clone/data")
    (clone / "out").symlink_to(good)  # the project can make it lead elsewhere
    (top / "over").symlink_to("clone/out")
    for name in ("in", "in/deeper", "over", "clone/out", "clone/../good/../clone/data"):
        assert "in the project" in (why(top / name) or ""), name
    (top / "fine").symlink_to("good")
    assert why(top / "fine") is None


@pytest.mark.parametrize("inner", ["state", "data", "run"])
def test_decisions_and_sockets_do_not_lead_into_a_project(top: Path, inner: str) -> None:
    clone = project(top / "clone")
    (top / "own").mkdir()
    (top / "own" / inner).symlink_to(clone)
    assert "in the project" in (why(top / "own") or "")


def test_a_loop_of_links_ends(top: Path) -> None:
    (top / "one").symlink_to("other")
    (top / "other").symlink_to("one")
    assert list(traversed_folders(os.fsencode(top / "one")))[-1] == os.fsencode(top)


def test_a_folder_in_or_below_which_others_can_write_is_refused(top: Path) -> None:
    (top / "own").mkdir()
    for mode in (0o777, 0o1777):
        top.chmod(mode)
        assert "everybody can" in (why(top) or "")
    assert why(top / "own") is None, "as in /tmp"
    assert why(top / "new") is None
    top.chmod(0o777)
    assert f"everybody can write to {top}" in (why(top / "own") or "")


@pytest.mark.needs("root")
def test_a_folder_of_another_user_is_refused(top: Path) -> None:
    os.chown(top, 12345, -1)
    assert "belongs to another user" in (why(top) or "")


def test_markers_in_the_home_folder_and_in_places_of_the_system_are_no_project(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project(top / "home")
    (home / ".config").mkdir()
    project(home / ".config")
    assert why(home / ".rootsd", home) is None
    assert why(home / ".config" / "rootsd-try", home) is None
    project(home / ".cache" / "plugin")
    assert "in the project" in (why(home / ".cache" / "plugin" / "x", home) or "")


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_refuses_it_and_starts_nothing(top: Path, words: list[str]) -> None:
    folder = project(top / "clone") / "rootsd"
    state = folder / "state"
    state.mkdir(parents=True, mode=0o700)
    ran = top / "ran"
    record = f'{{"command": ["touch", "{ran}"], "environment": {{}}, "log": "{top}/log"}}'
    (state / "start.json").write_text(record)
    before = sorted(folder.rglob("*"))
    environment = {**os.environ, runtime_dir.OVERRIDE: str(folder)}
    (top / "asked").write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    with (top / "asked").open() as asked, (top / "said").open("w") as said:
        descriptors = {0: asked.fileno(), 1: said.fileno(), 2: said.fileno()}
        status = preloaded.start(words, environment, descriptors, top).wait(HANG_GUARD_S)
    assert status in {78, 1}
    assert f"in the project {top}/clone" in (top / "said").read_text()
    assert "ROOTSD_DIR" in (top / "said").read_text()
    assert sorted(folder.rglob("*")) == before
    assert not ran.exists()


def test_the_reason_and_the_next_step_are_named_and_a_home_folder_there_hides_nothing(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOME is as easy to set as ROOTSD_DIR."""
    folder = project(top / "clone") / "x"
    monkeypatch.setenv(runtime_dir.OVERRIDE, str(folder))
    for home in (os.environ["HOME"], str(top / "clone")):
        monkeypatch.setenv("HOME", home)
        with pytest.raises(runtime_dir.FolderUnavailable, match="in the project") as caught:
            runtime_dir.overriding_folder()
        assert caught.value.code is ErrorCode.BAD_CONFIG
        assert caught.value.remedy.startswith("unset ROOTSD_DIR")
    monkeypatch.setattr(own_folder, "_is_project", lambda _: False)  # the control: no check
    assert runtime_dir.overriding_folder() == os.fsencode(folder)


@contextmanager
def mcp_socket(path: Path, root: Path | None) -> Iterator[list[str]]:
    """Answer `resolve_root` at `path` as a daemon with one root, and yield the paths asked for."""
    asked: list[str] = []
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, connection.makefile("rwb") as lines:
                        asked.append(json.loads(lines.readline())["params"]["arguments"]["path"])
                        inside = root is not None and Path(asked[-1]).is_relative_to(root)
                        found = {"inside": inside, "root": {"path": str(root)} if inside else None}
                        answer = {
                            "jsonrpc": "2.0",
                            "id": 1,
                            "result": {"structuredContent": found},
                        }
                        lines.write(json.dumps(answer).encode() + b"\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(HANG_GUARD_S)


def test_a_folder_in_an_approved_root_without_markers_is_refused(top: Path) -> None:
    root, at = top / "notes", top / "mcp.sock"
    (root / "deep").mkdir(parents=True)
    (top / "link").symlink_to("notes/deep")
    with mcp_socket(at, root) as asked:
        for name in ("notes", "notes/new", "notes/deep", "link"):
            refusal = why_unusable(os.fsencode(top / name), [os.fsencode(at)], b"")
            assert f"is in the approved root {root}" in (refusal or ""), name
        assert why_unusable(os.fsencode(top / "new"), [os.fsencode(at)], b"") is None
    assert asked[-1] == str(top)


@pytest.mark.parametrize("answer", [b"", b"\n", b"{}\n", b"[" * 10_000 + b"\n"])
def test_a_daemon_that_gives_no_answer_says_nothing(top: Path, answer: bytes) -> None:
    at = top / "mcp.sock"
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(at))
        listening.listen()

        def serve() -> None:
            with closing(listening.accept()[0]) as connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert why_unusable(os.fsencode(top / "new"), [os.fsencode(at)], b"") is None
        thread.join(HANG_GUARD_S)
