"""What is known about agents is well-formed, and a new agent is one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rootsd import agents
from rootsd.agents import agent_files, files_with, name_of
from rootsd.agents.forms.state import AgentState
from rootsd.agents.guarded import guarded_agents
from rootsd.core.agents import SAYS_SO
from rootsd.core.paths import contains
from rootsd.core.recognition import agents_of
from rootsd.vcs.facts import EXECUTED_PATHS
from rootsd.wall.git.tool_files import TOOL_FILES
from support.process_table import process

EDITORS = (
    "code", "codium", "cursor", "devenv", "emacs", "goland", "helix", "hx", "idea", "nano", "nvim",
    "pycharm", "rider", "subl", "vi", "vim", "webstorm", "windsurf", "zed", "zed-editor",
)  # fmt: skip


@pytest.mark.parametrize("editor", EDITORS)
def test_no_editor_is_an_agent(editor: str) -> None:
    assert not agents_of(process(9, 1, editor), guarded_agents())


def test_every_known_agent_can_be_recognized() -> None:
    known = guarded_agents()
    assert len({agent.label for agent in known}) == len(known) >= 13
    for agent in known:
        assert agent.names or agent is SAYS_SO
        assert not agent.markers & agent.hints


def test_the_configuration_adds_names_and_markers() -> None:
    *_, named, marked = guarded_agents(("my-agent",), ("MINE=1",))
    assert agents_of(process(9, 1, "my-agent"), (named,))
    assert marked.markers == {"MINE=1"}


@pytest.mark.parametrize("agent", agent_files(), ids=lambda agent: agent.LABEL)
def test_a_file_says_only_what_somebody_reads(agent: ModuleType) -> None:
    said = {
        name
        for name, value in vars(agent).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    described = {name for name in said if f"`{name}`" in (agents.__doc__ or "")}
    described |= {name for name in said if f"`{name}()`" in (agents.__doc__ or "")}
    assert said - described <= {"annotations"}


@pytest.mark.parametrize("agent", files_with("state"), ids=lambda agent: agent.LABEL)
def test_paths_lead_below_their_folders(agent: ModuleType) -> None:
    state: AgentState = agent.state()
    paths = [*state.reads, *state.caches]
    for folder in state.folders:
        paths += [folder.place.linux, *folder.loads, *folder.credentials]
        paths += [copied.path for copied in folder.copies]
    for path in paths:
        assert not {"", ".", ".."} & set(path.split("/")), path


@pytest.mark.parametrize("agent", files_with("state"), ids=lambda agent: agent.LABEL)
def test_a_file_comes_in_one_way_only(agent: ModuleType) -> None:
    for folder in agent.state().folders:
        copied = [each.path for each in folder.copies]
        assert not set(folder.loads) & {*copied, *folder.credentials}
        assert not set(copied) & set(folder.credentials)


@pytest.mark.parametrize("path", EXECUTED_PATHS, ids=bytes.decode)
def test_what_is_run_in_a_project_is_read_only_behind_the_wall(path: bytes) -> None:
    assert any(contains(protected, path.rstrip(b"/")) for protected in TOOL_FILES)


@pytest.mark.parametrize("facet", ["access", "hook"])
def test_a_client_with_lists_or_hooks_can_be_connected(facet: str) -> None:
    for agent in files_with(facet):
        assert name_of(agent) in {facts.name for facts in agent.clients()}


def test_settings_of_access_are_synced_or_there_is_a_reason() -> None:
    unused = [
        facts.name
        for agent in files_with("clients")
        for facts in agent.clients()
        if facts.not_synced
    ]
    assert unused
    assert not set(unused) & {name_of(agent) for agent in files_with("access")}


_PLANTED = '''
"""An agent of a test."""

from rootsd.agents import forms

LABEL = "Planted"
PROGRAMS = ("planted",)


def state():
    return forms.state.AgentState(())


def clients():
    return (
        forms.client.ClientFacts(
            "planted", LABEL, (forms.place.SettingsPlace("p.json"),), ("servers",)
        ),
    )


def access():
    return forms.access.ListFormat(forms.place.SettingsPlace("p.json"), (), "", "")


def hook():
    return forms.hook.HookDialect(events=("e",), decision="d", reasons=())
'''
_READERS = """
from rootsd.agents import known
known.__path__.append({folder!r})
from rootsd.agents.guarded import guarded_agents
from rootsd.connect.registry import all_clients
from rootsd.hook import dialects
from rootsd.sync.targets import TARGETS
from rootsd.wall.session.agent_state import plan_agent
print([agent.label for agent in guarded_agents() if "planted" in agent.names])
print(plan_agent(("planted",), b"/", b"/", "x", []).title)
print(all_clients()["planted"].facts.title, "planted" in dialects(), "planted" in TARGETS)
"""


def test_a_new_agent_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(_PLANTED)
    program = _READERS.format(folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['Planted']\nPlanted\nPlanted True True\n"
