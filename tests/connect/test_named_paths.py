"""The paths that an entry names are found, wherever they stand, if a server would lose them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.agents.forms.client import EntryReading, Placeholder
from rootsd.agents.forms.place import Platform
from rootsd.connect.base import ClientEnvironment
from rootsd.connect.launch import launch_of
from rootsd.connect.named_paths import (
    NeedKind,
    ReachableFiles,
    is_environment,
    own_state,
    path_needs,
)
from rootsd.connect.servers import ServerEntry, ServerId
from rootsd.connect.wraps import PathUse, ShownPath
from rootsd.core.wall import WallSettings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with files that entries name."""
    for folder in (
        "Documents",
        "a, b",
        "My Data",
        ".cache/uv",
        ".mcp",
        "src/server/dist",
        "notes",
    ):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("notes/memory.json", "My Data/m.json", ".mcp/notes.db", "key.pem", "a, b/x:y"):
        (tmp_path / file).touch()
    (tmp_path / "src/server/package.json").touch()
    (tmp_path / "src/server/dist/index.js").touch()
    return tmp_path


def needs(
    home: Path,
    *words: str,
    variables: dict[str, str] | None = None,
    keep: Path | None = None,
    hide: Path | None = None,
) -> list[tuple[str, NeedKind, ShownPath | None]]:
    entry = ServerEntry(ServerId("x"), words, variables or {})
    environment = ClientEnvironment(home, {"PATH": os.defpath}, Platform.LINUX)
    launch = launch_of(entry, EntryReading((Placeholder.BRACES,)), environment)
    kept, hidden = (() if each is None else (bytes(each),) for each in (keep, hide))
    reachable = ReachableFiles(home, WallSettings(keep=kept, hide=hidden))
    found = path_needs(launch, reachable, os.defpath)
    return [(str(Path(need.path).relative_to(home)), need.kind, need.shown) for need in found]


@pytest.mark.parametrize(
    "text",
    [
        "{}", "file://{}", "file://localhost{}", "FILE:{}", "file:{}", "json:///{}", "sqlite://{}",
        "sqlite:///{}", "{}?mode=ro", '["/usr", "{}"]', '{{"path": "{}"}}', "/usr:{}", "{};/usr",
        "{},x", "name={}", "file://{}#top", "$HOME/notes/memory.json", "~/notes/memory.json",
        "${{HOME}}/notes/memory.json", "run --memory {}",
    ],
)  # fmt: skip
def test_a_file_in_a_variable_is_found_in_each_notation(home: Path, text: str) -> None:
    file = home / "notes/memory.json"
    name = text.format(file)
    if text.endswith("?mode=ro"):
        name = f"file:{name}"
    found = needs(home, "npx", "server", variables={"X": name})
    shown = ShownPath(PathUse.WRITE, str(file.parent))
    assert found == [("notes/memory.json", NeedKind.DATA, shown)]


@pytest.mark.parametrize("text", ["{}", "--dir={}", "-d{}", "--dirs={},/usr", "file://{}", "x={}"])
def test_a_folder_in_the_command_is_a_limit(home: Path, text: str) -> None:
    folder = home / "Documents"
    found = needs(home, "npx", "-y", "server-filesystem", text.format(folder))
    assert found == [("Documents", NeedKind.LIMIT, ShownPath(PathUse.WRITE, str(folder)))]


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("My Data/m.json", PathUse.WRITE, "My Data"),  # to replace it by another file
        ("a, b/x:y", PathUse.WRITE, "a, b"),
        ("key.pem", PathUse.READ, "key.pem"),
        (".mcp/notes.db", PathUse.WRITE, ".mcp"),  # with its journal
        (".mcp/new.json", PathUse.WRITE, ".mcp"),  # the server will create it
    ],
)
def test_what_is_shown_fits_the_path(home: Path, name: str, kind: PathUse, shown: str) -> None:
    found = needs(home, "npx", "server", variables={"X": str(home / name)})
    assert found == [(name, NeedKind.DATA, ShownPath(kind, str(home / shown)))]


