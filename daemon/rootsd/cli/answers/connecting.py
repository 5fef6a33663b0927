"""Connect clients one after another, for `rootsd connect` and `rootsd init`.

A client whose configuration cannot be edited is refused: nothing is written, and the result has
the lines that a person can paste. The other clients are connected all the same.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.agents.forms.client import ClientTrial, ToolFile
from rootsd.agents.forms.place import Platform
from rootsd.cli.answers import typed_agents
from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.answers.server_trials import ServerTrials
from rootsd.cli.text.phrases import pluralize, shorten_home, shown_path
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.connect.base import ClientEnvironment, HookUse, McpClient
from rootsd.connect.client_files import ToolAccess, Wired, Wiring
from rootsd.connect.health import read_version
from rootsd.connect.record import ConnectRecord
from rootsd.connect.registry import all_clients
from rootsd.connect.servers import BRIDGE
from rootsd.connect.wiring import ClientWiring, Consent, FileChange, WiringIncomplete
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.paths import contains, text_of
from rootsd.places.runtime_dir import OVERRIDE, overriding_folder
from rootsd.settings.errors import NotEditable
from rootsd.settings.settings_folders import make_folders, remove_folders
from rootsd.sync.record import SyncedClient, SyncRecord
from rootsd.sync.targets import TARGETS

COLUMNS = (
    Column("CLIENT", lambda item: item["client"]),
    Column("RESULT", lambda item: item["result"]),
    path_column("FILE", lambda item: item["file"]),
)


class NoClientFound(RootsdError):
    """There is no client to connect or to disconnect."""

    code = ErrorCode.NOTHING_MATCHED


class WiringRefused(RootsdError):
    """A file is not edited. A person may accept it, or paste the lines."""


class WiringResult(StrEnum):
    """What became of one client."""

    CONNECTED = "connected"
    UNCHANGED = "unchanged"
    BY_HAND = "connected by hand"
    DISCONNECTED = "disconnected"
    UNWRAPPED = "unwrapped"
    BEHIND_WALL = "behind the wall"
    OUTSIDE_WALL = "no longer behind the wall"
    WOULD_CHANGE = "would change"
    REFUSED = "refused"


class WiringItem(TypedDict):
    """What became of one client."""

    client: str
    """What a person types, such as `claude-code`, or for `--confine`, the name of a program."""
    result: str
    """A value of `WiringResult`."""
    file: str
    """Its settings file."""
    wrapped: NotRequired[list[str]]
    """Its servers that now run under `rootsd run`."""
    tools_allowed: NotRequired[bool]
    """Whether its model may call the tools of rootsd without a question."""
    hook: NotRequired[bool]
    """Whether it asks `rootsd hook`."""
    diff: NotRequired[list[str]]
    """In a dry run, the lines of the change."""
    problem: NotRequired[str]
    """Why it was refused."""
    remedy: NotRequired[str]
    """A command that helps, or empty."""
    snippet: NotRequired[str | None]
    """The lines that a person can paste into the file, or null."""


class WiringOutput(TypedDict):
    """The results by client."""

    items: list[WiringItem]
    """The clients, in the order in which they were changed."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


class ConnectReport(Struct):
    """The results by client, in the order in which they came."""

    items: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Whether a client could not be changed."""
        return any(item["result"] == WiringResult.REFUSED for item in self.items)

    def add(self, client: McpClient, file: Path, result: WiringResult, **more: object) -> None:
        """Add the result of one client."""
        item = {"client": client.facts.name, "result": result, "file": str(file), **more}
        self.items.append(item)


def client_environment() -> ClientEnvironment:
    """Return the home folder and the variables of this shell."""
    platform = Platform.MACOS if sys.platform == "darwin" else Platform.LINUX
    return ClientEnvironment(Path.home(), os.environ, platform)


def place_variables() -> dict[str, str]:
    """Return the variables with which the bridge of a client finds the daemon of this shell."""
    folder = overriding_folder()
    return {} if folder is None else {OVERRIDE: os.fsdecode(folder)}


def found_clients(environment: ClientEnvironment) -> list[McpClient]:
    """Return the clients that are there."""
    return [client for client in all_clients().values() if client.is_found(environment)]


def other_settings(client: McpClient, environment: ClientEnvironment) -> list[str]:
    """Return a sentence for each of the settings of a client that rootsd does not change."""
    return environment.others(client.facts)


def is_tried(client: McpClient) -> bool:
    """Return whether rootsd's own tests connect the real program."""
    return client.facts.trial is ClientTrial.TRIED


