"""What is known about agents is well-formed, and names agents that the guard knows, too."""

from __future__ import annotations

from pkgutil import iter_modules

import pytest

from rootsd.agents import known, profile_of
from rootsd.agents.profile import AgentProfile
from rootsd.core.agents import KNOWN_AGENTS

PROGRAMS = sorted(module.name.replace("_", "-") for module in iter_modules(known.__path__))


def profile(program: str) -> AgentProfile:
    found = profile_of(program)
    assert found is not None
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_guard_knows_the_same_agent(program: str) -> None:
    (agent,) = (agent for agent in KNOWN_AGENTS if agent.label == profile(program).label)
    assert program in agent.names


@pytest.mark.parametrize("program", PROGRAMS)
def test_paths_lead_below_their_folders(program: str) -> None:
    found = profile(program)
    paths = [*found.reads, *found.caches]
    for folder in found.folders:
        paths += [folder.path, *folder.loads, *folder.credentials]
        paths += [copied.path for copied in folder.copies]
    for path in paths:
        assert not {"", ".", ".."} & set(path.split("/")), path


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_file_comes_in_one_way_only(program: str) -> None:
    for folder in profile(program).folders:
        copied = [each.path for each in folder.copies]
        assert not set(folder.loads) & {*copied, *folder.credentials}
        assert not set(copied) & set(folder.credentials)
