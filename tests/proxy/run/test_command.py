"""Placeholders for roots in commands and environment variables."""

from __future__ import annotations

import pytest

from rootsd.proxy.run.command import (
    NOT_IN_A_ROOT,
    PlaceholderError,
    ServerCommand,
    uses_working_directory,
)
from rootsd.proxy.run.roots import RootFolder

API, WEB = RootFolder(b"/src/api", "api"), RootFolder(b"/src/we b", "acme/web")


def words(text: str, *folders: RootFolder) -> list[str]:
    return list(ServerCommand(text.split(), (), "/none").launch(folders).words)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("s", ["s"]),
        ("s {roots}", ["s", "/src/api", "/src/we b"]),
        ("s --dir={roots} x", ["s", "--dir=/src/api", "--dir=/src/we b", "x"]),
        ("s --repository {root}", ["s", "--repository", "/src/api"]),
        ("s {root:acme/web}/x", ["s", "/src/we b/x"]),
        ("s {root:api}:{root:gone}", ["s", "/src/api:/none"]),
        ("s {roots}={root}", ["s", "/src/api=/src/api", "/src/we b=/src/api"]),
        ("s {} {rootes} {root:} {{root}}", ["s", "{}", "{rootes}", "{root:}", "{/src/api}"]),
    ],
)
def test_placeholders_are_replaced_by_roots(typed: str, expected: list[str]) -> None:
    assert words(typed, API, WEB) == expected


@pytest.mark.parametrize("mark", ["{roots}", "{root}", "{root:api}"])
def test_a_missing_root_becomes_the_empty_folder(mark: str) -> None:
    assert words(f"s {mark}") == ["s", "/none"]


def test_variables_hold_all_paths_as_in_path() -> None:
    variables = [("ALL", "{roots}"), ("FILE", "{root}/m.json"), ("ONE", "x{root:api}"), ("P", "p")]
    command = ServerCommand(["s"], variables, "/none")
    assert command.launch([API, WEB]).environment == {
        "ALL": "/src/api:/src/we b",
        "FILE": "/src/api/m.json",
        "ONE": "x/src/api",
        "P": "p",
    }
    assert command.launch([]).environment["ALL"] == "/none"


@pytest.mark.parametrize(
    ("typed", "variable", "names"),
    [
        ("s x", "p", False),
        ("s {roots}", "p", True),
        ("s", "{root:x}", True),
        ("s {rots}", "", False),
    ],
)
def test_a_command_knows_whether_it_names_roots(typed: str, variable: str, names: bool) -> None:
    assert ServerCommand(typed.split(), [("V", variable)], "/none").names_roots is names


def test_a_root_name_is_not_expanded_again() -> None:
    sly = RootFolder(b"/src/{root:api}", "sly")
    assert words("s {roots}", sly, API) == ["s", "/src/{root:api}", "/src/api"]


# Separators and flags


def test_all_roots_can_be_joined_by_a_separator_or_given_a_flag_each() -> None:
    assert words("s {roots:,} -d={roots:, }", API, WEB)[1] == "/src/api,/src/we b"
    assert words("s {roots:--allow} x", API, WEB) == [
        "s", "--allow", "/src/api", "--allow", "/src/we b", "x",
    ]  # fmt: skip
    assert words("s {roots:-d=}", API, WEB) == ["s", "-d=/src/api", "-d=/src/we b"]
    assert words("s {roots:--allow}") == ["s", "--allow", "/none"]
    assert words("s x={roots:,}") == ["s", "x=/none"]


@pytest.mark.parametrize(
    ("path", "separator"),
    [
        ("/src/x:/etc", ""),
        ("/src/x,/etc", ":,"),
        ("/src/x;", ":;"),
        ("/src/x,", ":,,"),
        (",/src/x", ":,,"),
        ("/src/a, b", ":, "),
    ],
)
def test_a_root_with_the_separator_in_its_path_is_left_out(path: str, separator: str) -> None:
    bad = RootFolder(path.encode(), "bad")
    typed = f"{{roots{separator}}}"
    command = ServerCommand(["s"], [("X", typed)], "/none")
    launch = command.launch([bad, API])
    assert launch.environment == {"X": "/src/api"}
    assert launch.left_out == ((path, separator[1:] or ":"),)
    assert command.launch([bad]).environment == {"X": "/none"}
    if separator:
        assert ServerCommand(["s", typed], (), "/none").launch([API, bad]).words == (
            "s",
            "/src/api",
        )


def test_a_root_that_is_not_joined_is_not_left_out() -> None:
    bad = RootFolder(b"/src/x:/etc", "bad")
    launch = ServerCommand(["s", "{roots}", "{roots:--d}", "{roots:,}"], (), "/none").launch([bad])
    assert launch.words == ("s", "/src/x:/etc", "--d", "/src/x:/etc", "/src/x:/etc")
    assert launch.left_out == ()


@pytest.mark.parametrize(
    "typed", ["{roots:abc}", "{roots:}", "{roots:/}", "x{roots:--a}", "{roots:-}"]
)
def test_an_invalid_placeholder_is_refused(typed: str) -> None:
    with pytest.raises(PlaceholderError):
        ServerCommand(["s", typed], (), "/none")


def test_a_flag_placeholder_is_refused_in_a_variable() -> None:
    with pytest.raises(PlaceholderError):
        ServerCommand(["s"], [("X", "{roots:--allow}")], "/none")


def folder_of(here: bytes | None, *folders: RootFolder) -> str | None:
    return ServerCommand(["s"], (), "/none", here).launch(folders).folder


def test_a_server_starts_in_its_working_directory_only_in_a_root() -> None:
    inside = API.path + b"/sub"
    assert folder_of(inside, API) is None
    assert folder_of(API.path, API) is None
    assert folder_of(inside) == folder_of(API.path + b"2", API) == "/none"
    assert folder_of(None, API) is None
    assert folder_of(NOT_IN_A_ROOT, API) == "/none"


def test_a_server_need_not_wait_for_roots_that_change_nothing() -> None:
    for here, waits in ((None, False), (NOT_IN_A_ROOT, False), (b"/src/api", True)):
        assert ServerCommand(["s"], (), "/none", here).needs_roots is waits
    assert ServerCommand(["s", "{root}"], (), "/none").needs_roots


@pytest.mark.parametrize(
    ("typed", "files", "uses"),
    [
        ("node build/index.js", "build/index.js", True),
        ("node ./index.js", "./index.js", True),
        ("./server", "./server", True),
        ("python server.py", "server.py", True),
        ("python3 -m pkg.server", "pkg/server.py", True),
        ("python3.11 -m pkg", "pkg/__main__.py", True),
        ("s --config=conf/a.json", "conf/a.json", True),
        ("uv run server", "pyproject.toml", True),
        ("npm start", "package.json", True),
        ("npx -y some-server", "package.json", False),
        ("uvx some-server", "pyproject.toml", False),
        ("uv tool run some-server", "pyproject.toml", False),
        ("npx -y @scope/server", "", False),
        ("server serve", "serve", False),
        ("server .", ".", False),
        ("server ..", "..", False),
        ("server ../", "../", False),
        ("server /src/x.js", "/src/x.js", False),
        ("server {root}/x.js", "{root}/x.js", False),
        ("node build/index.js", "", False),
    ],
)
def test_a_command_may_need_the_files_of_its_working_directory(
    typed: str, files: str, uses: bool
) -> None:
    assert uses_working_directory(typed.split(), lambda path: path in files.split()) is uses