class ClientConnector:
    """Connects and disconnects clients, and asks a person where one must decide."""

    def __init__(
        self, invocation: Invocation, questions: Questions, environment: ClientEnvironment
    ) -> None:
        self._invocation = invocation
        self._questions = questions
        self._environment = environment
        self._record = ConnectRecord(invocation.places.state)
        self.report = ConnectReport()

    def wiring(
        self, client: McpClient, environment: ClientEnvironment | None = None
    ) -> ClientWiring:
        """Return the configuration of `client` in one of its homes, by default this shell's."""
        return ClientWiring(client, environment or self._environment, self._record)

    def confine(self, programs: Sequence[str]) -> None:
        """Have agents start behind the wall whenever they are typed. Raises RootsdError."""
        if not programs:
            return
        known = typed_agents.agents_now(self._invocation)
        wanted = list(dict.fromkeys((*known, *programs)))
        self._set_agents(wanted, programs, WiringResult.BEHIND_WALL)
        self.report.messages += [f"{typed_agents.describe(name)}." for name in programs]
        if (line := typed_agents.missing_line()) is not None:
            self.report.messages.append(line)
        else:
            self.report.messages.append("This counts in new shells.")

    def stop_confining(self, programs: Iterable[str]) -> None:
        """Have agents start outside again when they are typed. Raises RootsdError."""
        known = typed_agents.agents_now(self._invocation)
        gone = [name for name in programs if name in known]
        wanted = [name for name in known if name not in gone]
        self._set_agents(wanted, gone, WiringResult.OUTSIDE_WALL)
        self.report.messages += [f"{name} starts outside in new shells." for name in gone]

    def _set_agents(
        self, wanted: Sequence[str], changed: Iterable[str], result: WiringResult
    ) -> None:
        known = typed_agents.agents_now(self._invocation)
        if wanted != known:
            effect = effect_of(dry_run=self._questions.dry_run)
            typed_agents.set_agents(self._invocation, wanted, effect)
        for name in changed:
            is_same = (name in wanted) == (name in known)
            done = WiringResult.WOULD_CHANGE if self._questions.dry_run else result
            file = text_of(self._invocation.places.config_file)
            item = {"client": name, "result": WiringResult.UNCHANGED if is_same else done}
            self.report.items.append({**item, "file": file})

    def connect(
        self, client: McpClient, asked: Wiring, trials: ServerTrials | None = None
    ) -> None:
        """Connect one client, and report the result. `trials` find the servers to wrap."""
        wiring = self.wiring(client)
        members = _entry_members(client, asked.tools)
        form, words = client.facts.form, (asked.rootsd, BRIDGE)
        entry = form.entry(words, members, asked.variables) if client.facts.keys else None
        if client.facts.only_printed:
            printed = WiringRefused(client.facts.only_printed)
            self._refuse(client, wiring.settings, printed, entry)
            return
        try:
            tools = self._tools(client, wiring, asked.tools)
            agents = wiring.agents_to_relay()
            wish = wiring.wish_again(replace(asked, tools=tools, agents=agents))
            if trials is not None:
                wish = trials.add_to(wish, client, wiring, self.report.warnings)
            if self._questions.dry_run:
                self._preview(client, wiring.settings, wiring.plan(wish))
                self._tell_variables(client, asked.variables)
                return
            consent = self._consent(client, wiring, wish)
            changes = wiring.connect(wish, consent)
        except NotEditable as error:
            self._refuse(client, wiring.settings, _not_edited(wiring.settings, error), entry)
        except WiringIncomplete as error:
            self._refuse(client, wiring.settings, error)
        except RootsdError as error:
            self._refuse(client, wiring.settings, error, entry)
        else:
            self._tell_connected(client, wiring, changes)
            self._tell_variables(client, wiring.state().ours.variables)

    def remove_hook(self, client: McpClient, environment: ClientEnvironment) -> str | None:
        """Remove our permission hook in one home. Return its file, or None if there is none.

        Without rootsd, a strict hook would refuse each call. Raises RootsdError.
        """
        wiring, hook = self.wiring(client, environment), client.facts.hook
        state = wiring.state()
        wish = wiring.wish_again(Wiring(state.ours.rootsd, variables=state.ours.variables))
        if hook is None or wish.hook is HookUse.NO:
            return None
        file = str(environment.locate(hook.place))
        if not self._questions.dry_run:
            try:
                is_wired = state.wired is not Wired.NO
                wiring.take_back(replace(wish, hook=HookUse.NO) if is_wired else None)
            except NotEditable as error:
                raise _not_edited(file, error, f"ls -l {shorten_home(file)}") from error
        return file

    def check_hook(self, client: McpClient, use: HookUse) -> None:
        """Warn if a client has no permission hooks, or cannot refuse calls whose hook fails."""
        title, hook = client.facts.title, client.facts.hook
        if use is not HookUse.NO and hook is None:
            why = f": {client.facts.no_hook}" if client.facts.no_hook else ""
            self.report.warnings.append(f"{title} has no permission hook that rootsd answers{why}")
        if use is not HookUse.STRICT or hook is None:
            return
        if hook.strict is None:
            self.report.warnings.append(
                f"{title} lets a call pass whose hook fails, so its hook is not strict"
            )
            return
        version = read_version(client, self._environment)
        numbers = tuple(int(part) for part in re.findall(r"\d+", version))
        if version and numbers < hook.strict_since:
            since = ".".join(map(str, hook.strict_since))
            self.report.warnings.append(
                f"{title} {version} lets a call pass whose hook cannot start."
                f" Version {since} and newer refuse it"
            )

    def offer_worktrees(self, client: McpClient) -> None:
        """Offer to watch the folder in which a client makes worktrees.

        The folder is created if need be: the client does that at its first worktree. A failure is
        a warning, because the client is connected already.
        """
        try:
            self._offer_worktrees(client)
        except RootsdError as error:
            self._warn_of_worktrees(client, error.sentence)
        except OSError as error:
            self._warn_of_worktrees(client, error.strerror or str(error))

    def _warn_of_worktrees(self, client: McpClient, why: str) -> None:
        title = client.facts.title
        self.report.warnings.append(f"{title}: its worktrees are not watched: {why}")

    def _offer_worktrees(self, client: McpClient) -> None:
        from rootsd.cli.answers import config_edit, lifecycle
        from rootsd.config.configuration import read_config

        if client.facts.worktrees is None:
            return
        folder = self._environment.locate(client.facts.worktrees)
        place = os.fsencode(os.path.realpath(folder))
        known = read_config(self._invocation.places.config_file).parents
        shown = shown_path(folder)
        if any(contains(parent.path, place) for parent in known) or not self._questions.agrees(
            f"Watch {shown}, where {client.facts.title} makes worktrees?"
        ):
            return
        made = make_folders(folder)
        folder.mkdir(exist_ok=True)  # fails if it is a file
        path = config_edit.validate_parent(self._invocation, str(folder))
        if config_edit.add_parents(self._invocation, [path], {}):
            self._record.save_worktrees(client.facts.name, os.fsdecode(path), made)
        lifecycle.reload_if_running(self._invocation, f"connect {client.facts.name}")
        self.report.messages.append(f"{shown} is now watched.")

    def forget_worktrees(self, client: McpClient, homes: Sequence[ClientEnvironment]) -> None:
        """Stop watching the folders of worktrees that `connect` made a parent.

        Those of the `homes`, which stay connected, stay. Decisions about the worktrees stay, too.
        A failure is a warning, because the client can be disconnected all the same.
        """
        place = client.facts.worktrees
        kept = {os.path.realpath(home.locate(place)) for home in homes if place is not None}
        try:
            for folder, made in self._record.worktrees(client.facts.name).items():
                if folder not in kept:
                    self._forget_worktrees(client, folder, made)
        except RootsdError as error:
            why = f"its worktrees are still watched: {error.sentence}"
            self.report.warnings.append(f"{client.facts.title}: {why}")

    def _forget_worktrees(self, client: McpClient, folder: str, made: Sequence[str]) -> None:
        from rootsd.cli.answers import config_edit, lifecycle

        name, shown = client.facts.name, shown_path(folder)
        if self._questions.dry_run:
            self.report.messages.append(f"{shown} would no longer be watched.")
            return
        try:
            config_edit.remove_parent(self._invocation, folder)
        except config_edit.UnknownParent:
            pass  # a person removed it
        else:
            lifecycle.reload_if_running(self._invocation, f"disconnect {name}")
            self.report.messages.append(f"{shown} is no longer watched.")
        self._record.save_worktrees(name, folder, None)
        remove_folders(made)

    def sync_access(self, client: McpClient) -> None:
        """Sync the denials to one client from now on, unless it is synced."""
        from rootsd.cli.answers import sync_control
        from rootsd.settings.settings_file import SettingsFile

        name, title = client.facts.name, client.facts.title
        target = TARGETS.get(name)
        if target is None:
            why = f": {client.facts.not_synced}" if client.facts.not_synced else ""
            self.report.warnings.append(f"{title} has no access lists that rootsd can sync{why}")
            return
        file = sync_control.settings_file(target)
        reason = SettingsFile(file).special_reason()
        if str(file) in SyncRecord(self._invocation.places.state).clients():
            return
        if reason is not None and not self._questions.yes:
            self.report.warnings.append(f"{title}: {reason} (try: rootsd sync add {name} --yes)")
            return
        if not self._questions.dry_run:
            chosen = SyncedClient(name, str(file), None, self._questions.yes)
            written = sync_control.start_syncing(self._invocation, chosen)
            for problem in (written.problem, *written.omitted) if written is not None else ():
                self.report.warnings += [f"{title}: {problem}"] if problem else []
        would_be = "would be" if self._questions.dry_run else "are"
        self.report.messages.append(
            f"{title}: your denials {would_be} synced to {shorten_home(str(file))}."
            f" It applies them {target.format.applies}."
            f" A denial does not cover {target.format.not_covered}."
        )

    def unrecorded(self) -> list[str]:
        """Return the clients of this shell that have entries of our form without a record."""
        found = []
        for name, client in all_clients().items():
            wiring = self.wiring(client)
            known = self._record.files(name)
            files = [path for path in wiring.own_files() if str(path) not in known]
            found += [name] if any(wiring.adopted(path) for path in files) else []
        return found

    def unwrap(self, client: McpClient, environment: ClientEnvironment) -> None:
        """Restore the commands of the servers in one home, and report the result."""
        wiring = self.wiring(client, environment)
        state = wiring.state()
        wish = None if state.wired is Wired.NO else replace(state.ours, wraps={})
        self._take_back(client, wiring, wish, WiringResult.UNWRAPPED)

    def disconnect(self, client: McpClient, environment: ClientEnvironment) -> None:
        """Take back everything that rootsd wrote in one home, and report the result."""
        self._take_back(client, self.wiring(client, environment), None, WiringResult.DISCONNECTED)

    def _take_back(
        self,
        client: McpClient,
        wiring: ClientWiring,
        wish: Wiring | None,
        result: WiringResult,
    ) -> None:
        try:
            if self._questions.dry_run:
                self._preview(client, wiring.settings, wiring.plan(wish))
                return
            changes, left = wiring.take_back(wish)
        except NotEditable as error:
            self._refuse(client, wiring.settings, _not_edited(wiring.settings, error))
        except RootsdError as error:
            self._refuse(client, wiring.settings, error)
        else:
            self.report.warnings += [f"{client.facts.title}: {each}" for each in left]
            done = result if changes else WiringResult.UNCHANGED
            self.report.add(client, wiring.settings, done)

    def _tools(self, client: McpClient, wiring: ClientWiring, asked: ToolAccess) -> ToolAccess:
        """Return whether our tools are allowed: by a flag, or by a person, never by `--yes`."""
        tools = client.facts.tools
        if asked is ToolAccess.ALLOW or tools is None:
            return asked
        state = wiring.state()
        if state.wired is not Wired.NO or self._questions.dry_run:
            return ToolAccess.ASK
        question = f"May {client.facts.title} call rootsd's three tools without asking you?"
        is_allowed = self._questions.agrees_to_decide(question)
        return ToolAccess.ALLOW if is_allowed else ToolAccess.ASK

    def _consent(self, client: McpClient, wiring: ClientWiring, wish: Wiring) -> Consent:
        """Return a person's consent. Raises WiringRefused without one that is needed."""
        reasons = wiring.special_reasons(wish)
        if not reasons:
            return Consent.NONE
        if self._questions.yes or all(
            self._questions.agrees_to_decide(f"{reason}. Change it?") for reason in reasons
        ):
            return Consent.GIVEN
        raise WiringRefused("; ".join(reasons), f"rootsd connect {client.facts.name} --yes")

    def _tell_connected(
        self, client: McpClient, wiring: ClientWiring, changes: Sequence[FileChange]
    ) -> None:
        facts, state = client.facts, wiring.state()
        result = WiringResult.CONNECTED if changes else WiringResult.UNCHANGED
        if state.wired is Wired.BY_HAND:
            result = WiringResult.BY_HAND
        if state.wired is Wired.BROKEN:
            program = safe_label(state.ours.rootsd, limit=None)
            why = f"its entry starts {program}, which does not exist"
            remedy = f"remove the entry from {shorten_home(str(wiring.settings))}"
            self._refuse(client, wiring.settings, WiringRefused(why, remedy))
            return
        self.report.add(
            client, wiring.settings, result,
            wrapped=[server.label for server in state.ours.wraps],
            tools_allowed=state.ours.tools is ToolAccess.ALLOW,
            hook=state.ours.hook is not HookUse.NO,
        )  # fmt: skip
        messages = self.report.messages
        if changes and state.wired is Wired.NO:
            self.report.warnings.append(
                f"{facts.title} wrote its settings at the same moment, so the entry is gone"
                f" (try: rootsd connect {facts.name})"
            )
        if changes:
            files = " and ".join(shorten_home(str(change.path)) for change in changes)
            messages.append(f"{facts.title} notices the change of {files} {facts.applies}.")
        if facts.agents is not None:
            messages.append(_describe_agents(facts.title, state.ours.agents))
        if not is_tried(client):
            messages.append(
                f"{facts.title} was not tried with rootsd. Please check that it lists"
                f" {'rootsd' if facts.keys else 'the agents'}."
            )
        messages += facts.notes
        messages += [
            f"{safe_label(each, limit=None)}."
            for each in other_settings(client, self._environment)
        ]
        if facts.hook is not None and state.ours.hook is not HookUse.NO:
            messages += [facts.hook.gap] if changes and facts.hook.gap else []
        elif facts.hook is not None:
            messages.append(
                f"{facts.title}'s own file tools do not ask rootsd about folders that you deny."
                f" To make them ask: rootsd connect {facts.name} --hook"
            )

    def _tell_variables(self, client: McpClient, variables: Mapping[str, str]) -> None:
        if (folder := variables.get(OVERRIDE)) is not None:
            shown = shown_path(folder)
            self.report.messages.append(
                f"The entry sets {OVERRIDE}, so {client.facts.title} uses the daemon in {shown}."
            )

    def _preview(self, client: McpClient, file: Path, changes: Sequence[FileChange]) -> None:
        """Print the changes as diffs."""
        lines = [
            line
            for change in changes
            for line in diff_of(str(change.path), change.before, change.after)
        ]
        result = WiringResult.WOULD_CHANGE if changes else WiringResult.UNCHANGED
        self.report.add(client, file, result, diff=lines)
        if not self._invocation.output.is_json:
            for line in lines:
                self._invocation.output.line(safe_text(line))

    def _refuse(
        self,
        client: McpClient,
        file: Path,
        error: RootsdError,
        entry: Mapping[str, Any] | None = None,
    ) -> None:
        """Report why a client is not changed, and with its `entry`, the lines to paste."""
        snippet = client.snippet(entry) if entry is not None else None
        self.report.warnings.append(f"{client.facts.title}: {error.sentence}")
        self.report.add(
            client, file, WiringResult.REFUSED,
            problem=error.message, remedy=error.remedy, snippet=snippet,
        )  # fmt: skip
        if snippet is not None:
            shown = shown_path(file)
            self.report.messages += [
                f"Nothing was changed in {shown}. To connect {client.facts.title}, paste:",
                *snippet.splitlines(),
            ]


