"""Random sequences of connect, wrap, sync, edits by a person, and disconnect, for every client.

Beside each file of a client there is a copy in which rootsd never writes. A person makes each edit
in both. In the end, the file must say what the copy says, and rootsd must be nowhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rootsd.agents.forms.client import ServerList
from rootsd.connect.base import HookUse, McpClient
from rootsd.connect.client_files import ToolAccess, Wired, Wiring
from rootsd.connect.edits import AddedEntry, Change, take_back
from rootsd.connect.registry import all_clients
from rootsd.connect.servers import ServerId
from rootsd.connect.wiring import ClientWiring, Consent
from rootsd.connect.wraps import ServerWrap, WrapMode
from rootsd.core.errors import RootsdError
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import JsonFormat, TomlFormat, YamlFormat
from rootsd.sync.process import AccessSync, DaemonDecisions
from rootsd.sync.record import SyncedClient, SyncRecord
from rootsd.sync.targets import TARGETS
from rootsd.wire.projects import ProjectsQuery
from support.client_home import ClientHome
from support.fake_daemon import an_item
from support.person_edits import (
    CannotEdit,
    Edit,
    Jsonc,
    Language,
    Toml,
    Yaml,
    add_argument,
    add_comment_above,
    add_comment_below,
    delete_server,
    rename,
    rewrite,
)
from support.settings_texts import MAKERS
from support.sizes import Sizes

CLIENTS = [client for client in all_clients().values() if client.facts.keys]  # with servers
LANGUAGES: dict[type, tuple[str, Language]] = {
    JsonFormat: ("json", Jsonc()), TomlFormat: ("toml", Toml()), YamlFormat: ("yaml", Yaml()),
}  # fmt: skip
COMMANDS = ("/opt/rootsd/bin/rootsd", "/usr/local/bin/rootsd")
MARK = re.compile(r"\b[pa][0-9]+\b")
STEPS = 12


class Decisions(DaemonDecisions):
    """A daemon with decisions that differ each time."""

    def __init__(self, random: Random) -> None:
        self._paths = [f"/src/{random.randrange(4)}" for _ in range(random.randrange(1, 4))]

    def projects(self, query: ProjectsQuery) -> list[dict[str, Any]]:
        """Return denied projects, or those of a tag."""
        if query.tag is None:
            return [an_item("d", path=f"{path}-no", verdict="denied") for path in self._paths]
        return [
            an_item("a", path=path, verdict="approved", published=True, tags=[query.tag])
            for path in self._paths
        ]

    def focus(self) -> str | None:
        """Return no focus."""
        return None

    def wait(self) -> None:
        """Never called: the decisions are applied once."""


class History:
    """One sequence. `copies` are the files without rootsd, None for a missing one."""

    def __init__(self, seed: int, top: Path) -> None:
        self._random = Random(seed)  # noqa: S311 - the same each time
        self._client = CLIENTS[seed % len(CLIENTS)]
        self._facts = self._client.facts
        self._home = ClientHome(top)
        self._sync = SyncRecord(os.fsencode(top / "state"))
        self._number = 0
        self._settings = self._client.settings(self._home.environment)
        self.steps: list[str] = [self._facts.name]
        files = {self._settings: LANGUAGES[type(self._facts.language)]}
        if self._facts.tools is not None and self._facts.tools.place is not None:
            place = self._home.environment.locate(self._facts.tools.place)
            files[place] = LANGUAGES[JsonFormat]
        self._target = TARGETS.get(self._facts.name)
        if self._target is not None:
            language = LANGUAGES[JsonFormat if self._facts.name != "codex" else TomlFormat]
            files[self._home.path / self._target.format.place.linux] = language
        self._new_texts: dict[Path, str] = {}
        if (hook := self._facts.hook) is not None:
            place = self._home.environment.locate(hook.place)
            files[place] = LANGUAGES[JsonFormat]
            self._new_texts[place] = hook.language.new_file
        self._files = files
        self._copies: dict[Path, str | None] = dict.fromkeys(files)
        self._exact = dict.fromkeys(files, True)
        self._is_rewritten = dict.fromkeys(files, False)
        self._made_by_us: set[Path] = set()
        for file in files:
            if self._random.random() < 0.85 and not self._is_ours_alone(file):
                self._create(file)

    def run(self) -> None:
        """Make all steps, and check the end."""
        steps: list[tuple[Callable[[], None], int]] = [
            (self.connect, 3), (self.wrap, 3), (self.edit, 6), (self.unwrap, 1),
            (self.sync, 2), (self.stop_syncing, 1), (self.disconnect, 1), (self.damage, 1),
        ]  # fmt: skip
        calls, weights = zip(*steps, strict=True)
        for call in self._random.choices(calls, weights, k=STEPS):
            call()
        self.disconnect()

    def connect(self) -> None:
        """Connect the client, perhaps with its tools allowed."""
        allow = self._random.random() < 0.4
        self._connect(ToolAccess.ALLOW if allow else ToolAccess.ASK, [])

    def wrap(self) -> None:
        """Wrap some of the servers that can be wrapped."""
        found = [each.server for each in self._wiring().state().servers if not each.obstacle]
        chosen = self._random.sample(found, self._random.randint(0, len(found)))
        self._connect(ToolAccess.ASK, chosen)

    def _connect(self, tools: ToolAccess, names: Sequence[ServerId]) -> None:
        wraps = {name: ServerWrap(self._random.choice(list(WrapMode))) for name in names}
        hook = self._random.choice(list(HookUse))
        wish = Wiring(self._random.choice(COMMANDS), tools, wraps, hook=hook)
        wiring = self._wiring()
        self.steps.append(f"connect {tools.value} {hook.value} {list(wraps)}")
        try:
            wiring.connect(wiring.wish_again(wish), Consent.NONE)
        except (NotEditable, RootsdError) as error:
            self.steps.append(f"refused: {error}")

    def unwrap(self) -> None:
        """Restore the commands of the servers, and keep the connection."""
        wiring = self._wiring()
        state = wiring.state()
        if state.wired is Wired.YES:
            self.steps.append("unwrap")
            wiring.take_back(Wiring(state.ours.rootsd, state.ours.tools, hook=state.ours.hook))
            assert self._wiring().state().ours.wraps == {}

    def sync(self) -> None:
        """Sync the decisions to the client."""
        if self._target is None:
            return
        file = self._home.path / self._target.format.place.linux
        self.steps.append("sync")
        self._exact[file] = False
        tag = self._random.choice([None, "work"])
        clients = {str(file): SyncedClient(self._facts.name, str(file), tag)}
        self._sync.save_clients(clients.values())
        AccessSync(self._sync, clients).apply(Decisions(self._random))

    def stop_syncing(self) -> None:
        """Remove the access lists."""
        clients = self._sync.clients()
        if clients:
            self.steps.append("stop syncing")
            outcome = AccessSync(self._sync, clients).remove(next(iter(clients)))
            assert outcome.problem == ""
            self._sync.save_clients([])

    def disconnect(self) -> None:
        """Take everything back, in the order of `rootsd disconnect`. The copies start anew."""
        self.stop_syncing()
        self.steps.append("disconnect")
        _, left = self._wiring().take_back(None)
        assert left == []
        AccessSync(self._sync, {}).remove_containers()
        self.check()
        self._copies = {file: self._text(file) for file in self._files}
        self._made_by_us = set()
        self._exact = dict.fromkeys(self._files, True)
        self._is_rewritten = dict.fromkeys(self._files, False)

    def damage(self) -> None:
        """Try to connect and to disconnect while the file is not valid."""
        self.stop_syncing()
        text = self._text(self._settings)
        if text is None:
            return
        self.steps.append("damage")
        damaged = f"{text}\n]]"
        self._settings.write_bytes(damaged.encode())
        with pytest.raises(NotEditable):
            self._wiring().connect(Wiring(COMMANDS[0]), Consent.NONE)
        if str(self._settings) in self._home.record.files(self._facts.name):
            with pytest.raises(NotEditable):
                self._wiring().take_back(None)
        assert self._text(self._settings) == damaged
        self._settings.write_bytes(text.encode())

    def edit(self) -> None:
        """Make one edit of a person or of the client in a file and in its copy."""
        file = self._random.choice(list(self._files))
        if self._is_ours_alone(file):
            return
        text, copy = self._text(file), self._copies[file]
        if text is None and copy is None:
            self._create(file)
            return
        if copy is None:
            self._made_by_us.add(file)
            new = "{}" if isinstance(self._files[file][1], Jsonc) else ""
            copy = self._new_texts.get(file, new)
        edit = self._some_edit(file, copy)
        try:
            after, new_copy = edit(text or ""), edit(copy)
        except CannotEdit:
            self.steps.pop()
            return
        self._files[file][1].read(new_copy)
        self._files[file][1].read(after)
        self._exact[file] = False
        self._copies[file] = new_copy
        if file in self._made_by_us and not MARK.search(new_copy):
            self._copies[file] = None  # a client wrote a file of ours anew
        file.write_bytes(after.encode())

    def _some_edit(self, file: Path, copy: str) -> Edit:
        language, random = self._files[file][1], self._random
        program, argument = self._new("p"), self._new("a")
        known = MARK.findall(copy)
        arguments = [mark for mark in known if mark.startswith("a")]
        kinds = ["above", "below", "member", "server", "rename", "argument", "all", "delete"]
        kind = random.choice(kinds)
        self.steps.append(f"{kind} {file.name} {program} {argument}")
        match kind:
            case "above":
                return add_comment_above(language, program)
            case "below":
                return add_comment_below(language, program)
            case "server" if file == self._settings:
                entry = self._server(program, [argument])
                return lambda text: language.add_server(text, self._facts.keys, program, entry)
            case "rename" if known:
                old = random.choice(known)
                return rename(old, self._new(old[0]))
            case "delete" if file == self._settings:
                self._is_rewritten[file] = True
                name = random.choice(["rootsd", "files", "db", *known])
                return delete_server(language, self._facts.keys, name)
            case "argument" if arguments:
                return add_argument(random.choice(arguments), argument)
            case "all":
                self._is_rewritten[file] = True
                return rewrite(language, random.randrange(100))
            case _:
                return lambda text: language.add_member(text, program)

    def check(self) -> None:
        """The files have what the person wrote, and nothing of rootsd."""
        for file, copy in self._copies.items():
            text = self._text(file)
            if copy is None or text is None:
                assert text == copy
                continue
            language = self._files[file][1]
            assert without_empty(language.read(text)) == without_empty(language.read(copy))
            assert MARK.findall(text) == MARK.findall(copy)
            assert "rootsd" not in text
            if self._exact[file]:
                assert text == copy
            elif not self._is_rewritten[file]:  # a rewritten file has another notation of values
                assert re.sub(r"[\s,]", "", text) == re.sub(r"[\s,]", "", copy)
        there = [path for path in self._home.path.rglob("*") if not path.is_dir()]
        assert set(there) <= {file for file, copy in self._copies.items() if copy is not None}
        assert self._home.record.names() == []
        assert self._sync.own() == {}

    def _create(self, file: Path) -> None:
        name, _ = self._files[file]
        made = MAKERS[name](self._random, self._facts.keys, self._shape)
        self.steps.append(f"create {file.name}")
        self._copies[file] = made.text
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(made.text.encode())

    def _shape(self, servers: dict[str, Any]) -> Any:  # noqa: ANN401 - a JSON value
        shaped = {
            name: self._server(entry["command"], entry.get("args"))
            if "command" in entry
            else entry
            for name, entry in servers.items()
        }
        if self._facts.list_of is ServerList.ITEMS:
            return [{"name": name, **entry} for name, entry in shaped.items()]
        return shaped

    def _server(self, program: str, arguments: list[str] | None) -> dict[str, Any]:
        """Return an entry as this client writes it."""
        form = self._facts.form
        found = {key: value for key, value in form.fixed.items() if key != "name"}
        if form.arguments is None:
            found[form.program] = [program, *(arguments or ())]
        else:
            found[form.program] = program
            if arguments is not None:
                found[form.arguments] = arguments
        return {form.inside: found} if form.inside else found

    def _wiring(self) -> ClientWiring:
        return self._home.wiring(self._facts.name)

    def _text(self, file: Path) -> str | None:
        return file.read_bytes().decode() if file.exists() else None

    def _is_ours_alone(self, file: Path) -> bool:
        return "rootsd" in file.name

    def _new(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without empty ones: in YAML, a key without a value may be a list."""
    return {key: value for key, value in values.items() if value not in (None, [], {})}


def run_all(count: int, top: Path) -> None:
    for seed in range(count):
        folder = top / str(seed)
        folder.mkdir()
        history = History(seed, folder)
        try:
            history.run()
        except Exception as error:
            error.add_note(f"seed {seed}: {'; '.join(history.steps)}")
            raise


def test_a_person_loses_nothing_and_nothing_of_rootsd_remains(
    tmp_path: Path, sizes: Sizes
) -> None:
    run_all(sizes.pick(test=5, check=54, soak=162), tmp_path)


def test_control_a_disconnect_that_forgets_an_entry_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(
        client: McpClient, text: str, changes: Sequence[Change]
    ) -> tuple[str, list[str]]:
        client.servers(text)
        kept = [change for change in changes if not isinstance(change, AddedEntry)]
        return take_back(client, text, kept)

    monkeypatch.setattr("rootsd.connect.wiring.take_back", forgetful)
    with pytest.raises(AssertionError):
        run_all(len(CLIENTS), tmp_path)
