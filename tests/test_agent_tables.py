"""The tables of agents in docs/SECURITY.md and docs/AGENTS.md match the code and the tests."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rootsd.agents.guarded import guarded_agents
from rootsd.core.agents import Agent
from support.agent_programs import PROGRAMS, AgentProgram, Server, version
from support.self_approval import ATTEMPTS, Attempt, Outcome

TOP = Path(__file__).parent.parent
READERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads}


def table(file: Path, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table in `file` whose first column is `heading`, by first cell."""
    lines = file.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = dict[str, list[str]]()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        rows[first] = rest
    return rows


def outcome_in(cell: str) -> Outcome:
    """Return the outcome that a cell of that table describes."""
    if cell.startswith("**not refused**"):
        return Outcome.PASSED
    return Outcome.REFUSED if cell.startswith("refused") else Outcome.CHALLENGED


@pytest.mark.parametrize("way", ATTEMPTS, ids=lambda way: way.name)
def test_the_table_has_the_outcome_of_each_attempt_of_real_agents(way: Attempt) -> None:
    said = table(TOP / "docs" / "SECURITY.md", "an agent orders an approval")
    for row in (way.row, way.alone):
        (cell,) = said[row.text]
        assert outcome_in(cell) is row.outcome


def test_there_are_at_least_twenty_attempts() -> None:
    assert len({way.name for way in ATTEMPTS}) >= 20
    assert len({way.command for way in ATTEMPTS}) == len(ATTEMPTS)


def codes(cell: str) -> Iterator[tuple[str, bool]]:
    """Yield each word in backquotes, and whether it is italic."""
    for italic, word in re.findall(r"(\*?)`([^`]+)`", cell):
        yield word, bool(italic)


@pytest.mark.parametrize("agent", guarded_agents(), ids=lambda agent: agent.label)
def test_the_list_of_agents_matches_the_guard(agent: Agent) -> None:
    programs, variables, _ = table(TOP / "docs" / "AGENTS.md", "agent")[agent.label]
    assert {word for word, _ in codes(programs)} == agent.names
    assert {word for word, italic in codes(variables) if not italic} == agent.markers
    assert {word for word, italic in codes(variables) if italic} == agent.hints


def test_the_list_of_agents_has_no_other() -> None:
    assert table(TOP / "docs" / "AGENTS.md", "agent").keys() == {a.label for a in guarded_agents()}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_the_documents_name_the_tested_versions(program: AgentProgram) -> None:
    *_, source = table(TOP / "docs" / "AGENTS.md", "agent")[program.label]
    assert source.startswith(f"run, {version(program)}")
    if program.speaks_mcp:
        run = table(TOP / "docs" / "CLIENTS.md", "client")
        label = program.label.replace("Codex CLI", "Codex")
        assert run[label][0].startswith(version(program))


def snippets(label: str) -> list[Any]:
    """Return the settings that docs/CLIENTS.md shows below the heading `label`."""
    text = (TOP / "docs" / "CLIENTS.md").read_text().partition(f"### {label}\n")[2]
    section = re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [
        READERS[kind](snippet)
        for kind, snippet in re.findall(r"```(json|toml)\n(.*?)```", section, re.DOTALL)
    ]


@pytest.mark.parametrize(
    "label", ["Codex", "Gemini CLI", "Copilot CLI", "opencode", "Qwen Code", "Cline"]
)
def test_the_snippet_of_a_client_is_tested_with_its_real_program(
    label: str, tmp_path: Path
) -> None:
    """`make agents` runs each program with the entry that `configure` writes."""
    (program,) = (one for one in PROGRAMS.values() if one.label in (label, f"{label} CLI"))
    server = Server(("/home/you/.local/bin/rootsd", "bridge"))
    program.configure(tmp_path, {"rootsd": server}, "http://127.0.0.1:1")
    written = [
        READERS[file.suffix[1:]](file.read_text())
        for file in tmp_path.rglob("*")
        if file.is_file()
    ]
    (shown,) = snippets(label)
    assert [settings for settings in written if is_part_of(shown, settings)], written


def is_part_of(part: object, whole: object) -> bool:
    """Return whether all keys and values of `part` are in `whole`."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part_of(value, whole[key]) for key, value in part.items())
    return part == whole
