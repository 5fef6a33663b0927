"""The members that a workspace declares, in the file of each tool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.disk.manifest import WorkspaceMembers, read_workspace_members
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


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", NPM),
        ("package.json", YARN),
        ("pnpm-workspace.yaml", PNPM),
        ("pyproject.toml", UV),
        ("Cargo.toml", CARGO),
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
