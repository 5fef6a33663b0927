"""The documents say about agents and clients what their files and the tests say."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from write_agents import FILES, page, version

from rootsd.agents import with_program
from rootsd.connect.base import McpClient
from rootsd.connect.registry import all_clients
from support import agent_programs
from support.agent_programs import PROGRAMS, AgentProgram, Server

PAGE = (Path(__file__).parents[2] / "docs" / "CLIENTS.md").read_text()
ROOTSD = "/home/you/.local/bin/rootsd"
READERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_tables_are_those_of_the_files(file: Path) -> None:
    assert file.read_text() == page(file), "run make reference"


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_an_agent_that_the_tests_run_says_which_version(program: AgentProgram) -> None:
    agent = with_program(program.name, "SOURCE")
    assert agent is not None
    assert (agent.LABEL, version(agent)) == (program.label, agent_programs.version(program))


def snippets(title: str) -> list[Any]:
    """Return the settings that docs/CLIENTS.md shows below the heading `title`."""
    text = PAGE.partition(f"### {title}\n")[2]
    section = re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [
        READERS[kind](snippet)
        for kind, snippet in re.findall(r"```(json|toml)\n(.*?)```", section, re.DOTALL)
    ]


SHOWN = [client for client in all_clients().values() if snippets(client.facts.title)]


@pytest.mark.parametrize("client", SHOWN, ids=lambda client: client.facts.name)
def test_a_snippet_is_part_of_what_connect_writes(client: McpClient) -> None:
    facts = client.facts
    entry = facts.form.entry((ROOTSD, "bridge"), {}, {})
    (shown,) = snippets(facts.title)
    assert is_part_of(shown, facts.language.values(client.snippet(entry)))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_a_snippet_is_tested_with_the_real_program(program: AgentProgram, tmp_path: Path) -> None:
    """`make agents` runs each program with the entry that `configure` writes."""
    program.configure(tmp_path, {"rootsd": Server((ROOTSD, "bridge"))}, "http://127.0.0.1:1")
    written = [
        READERS[file.suffix[1:]](file.read_text())
        for file in tmp_path.rglob("*")
        if file.suffix[1:] in READERS
    ]
    agent = with_program(program.name, "clients")
    for shown in snippets(agent.clients()[0].title) if agent is not None else []:
        assert [settings for settings in written if is_part_of(shown, settings)], written


def is_part_of(part: object, whole: object) -> bool:
    """Return whether all keys and values of `part` are in `whole`."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part_of(value, whole[key]) for key, value in part.items())
    return part == whole