def print_report(invocation: Invocation, report: ConnectReport, *, dry_run: bool) -> int:
    """Print the results, and return the exit status."""
    output = invocation.output
    if dry_run and not output.is_json:
        output.warn(report.warnings)
    else:
        result = CommandResult(report.items, warnings=report.warnings, extra={"dry_run": dry_run})
        output.show(result, COLUMNS)
    for message in report.messages:
        output.message(message)
    if dry_run:
        count = sum(item["result"] == WiringResult.WOULD_CHANGE for item in report.items)
        output.message(f"{pluralize(count, 'client')} would change.")
        output.message(DRY_RUN_NOTICE)
    elif new := [i["client"] for i in report.items if i["result"] == WiringResult.CONNECTED]:
        output.message(f"To take this back: rootsd disconnect {' '.join(new)}")
    return Exit.FAILED if report.is_refused else Exit.OK


def _describe_agents(title: str, agents: Iterable[str]) -> str:
    """Return a sentence about the agents of an editor."""
    if names := ", ".join(safe_label(each, limit=None) for each in agents):
        return f"In {title}, choose one of these agents to work in approved folders only: {names}."
    return (
        f"No agent for {title} is on your PATH. Install one, such as claude-agent-acp, and connect"
        " again."
    )


def _entry_members(client: McpClient, asked: ToolAccess) -> Mapping[str, Any]:
    tools = client.facts.tools
    is_here = tools is not None and tools.where is ToolFile.ENTRY
    return tools.members if tools is not None and is_here and asked is ToolAccess.ALLOW else {}


def _not_edited(file: Path | str, why: NotEditable, remedy: str = "") -> WiringRefused:
    return WiringRefused(f"{shorten_home(str(file))} is not edited: {why}", remedy)


def diff_of(file: str, before: str | None, after: str | None) -> list[str]:
    """Return the lines of a change of a file. A text is None if there is no file."""
    was, now = ("/dev/null" if text is None else shorten_home(file) for text in (before, after))
    old, new = ((text or "").splitlines() for text in (before, after))
    return list(difflib.unified_diff(old, new, was, now, lineterm=""))
