"""The members that a workspace declares, in the file of each tool."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.disk import workspace_members
from rootsd.disk.markers import WORKSPACE_FILES, is_marker
from rootsd.disk.workspace_members import WorkspaceMembers, read_workspace_members
from support.repositories import raw

PNPM = """packages:
  - 'packages/*'
  # - 'not/*'
  - "libs/**"
  - '!**/test/**'
catalog:
  - other/*
"""
UV = """[project]
name = "root"
[tool.uv.workspace]
members = ["packages/*", "libs/**"]
exclude = ["**/test/**"]
"""
CARGO = """[workspace]
members = [
    "packages/*", # comment
    "libs/**",
]
exclude = ["libs/**/test/*", "packages/test"]
"""
YARN = '{"workspaces": {"packages": ["./packages/*/", "libs/**", "!**/test/**"]}}'
NPM = '{"workspaces": ["packages/*", "libs/**", "!**/test/**"], "files": ["no/*"]}'


PNPM_FLOW = """---
"packages": [packages/*, './libs/**', "!**/test/**"]  # all of them
"""
PNPM_BRACES = "packages:\n- '{packages,libs,none/{a,b}}/*'\n- libs/**\n- '!**/test/**'\n"
UV_DOTTED = """[tool]
uv.workspace.members = ["packages/*", 'libs/**']
uv.workspace.exclude = ["**/test/**"]
"""
UV_INLINE = """tool = {uv = {workspace = {
    members = ["packages/*", "libs/**"], exclude = ["**/test/**"]}}}
""".replace("\n    ", " ")
CARGO_DOTTED = """workspace.members = ["packages/*", "libs/**"]
workspace.exclude = ["libs/x/test"]
[package]
name = "root"
"""
DENO = """{
  // it's the "workspace": ["other/*"] of Deno
  "workspace": ["./packages/*", /* "src" */ "./libs/**", "!**/test/**"],
}"""
DENO_MEMBERS = '{"workspace": {"members": ["packages/*", "libs/**", "!**/test/**"]}} // end'
LERNA = '{"version": "1", "packages": ["packages/*", "libs/**", "!**/test/**"]}'


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", NPM),
        ("package.json", YARN),
        ("pnpm-workspace.yaml", PNPM),
        ("pyproject.toml", UV),
        ("Cargo.toml", CARGO),
        ("pnpm-workspace.yaml", PNPM_FLOW),
        ("pnpm-workspace.yaml", PNPM_BRACES),
        ("pyproject.toml", UV_DOTTED),
        ("pyproject.toml", UV_INLINE),
        ("Cargo.toml", CARGO_DOTTED),
        ("deno.json", DENO_MEMBERS),
        ("deno.jsonc", DENO),
        ("lerna.json", LERNA),
    ],
)
def test_the_patterns_of_each_tool_are_read(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    members = read_workspace_members(raw(tmp_path), {file.encode(), b"README"})
    assert members is not None
    inside = {"packages/a", "libs/x", "libs/x/y"}
    outside = {"packages", "packages/a/b", "libs/x/test/z", "other/a", "no/a", "src"}
    found = {path for path in inside | outside if raw(tmp_path / path) in members}
    assert found == inside


def test_go_names_its_modules(tmp_path: Path) -> None:
    (tmp_path / "go.work").write_text(
        "go 1.22\nuse ./one // first\nuse (\n\t./two\n\t// ./no\n\t../outside\n)\n"
    )
    members = read_workspace_members(raw(tmp_path), {b"go.work"})
    assert members is not None
    found = [name for name in ("one", "two", "no") if raw(tmp_path / name) in members]
    assert found == ["one", "two"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pnpm-workspace.yaml", "x: &a [packages/*]\npackages: *a\n"),
        ("pnpm-workspace.yaml", "packages: &a\n  - packages/*\n"),
        ("pnpm-workspace.yaml", "packages: !!seq [packages/*]\n"),
        ("pnpm-workspace.yaml", "packages: [a/*]\npackages: [b/*]\n"),
        ("pnpm-workspace.yaml", "packages: [a/*]\n---\npackages: [b/*]\n"),
        ("pnpm-workspace.yaml", "packages: [a/*\n"),
        ("pnpm-workspace.yaml", "packages: a/*\n"),
        ("pnpm-workspace.yaml", "x: |\n packages: [a/*]\n"),
        ("Cargo.toml", 'workspace.members = "packages/*"'),
        ("Cargo.toml", "workspace = 1"),
        ("Cargo.toml", 'workspace.members = ["packages/*"]\nworkspace = 1'),
        ("pyproject.toml", "[tool.uv]\nworkspace = [1]"),
        ("package.json", '{"workspaces": {"nohoist": ["packages/*"]}}'),
        ("deno.json", '{"tasks": {"workspace": ["packages/*"]}}'),
    ],
)
def test_what_is_not_read_for_certain_declares_no_member(
    tmp_path: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    assert read_workspace_members(raw(tmp_path), {file.encode()}) is None


def test_cargo_excludes_what_is_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('workspace = {members = ["a/**"], exclude = ["a/old"]}')
    members = read_workspace_members(raw(tmp_path), {b"Cargo.toml"})
    assert members is not None
    found = [name for name in ("a/new", "a/old", "a/old/x") if raw(tmp_path / name) in members]
    assert found == ["a/new"]


_HOSTILE = {
    "brackets.yaml": "packages: " + "[" * 200_000,
    "braces.yaml": "packages: ['" + "{a,b}" * 200 + "']",
    "spaces.yaml": "packages:\n - a" + " " * 250_000 + "\n",
    "gaps.yaml": "packages: [" + "a , b  " * 35_000,
    "dashes.yaml": "- " * 60_000 + " " * 60_000 + "[",
    "quotes.yaml": "packages: [" + "'' " * 80_000 + "]",
    "colons.yaml": "x: " + "a[:" * 80_000,
    "items.yaml": "packages:\n" + "- a\n" * 60_000,
    "keys.yaml": "".join(f"k{n}: |\n" for n in range(30_000)),
    "dots.toml": "a" + ".a" * 30_000 + " = 1",
    "tables.toml": "[a]\n[b]\n" + "".join(f"[t{n}]\n" for n in range(8_000)),
    "nested.toml": "workspace.members = " + "[" * 60_000,
    "inline.toml": "a = " + "{a = " * 12_000,
    "number.toml": "a = " + "9" * 60_000,
    "comments.json": '{"workspaces": ' + "/*" * 120_000,
    "strings.json": '"' + '\\"' * 120_000,
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_a_hostile_file_is_read_within_bounds(tmp_path: Path, name: str) -> None:
    kind = {"yaml": "pnpm-workspace.yaml", "toml": "Cargo.toml", "json": "package.json"}
    file = kind[name.rpartition(".")[2]]
    (tmp_path / file).write_text(_HOSTILE[name])
    begin = time.process_time()
    read_workspace_members(raw(tmp_path), {file.encode()})
    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize(
    "pattern", ["../x", "/etc", "a/../../x", "", ".", "**/**/**/x", "/".join("a" * 20), "!only"]
)
def test_a_pattern_that_leads_out_or_is_empty_is_ignored(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "package.json").write_text(f'{{"workspaces": ["{pattern}"]}}')
    assert read_workspace_members(raw(tmp_path), {b"package.json"}) is None


def test_without_a_file_there_are_no_members(tmp_path: Path) -> None:
    assert read_workspace_members(raw(tmp_path), {b"package.json", b"go.work"}) is None
    assert read_workspace_members(raw(tmp_path), set()) is None


_parts = st.lists(st.sampled_from(["a", "b", "*", "**", "a*"]), min_size=1, max_size=5)


@given(pattern=_parts, path=st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5))
def test_a_pattern_matches_as_its_regular_expression_does(
    pattern: list[str], path: list[str]
) -> None:
    expression = "".join(
        "(?:[^/]+/)*" if part == "**" else part.replace("*", "[^/]*") + "/" for part in pattern
    )
    expected = re.fullmatch(expression, "/".join(path) + "/") is not None
    members = WorkspaceMembers(b"/w", (tuple(pattern),), ())
    assert (("/w/" + "/".join(path)).encode() in members) is expected


def test_each_file_that_is_read_is_also_watched_and_reported_when_it_is_new() -> None:
    assert workspace_members._MEMBER_READERS.keys() == WORKSPACE_FILES
    assert all(map(is_marker, WORKSPACE_FILES))
