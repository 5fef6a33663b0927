"""The names that project files declare, also in files that attack a parser."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.disk.manifest import MANIFEST_CAP, declared_name, json_strings, toml_values
from support.repositories import raw

POM = """<project>
<parent><artifactId>outer</artifactId></parent>
<artifactId>api</artifactId>
<dependencies><dependency><artifactId>other</artifactId></dependency></dependencies>
</project>"""


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", '{"x": {"name": "no"}, "list": [{"name": "no"}], "name": "api"}'),
        ("package.json", '{"name": "\\u0061pi"}'),
        ("composer.json", '{"name":"api"}'),
        ("deno.jsonc", '{\n// a comment\n"name": "api"}'),
        ("pyproject.toml", '[tool.x]\nname = "no"\n[project]\nname = "api" # yes'),
        ("pyproject.toml", "[tool.poetry]\nname = 'api'"),
        ("Cargo.toml", '[package]\nname = "api"\n[lib]\nname = "no"'),
        ("setup.cfg", "[options]\nname = no\n[metadata]\nname = api"),
        ("setup.py", 'setup(\n    name="api",\n)'),
        ("go.mod", "module api\n\ngo 1.22"),
        ("pom.xml", POM),
        ("settings.gradle", "rootProject.name = 'api'"),
        ("settings.gradle.kts", 'rootProject.name = "api"'),
        ("mix.exs", "  app: :api,"),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3)\nproject(api C)"),
        ("meson.build", "project('api', 'c')"),
        ("Package.swift", 'let package = Package(\n    name: "api",'),
        ("pubspec.yaml", "name: api\n"),
        ("dune-project", "(lang dune 3)\n(name api)"),
        ("api.cabal", "cabal-version: 2\nName: api"),
    ],
)
def test_each_project_file_declares_a_name(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    assert declared_name(raw(tmp_path / file)) == "api"


@pytest.mark.parametrize("file", ["package.json", "Cargo.toml", "Gemfile", "a.sln", "pom.xml"])
def test_a_file_without_a_name_declares_none(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("nothing of that kind\n")
    assert declared_name(raw(tmp_path / file)) is None
    assert declared_name(raw(tmp_path / "none" / file)) is None


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * MANIFEST_CAP,
        '{"a":' * (MANIFEST_CAP // 5),
        '"' + "\\" * MANIFEST_CAP,
        "a = [" + "[" * MANIFEST_CAP,
        "[" + "a" * MANIFEST_CAP,
        "a.b" * (MANIFEST_CAP // 3) + " = 1",
        " " * MANIFEST_CAP,
        "\n" * MANIFEST_CAP,
        'a = ["' + '", "' * (MANIFEST_CAP // 4),
        "<parent>" * (MANIFEST_CAP // 8),
    ],
)
def test_hostile_manifests_take_little_time(tmp_path: Path, bomb: str) -> None:
    begin = time.process_time()
    for file in ("package.json", "Cargo.toml", "pyproject.toml", "pom.xml", "setup.py", "go.mod",
                 "CMakeLists.txt", "api.cabal"):  # fmt: skip
        (tmp_path / file).write_text(bomb)
        assert declared_name(raw(tmp_path / file)) is None
    assert time.process_time() - begin < 10


@given(st.text('{}[]:,"\\ab1 \n', max_size=200))
def test_no_text_raises(text: str) -> None:
    lines = tuple(text.splitlines())
    assert all(len(value) <= len(text) for _, value in json_strings(lines))
    assert all(set("".join(said)) <= set(text) for said in toml_values(lines))


def test_json_strings_are_yielded_with_their_keys() -> None:
    text = '{"workspaces": {"packages": ["a", "b"]}, "name": "x", "n": 1, "deep": [[[["no"]]]]}'
    assert list(json_strings((text,))) == [
        (("workspaces", "packages"), "a"),
        (("workspaces", "packages"), "b"),
        (("name",), "x"),
    ]
