"""Put together what `rootsd exposure` says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, product
from types import ModuleType
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from rootsd import agents
from rootsd.agents.forms.access import InProject
from rootsd.agents.forms.client import JSON, TOML
from rootsd.agents.forms.place import SettingsPlace
from rootsd.agents.forms.reach import (
    AgentFile,
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
    found = survey(_home_of(environment), parents)
    looks = (
        _AgentLook(agent, environment, _home_of(environment), found)
        for agent in agents.agent_files()
    )
    return ExposureReport(
        items=[item for look in looks for item in look.items(walled)],
        repositories=len(found.repositories),
        secrets=found.secrets,
        whole=found.is_whole,
    )


def _home_of(environment: ClientEnvironment) -> AgentHome:
    return AgentHome(str(environment.home), environment.variables, environment.platform)


class _AgentLook(Struct, frozen=True):
    """A look at the settings of one agent. `found` is what there is to reach."""

    agent: ModuleType
    environment: ClientEnvironment
    home: AgentHome
    found: Survey

    def items(self, walled: AbstractSet[str]) -> Iterator[ExposureItem]:
        """Yield the item of the agent, and those of its servers; none if it is not here."""
        agent, home = self.agent, self.home
        named = agent.clients() if hasattr(agent, "clients") else ()
        clients = [
            client
            for facts in named
            if (client := all_clients()[facts.name]).is_found(self.environment)
        ]
        if not (clients or self._is_installed()):
            return
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
        elif said["extent"] == reach.reads["extent"] == Extent.EVERYTHING and said["file"]:
            what = f"{agent.LABEL} reads, changes, and runs anything without asking you"
            kind, file = ExposureKind.ASKS_NOTHING, AgentFile(said["file"], JSON)
            text = f"{what}: {said['reason']}"
            findings.append(finding(kind, file, said["line"] or 1, text, remedy or ""))
        servers: list[ExposureItem] = []
        for client in clients:
            findings += about_hooks(client, home)
            servers += self._servers(client)
        for project in self.found.repositories:
            findings += self._in_project(reach, project)
        findings += _about_denials(name, home, self.found)
        findings += _about_files(home)
        reach = replace(reach, findings=tuple(findings))
        yield self._item(name, agent.LABEL, reach, remedy)
        yield from servers

    def _is_installed(self) -> bool:
        if self.environment.program(getattr(self.agent, "PROGRAMS", ())) is not None:
            return True
        folders = self.agent.state().folders[:1] if hasattr(self.agent, "state") else ()
        return any(self.environment.locate(folder.place).is_dir() for folder in folders)

    def _servers(self, client: McpClient) -> Iterator[ExposureItem]:
        """Yield the servers of a client, also those that it starts in a project unasked."""
        name = client.facts.name
        for place in client.settings_files(self.environment):
            file = self.home.read_path(str(place), client.facts.language)
            for server, its in servers_of(client, self.environment, file):
                wrap = f"rootsd connect {name} --wrap"
                yield self._item(f"{name}/{server.label}", server.label, its, wrap)
        for project in self.found.repositories if client.facts.project_file else ():
            path = f"{project}/{client.facts.project_file}"
            if not os.path.lexists(path):
                continue
            starts = self.agent.started_servers(self.home, project)
            file = self.home.read_in_project(path)
            for server, its in servers_of(client, self.environment, file):
                if starts(server.name):
                    label = ServerId(server.name, project).label
                    edit = edit_command(path, its.reads["line"])
                    yield self._item(f"{name}/{label}", label, its, edit)

    def _in_project(self, usual: AgentReach, project: str) -> Iterator[ExposureFinding]:
        """Yield what the settings in a project change there, and what is wrong with them."""
        paths = (f"{project}/{name}" for name in getattr(self.agent, "SETTINGS", ()))
        files = {p: self.home.read_in_project(p) for p in paths if os.path.lexists(p)}
        if not files:
            return
        there = self.agent.reach(self.home, list(files.values()))
        for verb in ("reads", "writes"):
            said, before = getattr(there, verb), getattr(usual, verb)
            if said["file"] in files and is_wider(said["extent"], before["extent"]):
                what = f"{verb} {_WITHOUT_QUESTION[said['extent']]} without a question"
                text = f"a session in this project {what}: {said['reason']}"
                file = files[said["file"]]
                yield finding(ExposureKind.OVERRIDDEN, file, said["line"] or 1, text)
        for file, (keys, off) in product(files.values(), SWITCHES):
            if file.at(*keys) is off:
                text = "a session in this project runs none of your hooks"
                yield finding(ExposureKind.HOOKS_OFF, file, keys, text)
        yield from islice(there.findings, _MAX_IN_PROJECT)

    def _item(self, name: str, title: str, reach: AgentReach, remedy: str | None) -> ExposureItem:
        opened = [path for each in reach.opened if (path := self.home.expand(each)) is not None]
        reads, writes = (Extent(each["extent"]) for each in (reach.reads, reach.writes))
        inside = self.found if reads.is_unlimited else self.found.below(opened)
        return ExposureItem(
            name=name,
            title=title,
            agent="/" not in name,
            reads=reach.reads,
            writes=reach.writes,
            opened=opened,
            repositories=len(inside.repositories),
            secrets=len(inside.secrets),
            findings=list(reach.findings),
            remedy=remedy if reads.is_unlimited or writes.is_unlimited else None,
        )


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
