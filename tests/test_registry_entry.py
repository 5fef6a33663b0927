"""The entry for the MCP registry agrees with the package and the README.

The registry refuses a package whose README lacks the name of the entry, and one whose version or
address differs. It has its own schema, which CI cannot reach; packaging/README.md has the command.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import rootsd

TOP = Path(__file__).parent.parent
SETTINGS = tomllib.loads((TOP / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
SCRIPTS = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-scripts"]
# What the schema allows at most.
LONGEST_DESCRIPTION = 100


@pytest.fixture
def entry() -> dict[str, Any]:
    """The content of server.json."""
    document: dict[str, Any] = json.loads((TOP / "server.json").read_text())
    return document


def test_the_entry_has_the_version_of_the_package_and_of_itself(entry: dict[str, Any]) -> None:
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == rootsd.__version__


def test_the_entry_describes_the_package_and_its_repository(entry: dict[str, Any]) -> None:
    (package,) = entry["packages"]
    assert entry["description"] == PROJECT["description"]
    assert len(entry["description"]) <= LONGEST_DESCRIPTION
    assert entry["repository"] == {"url": PROJECT["urls"]["Repository"], "source": "github"}
    assert package["identifier"] == PROJECT["name"]
    assert package["transport"] == {"type": "stdio"}


def test_the_name_of_the_entry_follows_from_the_repository_and_is_in_the_readme(
    entry: dict[str, Any],
) -> None:
    owner, name = PROJECT["urls"]["Repository"].removeprefix("https://github.com/").split("/")
    assert entry["name"] == f"io.github.{owner}/{name}"
    assert re.findall(r"mcp-name: (\S+)", (TOP / "README.md").read_text()) == [entry["name"]]


def test_the_entry_starts_the_command_that_connects_a_client(entry: dict[str, Any]) -> None:
    (package,) = entry["packages"]
    assert package["runtimeHint"] == "uvx"
    assert [*SCRIPTS.values()] == [package["identifier"]], "uvx runs the script of that name"
    words = [argument["value"] for argument in package["packageArguments"]]
    assert words == ["bridge"]