def test_a_path_that_would_open_the_home_folder_is_never_offered(home: Path) -> None:
    new, whole = home / "new.json", str(home)
    (home / "old.json").touch()
    assert needs(home, "x", "~/old.json") == [("old.json", NeedKind.DATA, None)]
    assert needs(home, "x", variables={"X": str(new)}) == [("new.json", NeedKind.DATA, None)]
    assert needs(home, "x", variables={"X": str(home / "no/such.json")}) == [
        ("no/such.json", NeedKind.DATA, None)
    ]
    assert needs(home, "server-filesystem", whole) == [(".", NeedKind.LIMIT, None)]
    assert needs(home, "server", variables={"HOME": whole}) == []


@pytest.mark.parametrize(
    "text",
    ["x", "-y", "/usr/bin/node", "/etc/hosts", "/dev/null", "/api/v1/users", "https://x/Documents",
     "postgres://localhost:5432/Documents", "@scope/name", "http://localhost/usr", "a:b", "", "~",
     "1.2", "\0/"],
)  # fmt: skip
def test_what_is_no_path_or_is_reached_is_no_need(home: Path, text: str) -> None:
    assert needs(home, "npx", "server", variables={"X": text}) == []


def test_the_settings_of_the_wall_count(home: Path) -> None:
    file, cache = home / "notes/memory.json", home / ".cache/uv"
    assert needs(home, "x", variables={"X": str(file)}, keep=file) == []
    assert needs(home, "x", variables={"X": str(cache)}) == []
    assert len(needs(home, "x", variables={"X": str(cache)}, hide=cache)) == 1


def test_a_link_out_of_what_is_reached_is_a_need(home: Path) -> None:
    link = home / ".cache/uv/state.json"
    link.symlink_to(home / "notes/memory.json")
    assert [each[0] for each in needs(home, "x", variables={"X": str(link)})] == [
        ".cache/uv/state.json"
    ]


def test_the_code_of_a_server_needs_its_package(home: Path) -> None:
    script = home / "src/server/dist/index.js"
    shown = ShownPath(PathUse.READ, str(home / "src/server"))
    expected = [("src/server/dist/index.js", NeedKind.CODE, shown)]
    assert needs(home, "node", str(script)) == expected
    assert needs(home, "node", str(script), str(home / "Documents"))[1][1] is NeedKind.LIMIT
    [(_, kind, _)] = needs(home, "uv", "--directory", str(home / "src/server"), "run", "x")
    assert kind is NeedKind.CODE


def test_a_virtual_environment_is_shown_as_a_whole(home: Path) -> None:
    venv = home / "envs/x"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    python, script = venv / "bin/python", venv / "bin/server"
    python.symlink_to("/bin/sh")
    script.touch(0o755)
    shown = ShownPath(PathUse.READ, str(venv))
    for program in (python, script):
        entry = ServerEntry(ServerId("x"), (str(program), "-m", "server"), {})
        environment = ClientEnvironment(home, {}, Platform.LINUX)
        launch = launch_of(entry, EntryReading(), environment)
        [need] = path_needs(launch, ReachableFiles(home, WallSettings()), "")
        assert (need.kind, need.shown, is_environment(need)) == (NeedKind.PROGRAM, shown, True)


def test_a_server_keeps_the_folders_of_its_name(home: Path) -> None:
    for folder in (".mcp-auth", ".config/server-x", ".local/share/server-x", ".config/npx"):
        (home / folder).mkdir(parents=True)
    environment = ClientEnvironment(home, {}, Platform.LINUX)
    reachable = ReachableFiles(home, WallSettings())

    def kept(*words: str) -> list[str]:
        launch = launch_of(ServerEntry(ServerId("x"), words, {}), EntryReading(), environment)
        return [str(Path(each.path).relative_to(home)) for each in own_state(launch, reachable)]

    assert kept("npx", "-y", "@scope/server-x@1.2") == [
        ".config/server-x",
        ".local/share/server-x",
    ]
    assert kept("uvx", "mcp-remote", "https://x") == [".mcp-auth"]
    assert kept("npx", "-y") == []
