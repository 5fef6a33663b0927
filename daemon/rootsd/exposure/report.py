"""Put together what `rootsd exposure` says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, product
from types import ModuleType
from typing import TypedDict

from msgspec.structs import replace

from rootsd import agents
from rootsd.agents.forms.access import InProject
from rootsd.agents.forms.client import JSON, TOML
from rootsd.agents.forms.place import SettingsPlace
from rootsd.agents.forms.reach import (
    AgentHome,
    AgentReach,
    ExposedAccess,
    ExposureFinding,
    ExposureKind,
    Extent,
    by_default,
    edit_command,
    finding,
    is_wider,
)
from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.connect.registry import all_clients
from rootsd.connect.servers import ServerId
from rootsd.exposure.hooks import SWITCHES, about_hooks
from rootsd.exposure.servers import servers_of
from rootsd.exposure.survey import Survey, survey
from rootsd.sync.overrides import AllSettings, WrittenDenials
from rootsd.sync.targets import TARGETS

_MAX_IN_PROJECT = 20  # findings; anybody may have written the files of a project
_SHELL_FILES = (
    ".bashrc", ".bash_aliases", ".bash_profile", ".profile", ".zshrc", ".zprofile",
    ".config/fish/config.fish",
)  # fmt: skip
_WIDE_OPTION = re.compile(
    r"--dangerously-[\w-]+|--yolo\b|--allow-all(?:-tools|-paths)?\b|--force\b"
    r"|bypassPermissions|danger-full-access|--approval-mode[= ]yolo"
)
_WORD = re.compile(r"[\w.-]+")
_WITHOUT_QUESTION = {
    Extent.EVERYTHING.value: "everything",
    Extent.ASKS_ELSEWHERE.value: "the project",
    Extent.PROJECT.value: "the project",
}


class ExposureItem(TypedDict):
    """What an agent, or an MCP server of one, can read and write now."""

    name: str
    """What a person types, such as `claude-code`; for a server, with its name after a slash."""
    title: str
    """The name of the product, or of the server."""
    agent: bool
    """Whether this is an agent, and not an MCP server of one."""
    reads: ExposedAccess
    """What it reads without a question."""
    writes: ExposedAccess
    """What it writes without a question."""
    opened: list[str]
    """Folders that its settings open besides."""
    repositories: int
    """The projects that it can read without a question, wherever it starts."""
    secrets: int
    """The files and folders with secrets that it can read so, by their names."""
    findings: list[ExposureFinding]
    """What is wrong with its settings."""
    remedy: str | None
    """The command that limits it, or null if it is limited."""


class ExposureReport(TypedDict):
    """What the agents and MCP servers of this machine can read and write now."""

    items: list[ExposureItem]
    """The agents and servers that are installed here."""
    repositories: int
    """The repositories and project folders that were found."""
    secrets: list[str]
    """The files and folders that look like secrets, by their names."""
    whole: bool
    """Whether everything was looked at. Otherwise, there may be more of both."""


def measure(
    environment: ClientEnvironment, parents: Iterable[bytes], walled: AbstractSet[str]
) -> ExposureReport:
    """Return the report. `walled` are the programs that start behind the wall. Raises nothing."""
    home = AgentHome(str(environment.home), environment.variables, environment.platform)
    found = survey(home, parents)
    items: list[ExposureItem] = []
    for agent in agents.agent_files():
        names = [facts.name for facts in agent.clients()] if hasattr(agent, "clients") else []
        clients = [all_clients()[name] for name in names]
        here = [client for client in clients if client.is_found(environment)]
        if here or _is_installed(agent, environment):
            items += _of_agent(agent, here, environment, found, walled)
    return ExposureReport(
        items=items,
        repositories=len(found.repositories),
        secrets=found.secrets,
        whole=found.is_whole,
    )


def _is_installed(agent: ModuleType, environment: ClientEnvironment) -> bool:
    if environment.program(getattr(agent, "PROGRAMS", ())) is not None:
        return True
    folders = agent.state().folders[:1] if hasattr(agent, "state") else ()
    return any(environment.locate(folder.place).is_dir() for folder in folders)


def _of_agent(
    agent: ModuleType,
    clients: Sequence[McpClient],
    environment: ClientEnvironment,
    found: Survey,
    walled: AbstractSet[str],
) -> Iterator[ExposureItem]:
    """Yield the item of an agent, and those of its servers."""
    home = AgentHome(str(environment.home), environment.variables, environment.platform)
    programs, name = getattr(agent, "PROGRAMS", ()), agents.name_of(agent)
    unknown = by_default(Extent.UNKNOWN, f"rootsd does not know the settings of {agent.LABEL}")
    reach = agent.reach(home) if hasattr(agent, "reach") else AgentReach(unknown, unknown)
    if (typed := _typed(home, programs)) is not None:
        reach = replace(reach, reads=typed, writes=typed)
    remedy = f"rootsd confine -- {programs[0]}" if programs else None
    if programs and hasattr(agent, "state"):
        remedy = f"rootsd connect --confine {programs[0]}"
    findings = list(reach.findings)
    said = reach.writes
    if not walled.isdisjoint(programs):
        behind = by_default(Extent.ROOTS, "it starts behind the wall when you type its name")
        reach = replace(reach, reads=behind, writes=behind, opened=())
    elif said["extent"] == reach.reads["extent"] == Extent.EVERYTHING and said["file"] is not None:
        findings.append(_asks_nothing(agent.LABEL, said, remedy or ""))
    servers: list[ExposureItem] = []
    for client in clients:
        findings += about_hooks(client, home)
        for path in client.settings_files(environment):
            file = home.read_path(str(path), client.facts.language)
            wrap = f"rootsd connect {client.facts.name} --wrap"
            for server, its in servers_of(client, environment, file):
                own = f"{client.facts.name}/{server.label}"
                item = _item(own, server.label, home, its, found, wrap)
                servers.append({**item, "agent": False})
        for project in found.repositories if client.facts.project_file else ():
            servers += _of_project(agent, client, environment, home, project, found)
    for project in found.repositories:
        findings += _in_project(agent, home, reach, project)
    findings += _about_denials(name, home, found)
    findings += _about_files(home)
    reach = replace(reach, findings=tuple(findings))
    yield _item(name, agent.LABEL, home, reach, found, remedy)
    yield from servers


def _typed(home: AgentHome, programs: Sequence[str]) -> ExposedAccess | None:
    """Return what an option allows that a shell adds to a program, by an alias or a function."""
    for name in _SHELL_FILES if programs else ():
        for number, line in enumerate(home.read_lines(f"~/{name}"), 1):
            said = line.partition("#")[0]
            option = _WIDE_OPTION.search(said)
            if option and not set(_WORD.findall(said)).isdisjoint(programs):
                reason = f"your shell starts it with {option[0]}"
                file = f"{home.home}/{name}"
                return {**by_default(Extent.EVERYTHING, reason), "file": file, "line": number}
    return None


def _in_project(
    agent: ModuleType, home: AgentHome, usual: AgentReach, project: str
) -> Iterator[ExposureFinding]:
    """Yield what the settings in a project change there, and what is wrong with them."""
    paths = (f"{project}/{name}" for name in getattr(agent, "SETTINGS", ()))
    files = {path: home.read_in_project(path) for path in paths if os.path.lexists(path)}
    if not files:
        return
    there = agent.reach(home, list(files.values()))
    for verb in ("reads", "writes"):
        said, before = getattr(there, verb), getattr(usual, verb)
        if said["file"] in files and is_wider(said["extent"], before["extent"]):
            what = f"{verb} {_WITHOUT_QUESTION[said['extent']]} without a question"
            text = f"a session in this project {what}: {said['reason']}"
            yield finding(ExposureKind.OVERRIDDEN, files[said["file"]], said["line"] or 1, text)
    for file, (keys, off) in product(files.values(), SWITCHES):
        if file.at(*keys) is off:
            text = "a session in this project runs none of your hooks"
            yield finding(ExposureKind.HOOKS_OFF, file, keys, text)
    yield from islice(there.findings, _MAX_IN_PROJECT)


def _of_project(
    agent: ModuleType,
    client: McpClient,
    environment: ClientEnvironment,
    home: AgentHome,
    project: str,
    found: Survey,
) -> Iterator[ExposureItem]:
    """Yield the servers in a file of a project that the agent starts there without a question."""
    path = f"{project}/{client.facts.project_file}"
    if not os.path.lexists(path):
        return
    starts = agent.started_servers(home, project)
    for server, its in servers_of(client, environment, home.read_in_project(path)):
        if starts(server.name):
            label = ServerId(server.name, project).label
            edit = edit_command(path, its.reads["line"])
            item = _item(f"{client.facts.name}/{label}", label, home, its, found, edit)
            yield {**item, "agent": False}


def _item(
    name: str,
    title: str,
    home: AgentHome,
    reach: AgentReach,
    found: Survey,
    remedy: str | None,
) -> ExposureItem:
    opened = [path for each in reach.opened if (path := home.expand(each)) is not None]
    extent = Extent(reach.reads["extent"])
    inside = found if extent.is_unlimited else found.below(opened)
    is_open = extent.is_unlimited or Extent(reach.writes["extent"]).is_unlimited
    return ExposureItem(
        name=name,
        title=title,
        agent=True,
        reads=reach.reads,
        writes=reach.writes,
        opened=opened,
        repositories=len(inside.repositories),
        secrets=len(inside.secrets),
        findings=list(reach.findings),
        remedy=remedy if is_open else None,
    )


def _asks_nothing(label: str, said: ExposedAccess, remedy: str) -> ExposureFinding:
    return ExposureFinding(
        kind=ExposureKind.ASKS_NOTHING,
        text=f"{label} reads, changes, and runs anything without asking you: {said['reason']}",
        file=said["file"] or "",
        line=said["line"] or 1,
        remedy=remedy,
    )


def _about_files(home: AgentHome) -> Iterator[ExposureFinding]:
    for file in home.texts.values():
        if file.problem:
            text = f"the agent may not be able to use this file: {file.problem}"
            yield finding(ExposureKind.INVALID_FILE, file, (), text)


def _about_denials(name: str, home: AgentHome, found: Survey) -> Iterator[ExposureFinding]:
    """Yield the denials of folders that another file of the same client takes away."""
    target = TARGETS.get(name)
    if target is None or not (target.format.merges or target.format.replaced_by):
        return
    own = target.settings_file(home.home, home.variables)
    places = [each for each in target.format.merges if isinstance(each, SettingsPlace)]
    language = TOML if own.endswith(".toml") else JSON
    files = [home.read_path(own, language), *(home.read(each) for each in places)]
    line = target.format.denial[0]
    keys, ending = line.keys, line.text.removeprefix("{}")
    denied = {
        rule: file
        for file in files
        for rule, action in file.members(*keys).items()
        if action == line.value and rule.endswith(ending)
    }
    written = WrittenDenials(target, own, tuple(denied), home.variables)
    if target.format.merges:
        rules = AllSettings(written, home.home).rules()
        lost = written.without_denial(rules, written.folders())
        for rule, folder in zip(denied, written.folders(), strict=True):
            if folder in lost:
                winner = lost[folder] or "another rule"
                text = f"{rule} is not denied: {winner} wins"
                yield finding(ExposureKind.OVERRIDDEN, denied[rule], (*keys, rule), text)
    named = [each.path for each in target.format.merges if isinstance(each, InProject)]
    named += [replaced_by.path] if (replaced_by := target.format.replaced_by) is not None else []
    for project, sentence in written.lost_in(list(found.repositories)).items():
        paths = [path for each in named if os.path.lexists(path := f"{project}/{each}")]
        file = home.read_path((paths or [project])[-1], language)
        yield finding(ExposureKind.OVERRIDDEN, file, (), sentence)
