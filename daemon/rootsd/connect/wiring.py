"""Edit the files of one client: connect it, wrap its servers, and take everything back.

A connect first takes the text without our earlier changes, and then makes all changes again. So it
can be repeated, and the record always describes the whole difference. If nobody has touched the
file, that text is the one that was kept. Otherwise each change is taken back by itself.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.agents.forms.client import ENTRY_NAME, JSON, ClientLock, EntryForm, ToolFile
from rootsd.connect.adopt import (
    adopted_entries,
    adopted_hooks,
    adopted_items,
    hook_use,
    hook_words,
)
from rootsd.connect.base import (
    ClientEnvironment,
    ClientHome,
    HookUse,
    McpClient,
    hook_entry,
    hook_places,
    members,
    possible_use,
)
from rootsd.connect.edits import (
    AddedEntry,
    AppendedItems,
    Change,
    WrappedServer,
    add_entry,
    all_servers,
    append_items,
    hook_commands,
    take_back,
    with_containers,
    wrap_of,
    wrap_server,
)
from rootsd.connect.record import ChangedFile, ConnectRecord, digest
from rootsd.connect.servers import (
    BRIDGE,
    HOOK,
    STRICT,
    ServerEntry,
    ServerId,
    is_bridge,
    is_wrapped,
    list_servers,
)
from rootsd.connect.wraps import ServerWrap
from rootsd.core.errors import RootsdError
from rootsd.disk.reader import CONFIG_CAP, read_small
from rootsd.files.private_files import display_path
from rootsd.settings.client_lock import hold_lock_folder
from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import Keys, SettingsFormat
from rootsd.settings.settings_file import SettingsFile, SettingsUnusable
from rootsd.settings.settings_folders import make_folders, remove_folders


class WiringIncomplete(RootsdError):
    """A file was written, and then another one could not be."""


class ToolAccess(Enum):
    """Whether the client asks before its model calls our three tools."""

    ASK = "ask"
    ALLOW = "allow"


class Consent(Enum):
    """Whether a person accepts the change of a file that is a symlink or in a repository."""

    NONE = "none"
    GIVEN = "given"


class Wired(StrEnum):
    """Whether a client has an entry for rootsd, and who wrote it.

    With BROKEN, a person wrote it, and its program does not exist.
    """

    NO = "no"
    YES = "yes"
    BY_HAND = "by hand"
    BROKEN = "broken"


class WiringWish(Struct, frozen=True):
    """What a person wants in the configuration of a client.

    `rootsd` is the path of the command. `wraps` has the servers to wrap. `variables` are those
    that our entry sets.
    """

    rootsd: str
    tools: ToolAccess = ToolAccess.ASK
    wraps: Mapping[ServerId, ServerWrap] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    hook: HookUse = HookUse.NO


class FileChange(Struct, frozen=True):
    """The text of one file before and after. None stands for no file."""

    path: Path
    before: str | None
    after: str | None


class WiringState(Struct, frozen=True):
    """What is in the configuration of a client now.

    `rootsd` is the program in the entry for rootsd, which sets `variables`.
    """

    wired: Wired = Wired.NO
    rootsd: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    tools: ToolAccess = ToolAccess.ASK
    hook: HookUse = HookUse.NO
    wrapped: Mapping[ServerId, ServerWrap] = field(default_factory=dict)
    servers: tuple[ServerEntry, ...] = ()
    problem: str = ""


Apply = Callable[[str], tuple[str, list[Change]]]


def known_homes(
    client: McpClient, environment: ClientEnvironment, record: ConnectRecord
) -> list[ClientEnvironment]:
    """Return the surroundings of each home of a client that was changed, in a fixed order.

    Raises ConnectRecordDamaged and NotPrivate.
    """
    homes = record.homes(client.facts.name)
    return [environment.in_home(homes[place]) for place in sorted(homes)]


class ClientWiring:
    """The configuration of `client` in one environment, and the record of our changes there."""

    def __init__(
        self, client: McpClient, environment: ClientEnvironment, record: ConnectRecord
    ) -> None:
        self._client = client
        self._environment = environment
        self._record = record
        self.settings = client.settings(environment)
        self._home = environment.home_of(client.facts)
        self._home_place = str(environment.locate(client.facts.places[0]))

    def state(self) -> WiringState:
        """Return what is there. A file that cannot be read makes a problem, not an error."""
        changed = self._record.files(self._client.facts.name)
        try:
            texts = self._texts()
            every = {k: entry for text in texts.values() for k, entry in self._all(text).items()}
        except SettingsUnusable as error:
            return WiringState(problem=error.message)
        except NotEditable as error:
            return WiringState(problem=f"{display_path(self.settings)}: {error}")
        form = self._client.facts.form
        entries = {server.name: entry for server, entry in every.items() if not server.project}
        own = [changed[str(path)] for path in self._files() if str(path) in changed]
        changes = [change for each in own for change in each.changes]
        wired = Wired.NO
        bridges = [
            (words[0], form.variables(entry))
            for entry in entries.values()
            if isinstance(entry, dict) and is_bridge(words := form.words(entry) or ())
        ]
        if bridges:
            is_ours = any(isinstance(change, AddedEntry) for change in changes)
            is_broken = all(_is_gone(program) for program, _ in bridges)
            wired = Wired.YES if is_ours else Wired.BROKEN if is_broken else Wired.BY_HAND
        return WiringState(
            wired,
            *(bridges[0] if bridges else ("", {})),
            self._tools(entries, changed),
            self._hook(changed),
            _wraps(changes),
            tuple(self._servers(texts.get(self.settings, ""), every)),
        )

    def _files(self) -> list[Path]:
        """Return the settings files of the client, also those that another shell named."""
        known = self._record.files(self._client.facts.name)
        ours = [
            Path(path)
            for path, changed in known.items()
            if self._home_place in changed.homes and _wraps(changed.changes)
        ]
        return list(dict.fromkeys((*ours, *self._client.settings_files(self._environment))))

    def _texts(self) -> dict[Path, str]:
        """Return the texts of the settings files. Raises SettingsUnusable."""
        found = {path: SettingsFile(path).read() for path in self._files()}
        return {path: text for path, text in found.items() if text}

    def _all(self, text: str) -> dict[ServerId, Any]:
        return all_servers(self._client, text)

    def rootsd_entries(self) -> list[ServerEntry]:
        """Return the entries that start a bridge or a run proxy, also those of one project.

        The list is empty if the file cannot be read; `state` then says why.
        """
        found: dict[ServerId, Any] = {}
        try:
            for text in self._texts().values():
                found |= {**self._all(text), **self._in_project_files(text)}
        except (NotEditable, SettingsUnusable):
            return []
        return _rootsd_entries(self._client.facts.form, found)

    def project_file_servers(self) -> list[ServerEntry]:
        """Return the servers in files of projects. They are never wrapped.

        Such a file is under version control, and others use it.
        """
        facts = self._client.facts
        try:
            found = self._in_project_files(SettingsFile(self.settings).read() or "")
        except (NotEditable, SettingsUnusable):
            return []
        return [
            replace(server, obstacle=f"{facts.project_file} is a file of the project")
            for server in list_servers(facts.form, found)
            if not is_wrapped(server.words)
        ]

    def _in_project_files(self, text: str) -> dict[ServerId, Any]:
        """Return the servers in the file of each project that the settings name."""
        facts, found = self._client.facts, {}
        for project in self._client.project_servers(text) if facts.project_file and text else ():
            path = os.path.join(project, facts.project_file)
            with suppress(NotEditable, UnicodeDecodeError):  # a file that is not valid has none
                content = (read_small(os.fsencode(path), CONFIG_CAP) or b"").decode()
                entries = members(facts.language.values(content), facts.keys)
                found.update({ServerId(name, path): entry for name, entry in entries.items()})
        return found

    def _servers(self, text: str, entries: Mapping[ServerId, Any]) -> Iterator[ServerEntry]:
        """Yield the servers. Whether a command can be edited is known only after the edit.

        That would take seconds in the JSON of some clients, with its many megabytes.
        """
        is_sure = self._client.facts.language.edits_every_value
        for server in list_servers(self._client.facts.form, entries):
            project = server.server.project
            if project and not os.path.isdir(project) and not server.obstacle:
                yield replace(server, obstacle="the folder of its project is gone")
                continue
            if server.obstacle or is_sure:
                yield server
                continue
            try:
                wrap_server(self._client, text, server.server, ServerWrap(), ENTRY_NAME)
            except NotEditable as error:
                yield replace(server, obstacle=f"its command is not edited: {error}")
            else:
                yield server

    def wish_again(self, wish: WiringWish) -> WiringWish:
        """Return `wish` with everything that earlier calls wrote."""
        now = self.state()
        adopted = [change for path in self.own_files() for change in self.adopted(path)]
        earlier = {**_wraps(adopted), **now.wrapped}
        lists = {change.keys for change in adopted if isinstance(change, AppendedItems)}
        facts = self._client.facts
        has_tools = facts.tools is not None and facts.tools.keys in lists
        is_allowed = has_tools or ToolAccess.ALLOW in (now.tools, wish.tools)
        tools = ToolAccess.ALLOW if is_allowed else ToolAccess.ASK
        there = hook_use(facts.name, adopted) if facts.hook is not None else HookUse.NO
        uses = (wish.hook, now.hook, there)
        hook = next((use for use in uses if use is not HookUse.NO), HookUse.NO)
        return replace(wish, tools=tools, hook=hook, wraps={**earlier, **wish.wraps})

    def special_reasons(self, wish: WiringWish) -> list[str]:
        """Return why a person must accept the change of a file: a symlink, or version control."""
        known = self._record.files(self._client.facts.name)
        found = []
        for path, _ in self._tasks(wish):
            if (own := known.get(str(path))) is not None and own.is_accepted:
                continue
            if reason := SettingsFile(path).special_reason():
                found.append(reason)
        return found

    def plan(self, wish: WiringWish | None) -> list[FileChange]:
        """Return what `connect` would change, or for None what `disconnect` would.

        Raises NotEditable and RootsdError.
        """
        known = self._record.files(self._client.facts.name)
        plans = []
        for path, apply in self._all_tasks(wish, known):
            if apply is _unchanged and self._other_homes(known.get(str(path))):
                continue
            text = SettingsFile(path).read()
            base, _ = self._restored(path, text, known.get(str(path)))
            plans.append(FileChange(path, text, self._applied(path, base, apply)[0]))
        return [plan for plan in plans if plan.before != plan.after]

    def connect(self, wish: WiringWish, consent: Consent) -> list[FileChange]:
        """Write our entry, and what else a person wants. Return the files that changed.

        Raises NotEditable and RootsdError.
        """
        return self._change(wish, consent)[0]

    def take_back(self, wish: WiringWish | None) -> tuple[list[FileChange], list[str]]:
        """Take back our changes, except for what is in `wish`.

        Return the changed files, and a sentence for each change that a person replaced. Raises
        NotEditable and RootsdError.
        """
        return self._change(wish, Consent.GIVEN if wish is None else Consent.NONE)

    def _change(
        self, wish: WiringWish | None, consent: Consent
    ) -> tuple[list[FileChange], list[str]]:
        changes: list[FileChange] = []
        left: list[str] = []
        with self._record.locked():
            known = self._record.files(self._client.facts.name)
            tasks = self._all_tasks(wish, known)
            for path, apply in tasks:
                self._ensure_possible(path, apply, known.get(str(path)), consent)
            for path, apply in tasks:
                own = known.get(str(path))
                if apply is _unchanged and (others := self._other_homes(own)) and own is not None:
                    self._record.save(
                        self._client.facts.name, str(path), replace(own, homes=others)
                    )
                    continue
                made = own.made_folders if own else ()
                if apply is not _unchanged:
                    made += make_folders(path.parent)
                is_accepted = consent is Consent.GIVEN or (own is not None and own.is_accepted)
                homes = {**self._other_homes(own), self._home_place: self._home}
                new = ChangedFile(None, "", (), is_accepted, made, homes=homes)
                try:
                    with self._locked(path):
                        change, sentences = self._rewrite(path, apply, new)
                except (NotEditable, RootsdError) as error:
                    if not changes:
                        raise
                    raise _incomplete(changes, path, error) from error
                changes += [change] if change.before != change.after else []
                left += sentences
        return changes, left + (self._staying(left) if wish is None else [])

    def _ensure_possible(
        self, path: Path, apply: Apply, own: ChangedFile | None, consent: Consent
    ) -> None:
        """Make the edit without writing it.

        Raises NotEditable for the settings, and SettingsUnusable, which names another file.
        """
        is_accepted = consent is Consent.GIVEN or (own is not None and own.is_accepted)
        file = SettingsFile(path, is_accepted, self._consent_command())
        file.ensure_writable()
        try:
            base, _ = self._restored(path, file.read(), own)
            self._applied(path, base, apply)
        except NotEditable as error:
            if path == self.settings:
                raise
            shown = display_path(path)
            raise SettingsUnusable(f"{shown} is not edited: {error}", f"ls -l {shown}") from error

    def _consent_command(self) -> str:
        return f"rootsd connect {self._client.facts.name} --yes"

    def _staying(self, said: Sequence[str]) -> list[str]:
        """Return a sentence for each entry of rootsd that is still there."""
        return [
            f"the entry {label} runs rootsd, but not in the form that rootsd writes, so it stays"
            for label in (entry.server.label for entry in self.rootsd_entries())
            if not any(f" {label} " in sentence for sentence in said)
        ]

    def adopted(self, path: Path) -> list[Change]:
        """Return what has exactly the form of ours in a file of this home, recorded or not.

        A file that cannot be read has none.
        """
        try:
            return self._adopted_in(path, SettingsFile(path).read() or "")
        except (NotEditable, SettingsUnusable):
            return []

    def own_files(self) -> list[Path]:
        """Return the files of this home in which `connect` may write. They may be missing."""
        tools, hook = self._client.facts.tools, self._client.facts.hook
        places = [tools.place] if tools is not None and tools.place is not None else []
        places += [hook.place] if hook is not None else []
        others = [self._environment.locate(place) for place in places]
        return list(dict.fromkeys((self.settings, *self._files(), *others)))

    def _adopted_in(self, path: Path, text: str) -> list[Change]:
        facts = self._client.facts
        if not self._language(path).values(text):
            return []
        found = adopted_entries(self._client, text) if path in self._files() else []
        tools, hook = facts.tools, facts.hook
        if tools is not None and tools.place and path == self._environment.locate(tools.place):
            found += adopted_items(text, tools.keys, tools.items)
        if hook is not None and path == self._environment.locate(hook.place):
            found += adopted_hooks(facts.name, text, hook)
        return found

    def _rewrite(self, path: Path, apply: Apply, new: ChangedFile) -> tuple[FileChange, list[str]]:
        """Edit one file, and record the changes before they are in the file."""
        name = self._client.facts.name
        old = self._record.files(name).get(str(path))
        result = FileChange(path, None, None)
        left: list[str] = []
        has_changes = False

        def change(text: str | None) -> str | None:
            nonlocal result, left, has_changes
            base, left = self._restored(path, text, old)
            after, changes = self._applied(path, base, apply)
            has_changes = bool(changes)
            values = self._language(path).values
            if old is not None and _is_done(text, after, old, changes, values):
                result = FileChange(path, text, text)
                if old.homes != new.homes:
                    self._record.save(name, str(path), replace(old, homes=new.homes))
                return text
            if has_changes:
                changes = with_containers(changes, old.changes if old else ())
                own = replace(new, before=base, after=digest(after), changes=tuple(changes))
                self._record.save(name, str(path), own)
            result = FileChange(path, text, after)
            return after

        SettingsFile(path, new.is_accepted, self._consent_command()).update(change)
        if not has_changes:
            self._record.save(name, str(path), None)
            remove_folders(new.made_folders)
        return result, left

    def _language(self, path: Path) -> SettingsFormat:
        """Return the language of a file. Those beside the settings are in JSON."""
        hook = self._client.facts.hook
        if path in self._files():
            return self._client.facts.language
        return hook.language if hook is not None else JSON

    def _restored(
        self, path: Path, text: str | None, own: ChangedFile | None
    ) -> tuple[str | None, list[str]]:
        """Return the text without our changes, and a sentence for each that stays."""
        if text is None:
            return text, []
        if own is None:
            return take_back(self._client, text, self._adopted_in(path, text))
        if digest(text) == own.after:
            return own.before, []
        base, left = take_back(self._client, text, own.changes)
        base, _ = take_back(self._client, base, self._adopted_in(path, base))
        new_file = "".join(self._language(path).new_file.split())
        is_ours_alone = own.before is None and "".join(base.split()) == new_file
        return None if is_ours_alone else base, left

    def _applied(
        self, path: Path, base: str | None, apply: Apply
    ) -> tuple[str | None, list[Change]]:
        language = self._language(path)
        after, changes = apply(language.new_file if base is None else base)
        if not changes:
            return base, []
        return language.lay_out(after) if base is None else after, changes

    def _all_tasks(
        self, wish: WiringWish | None, known: dict[str, ChangedFile]
    ) -> list[tuple[Path, Apply]]:
        """Return the edit of each file that is wanted, and none for the others of this home.

        The last file comes first in these: the first one knows which folders to remove.
        """
        tasks = self._tasks(wish) if wish is not None else []
        wanted = {str(path) for path, _ in tasks}
        own = [path for path, changed in known.items() if self._home_place in changed.homes]
        others = [Path(path) for path in reversed(own) if path not in wanted]
        if wish is None:
            # The hook first: a strict one refuses each call if its program is gone.
            own_files = reversed(self.own_files())
            others += [path for path in own_files if str(path) not in known and self.adopted(path)]
        return tasks + [(path, _unchanged) for path in others]

    def _other_homes(self, own: ChangedFile | None) -> dict[str, ClientHome]:
        """Return the other homes of the client that a file belongs to."""
        homes = own.homes if own is not None else {}
        return {place: home for place, home in homes.items() if place != self._home_place}

    def _tasks(self, wish: WiringWish) -> list[tuple[Path, Apply]]:
        tools = self._client.facts.tools if wish.tools is ToolAccess.ALLOW else None
        extra = tools.members if tools is not None and tools.where is ToolFile.ENTRY else {}

        def wire(text: str) -> tuple[str, list[Change]]:
            words = (wish.rootsd, BRIDGE)
            return add_entry(self._client, text, words, extra, wish.variables)

        tasks: dict[Path, list[Apply]] = {self.settings: [wire]}
        files = self._places() if wish.wraps else {}
        for server, wrap in wish.wraps.items():
            edit = partial(wrap_server, self._client, server=server, wrap=wrap, rootsd=wish.rootsd)
            tasks.setdefault(files.get(server, self.settings), []).append(edit)
        if tools is not None and tools.place is not None:
            path = self._environment.locate(tools.place)
            tasks[path] = [partial(append_items, keys=tools.keys, items=tools.items)]
        hook = self._client.facts.hook
        use = possible_use(hook, wish.hook) if hook is not None else HookUse.NO
        if hook is not None and use is not HookUse.NO:
            places = [f"{name}={value}" for name, value in wish.variables.items()]
            front = ["env", *places] if places else []
            strict = [STRICT] if use is HookUse.STRICT else []
            words = [*front, wish.rootsd, HOOK, self._client.facts.name, *strict]
            items = [hook_entry(hook, use, shlex.join(words))]
            added = [
                partial(append_items, keys=keys, items=items)
                for keys in hook_places(self._client.facts.name)
            ]
            tasks.setdefault(self._environment.locate(hook.place), []).extend(added)
        return [(path, partial(_apply_all, edits=edits)) for path, edits in tasks.items()]

    def _places(self) -> dict[ServerId, Path]:
        """Return the file of each server: the last one that has it.

        A file that cannot be read has none. Writing it fails with the reason.
        """
        found: dict[ServerId, Path] = {}
        for path in self._files():
            with suppress(NotEditable, SettingsUnusable):
                text = SettingsFile(path).read()
                found |= dict.fromkeys(self._all(text) if text else (), path)
        return found

    def _tools(self, entries: Mapping[str, Any], known: Mapping[str, ChangedFile]) -> ToolAccess:
        """Return whether we allowed our tools, in another file or in our entry."""
        tools = self._client.facts.tools
        if tools is None:
            return ToolAccess.ASK
        if tools.place is not None:
            own = known.get(str(self._environment.locate(tools.place)))
            is_allowed = own is not None and tools.keys in _appended_to(own)
        else:
            entry = entries.get(ENTRY_NAME)
            is_allowed = isinstance(entry, dict) and tools.members.items() <= entry.items()
        return ToolAccess.ALLOW if is_allowed else ToolAccess.ASK

    def _hook(self, known: Mapping[str, ChangedFile]) -> HookUse:
        """Return whether we installed our hook."""
        hook = self._client.facts.hook
        own = known.get(str(self._environment.locate(hook.place))) if hook else None
        return (
            hook_use(self._client.facts.name, own.changes)
            if hook is not None and own
            else HookUse.NO
        )

    def hook_programs(self) -> list[str]:
        """Return the program of each permission hook that runs rootsd.

        The list is empty if the file cannot be read.
        """
        hook = self._client.facts.hook
        if hook is None:
            return []
        try:
            text = SettingsFile(self._environment.locate(hook.place)).read() or ""
            values = hook.language.values(text) if text else {}
        except (NotEditable, SettingsUnusable):
            return []
        found = [hook_words(command) for command in hook_commands(values.get("hooks"))]
        return list(dict.fromkeys(words[0] for words in found if words))

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        if self._client.facts.lock is not ClientLock.FOLDER or path != self.settings:
            yield
            return
        try:
            with hold_lock_folder(path):
                yield
        except OSError as error:
            shown, why = display_path(path), error.strerror or str(error)
            raise SettingsUnusable(
                f"{shown} cannot be locked: {why}", f"ls -ld {display_path(path.parent)}"
            ) from error


def _incomplete(
    changes: Sequence[FileChange], path: Path, error: NotEditable | RootsdError
) -> WiringIncomplete:
    """Return the error for a file that could not be written after others were."""
    done = " and ".join(display_path(change.path) for change in changes)
    remedy = error.remedy if isinstance(error, RootsdError) else ""
    return WiringIncomplete(f"{done} was changed, but not {display_path(path)}: {error}", remedy)


def _rootsd_entries(form: EntryForm, entries: Mapping[ServerId, Any]) -> list[ServerEntry]:
    return [
        ServerEntry(server, words, form.variables(entry))
        for server, entry in entries.items()
        if isinstance(entry, dict)
        and (words := form.words(entry)) is not None
        and (is_bridge(words) or is_wrapped(words))
    ]


def _is_gone(program: str) -> bool:
    """Return whether a program does not exist. Only the client knows where it looks for a name."""
    return os.path.isabs(program) and not os.access(program, os.X_OK)


def _unchanged(text: str) -> tuple[str, list[Change]]:
    return text, []


def _apply_all(text: str, edits: Sequence[Apply]) -> tuple[str, list[Change]]:
    changes: list[Change] = []
    for edit in edits:
        text, more = edit(text)
        changes += more
    return text, changes


def _is_done(
    text: str | None,
    after: str | None,
    old: ChangedFile,
    changes: Sequence[Change],
    values: Callable[[str], dict[str, Any]],
) -> bool:
    """Return whether a text that others changed has all wanted values already."""
    if text is None or after is None or digest(text) == old.after:
        return False
    return len(changes) == len(old.changes) and values(text) == values(after)


def _appended_to(own: ChangedFile) -> set[Keys]:
    return {change.keys for change in own.changes if isinstance(change, AppendedItems)}


def _wraps(changes: Sequence[Change]) -> dict[ServerId, ServerWrap]:
    return {
        change.server: wrap_of(change) for change in changes if isinstance(change, WrappedServer)
    }
