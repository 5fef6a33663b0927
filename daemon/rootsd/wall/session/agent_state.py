"""The state of a confined agent: where it is, and how it gets what it needs from outside.

`plan_agent` decides, and changes nothing. `PlannedAgent.prepare` then makes the folders, below the
state of rootsd:

    confine/NAME/agents/PROJECT/FOLDER     for example confine/claude/agents/api-3f2c/.claude

An agent that ran before may have left anything in its folders: links, folders in place of files,
forged times. So every step below them goes through a descriptor and follows no link, and what we
know about the files outside is in a record that no program inside can reach.
"""

from __future__ import annotations

import fcntl
import fnmatch
import glob
import hashlib
import os
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import MappingProxyType
from typing import NamedTuple

from rootsd.agents import is_adapter, with_program
from rootsd.agents.forms.state import (
    AgentFolder,
    AgentState,
    CopiedFile,
    OwnSandbox,
    WithoutSandbox,
)
from rootsd.core.errors import RootsdError
from rootsd.core.launchers import launched_program, launched_word
from rootsd.core.mount_plan import ConfinedRoot, ViewEntry, ViewEntryKind
from rootsd.core.paths import contains
from rootsd.disk.links import MAX_LINKS
from rootsd.disk.reader import read_small
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.session.agent_settings import (
    UnknownForm,
    with_members,
    with_settings,
    without_other_projects,
    without_sandbox,
)
from rootsd.wall.system_calls import closing
from rootsd.wall.view.default_view import OWN_PROGRAMS, SYSTEM, TOOLCHAINS, entry_for, home_entries
from rootsd.wall.view.denied_base import is_denied

_MAX_COPIED_BYTES = 16 << 20
_MAX_KEPT_BYTES = 1 << 20  # of a copy that a program inside may have filled: it takes seconds
_RECORD = b"/record.json"
_NODE_MODULES = b"node_modules"
_NEW = ".rootsd-new"
_MAX_NAME = 64
_MAX_LINE_BYTES = 256  # as long as the kernel takes a line with an interpreter
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, ...]


class CopiedStamps(NamedTuple):
    """What each file outside was when it was copied last, by its path in the agent's folder."""

    by_file: Mapping[str, Stamp] = MappingProxyType({})


class PlannedFolder(NamedTuple):
    """A folder of the agent: at `outside` for everybody else, and at `own` for this agent."""

    folder: AgentFolder
    outside: bytes
    own: bytes
    is_moved: bool


class RewrittenFile(NamedTuple):
    """Settings that are read-only inside and show `text` in place of the content outside."""

    path: bytes
    stand_in: bytes
    text: bytes


class PlannedAgent(NamedTuple):
    """What an agent gets besides the view of every program.

    `title` is its name for people. `base` is the folder of all projects of the name, and `roots`
    are the visible folders. Nothing is copied from the `denied` folders.
    """

    title: str
    state: AgentState
    home: bytes
    base: bytes
    folders: tuple[PlannedFolder, ...]
    roots: tuple[bytes, ...]
    entries: tuple[ViewEntry, ...]
    changed: tuple[RewrittenFile, ...]
    denied: frozenset[bytes]

    def words(self, typed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that was typed, with the agent's own arguments."""
        own = launched_word(typed) + 1
        return (*typed[:own], *self.state.without_sandbox.arguments, *typed[own:])

    def variables(self, outside: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to set inside."""
        places = {
            variable.name: os.fsdecode(each.outside)
            for each in self.folders
            for variable in each.folder.place.variables
            if not variable.below
        }
        defaults = self.state.variables.items()
        found = {**{name: text for name, text in defaults if name not in outside}, **places}
        sandbox = self.state.without_sandbox
        if name := sandbox.adapter_variable:
            found[name] = with_members(outside.get(name, ""), "".join(sandbox.settings.values()))
        return found

    def prepare(self) -> list[str]:
        """Make the folders, and copy what changed outside. Return sentences about the rest.

        Raises RootsdError.
        """
        remark = self.state.without_sandbox.remark
        notes = [remark] if remark else []
        os.makedirs(self.base, 0o700, exist_ok=True)
        with _locked(self.base):
            known_to_all = _read_record(self.base)
            for each in self.folders:
                os.makedirs(each.own, 0o700, exist_ok=True)
                place = os.path.dirname(each.own)
                known = _read_record(place)
                try:
                    self._prepare_folder(each, known, known_to_all, notes)
                except OSError as error:
                    raise RootsdError(
                        f"the state of {self.title} cannot be prepared in "
                        f"{os.fsdecode(each.own)}: {error.strerror}",
                        f"rm -r {os.fsdecode(each.own)}",
                    ) from error
                replace_record(place + _RECORD, CopiedStamps(known))
            replace_record(self.base + _RECORD, CopiedStamps(known_to_all))
            for change in self.changed:
                with open(change.stand_in + b".new", "wb") as file:
                    file.write(change.text)
                os.rename(change.stand_in + b".new", change.stand_in)
                notes.append(f"the sandbox of {self.title} cannot work inside and is off")
        return notes

    def _prepare_folder(
        self,
        each: PlannedFolder,
        known: dict[str, Stamp],
        known_to_all: dict[str, Stamp],
        notes: list[str],
    ) -> None:
        with _opened(each.own) as own:
            for load in each.folder.loads:
                _place_load(each, load, own)
            for copied in each.folder.copies:
                self._place_copy(each, copied, own, known, notes)
            for name in each.folder.credentials:
                self._place_credentials(each, name, own, known_to_all)

    def _place_copy(
        self,
        each: PlannedFolder,
        copied: CopiedFile,
        own: int,
        known: dict[str, Stamp],
        notes: list[str],
    ) -> None:
        """Copy a file if it has changed outside, and make our lines hold in any case.

        A program inside can have changed them, or have left something else in place of the file.
        """
        key = f"{each.folder.place.linux}/{copied.path}"
        source = self._source_of(each, copied)
        settings = self.state.without_sandbox.settings.get(copied.path, "")
        found = self._stamp(source)
        stamp = (*(found or ()), zlib.crc32(settings.encode())) if settings else found
        is_known = known.get(key) == stamp
        if stamp is None or (is_known and not settings):
            return
        with _made_below(own, copied.path) as (place, name):
            kept = read_small(name.encode(), _MAX_KEPT_BYTES, place) if is_known else None
            if kept and len(kept) < _MAX_KEPT_BYTES:
                with suppress(UnknownForm):
                    _write(place, name, with_settings(kept, settings))
                    return
            path = os.path.realpath(source)
            text = (read_small(path, _MAX_COPIED_BYTES) if found else None) or b""
            try:
                text = without_other_projects(text, copied, self.roots)
                text = with_settings(text, settings) if settings else text
            except UnknownForm as error:
                notes.append(f"{os.fsdecode(source)} is not copied: {error}")
                if settings:
                    _write(place, name, settings.encode())
            else:
                _write(place, name, text)
        known[key] = stamp

    def _source_of(self, each: PlannedFolder, copied: CopiedFile) -> bytes:
        if copied.beside and not each.is_moved:
            return self.home + b"/" + copied.beside.encode()
        return each.outside + b"/" + copied.path.encode()

    def _stamp(self, path: bytes) -> Stamp | None:
        return None if is_denied(path, self.denied) else _stamp(path)

    def _place_credentials(
        self, each: PlannedFolder, path: str, own: int, known: dict[str, Stamp]
    ) -> None:
        """Copy the credentials from outside, if they have changed there, or the newest ones."""
        key = f"{each.folder.place.linux}/{path}"
        outside = each.outside + b"/" + path.encode()
        stamp = self._stamp(outside)
        newest = _newest(self.base, os.path.basename(each.own), path)
        if stamp is not None and (known.get(key) != stamp or newest is None):
            text = read_small(os.path.realpath(outside), _MAX_COPIED_BYTES)
            if text is not None:
                with _made_below(own, path) as (place, name):
                    _write(place, name, text)
                known[key] = stamp
        elif newest is not None and newest[1] != each.own:
            with _opened(newest[1]) as theirs, _found_below(theirs, path) as (place, name):
                text = read_small(name.encode(), _MAX_COPIED_BYTES, place)
            if text is not None:
                with _made_below(own, path) as (place, name):
                    _write(place, name, text, newest[0])


def plan_agent(
    words: tuple[str, ...],
    home: bytes,
    state: bytes,
    label: str,
    roots: Iterable[ConfinedRoot],
    sandbox: OwnSandbox = OwnSandbox.OFF,
    denied: frozenset[bytes] = frozenset(),
) -> PlannedAgent | None:
    """Return what the agent in `words` gets, or None if its program is no known agent.

    `state` is the folder of the confined programs with the name `label`. Raises RootsdError.
    """
    agent = with_program(launched_program(words), "state") if words else None
    if agent is None:
        return None
    is_off = sandbox is OwnSandbox.OFF
    needs: AgentState = agent.state()
    if not is_off:
        needs = needs._replace(without_sandbox=WithoutSandbox())
    elif is_adapter(agent, launched_program(words)):
        needs = needs._replace(without_sandbox=needs.without_sandbox._replace(arguments=()))
    else:
        needs = needs._replace(without_sandbox=needs.without_sandbox._replace(adapter_variable=""))
    visible = tuple(root.path for root in roots)
    base = state + b"/agents"
    project = base + b"/" + _project_name(visible)
    folders = tuple(_planned(folder, home, project) for folder in needs.folders)
    changed = tuple(change for each in folders for change in _changed_files(each) if is_off)
    changed = tuple(change for change in changed if not is_denied(change.path, denied))
    stand_ins = {change.path: change.stand_in for change in changed}
    entries = _entries(agent.LABEL, needs, home, folders, label, words[0])
    return PlannedAgent(
        agent.LABEL, needs, home, base, folders, visible,
        tuple(entry._replace(target=stand_ins.get(entry.path, entry.target)) for entry in entries),
        changed, denied,
    )  # fmt: skip


def _changed_files(each: PlannedFolder) -> Iterator[RewrittenFile]:
    """Yield the settings that turn on a sandbox, with the sandbox off.

    The stand-in lies beside the folder of the agent, where no program inside can reach it.
    """
    for switch in each.folder.sandboxes:
        path = each.outside + b"/" + switch.path.encode()
        text = read_small(os.path.realpath(path), _MAX_COPIED_BYTES)
        changed = None if text is None else without_sandbox(text, switch.keys)
        if changed is not None:
            stand_in = each.own + b"-" + switch.path.replace("/", "_").encode()
            yield RewrittenFile(path, stand_in, changed)


def _planned(folder: AgentFolder, home: bytes, project: bytes) -> PlannedFolder:
    """Return where `folder` is. Raises RootsdError for a place that cannot be replaced inside."""
    path = folder.place.linux
    own = project + b"/" + path.replace("/", "_").encode()
    for name, below, _ in folder.place.variables:
        if not (value := os.environ.get(name, "")):
            continue
        outside = os.path.normpath(os.path.join(os.fsencode(value), below.encode()))
        if not outside.startswith(b"/") or contains(outside, home):
            raise RootsdError(f"{name} is not a folder for state: {value!a}", f"unset {name}")
        return PlannedFolder(folder, outside, own, is_moved=True)
    return PlannedFolder(folder, home + b"/" + path.encode(), own, is_moved=False)


def _entries(
    title: str,
    needs: AgentState,
    home: bytes,
    folders: Iterable[PlannedFolder],
    label: str,
    program: str,
) -> Iterator[ViewEntry]:
    read = ViewEntryKind.READ
    yield from _program_entries(program, home, f"the program of {title}")
    yield from home_entries(
        home, (each.encode() for each in needs.reads), read, f"read by {title}"
    )
    yield from home_entries(
        home, (each.encode() for each in needs.caches), ViewEntryKind.CACHE, "caches"
    )
    for each in folders:
        reason = f"state of {title}, of the name {label} and this project"
        yield ViewEntry(each.outside, ViewEntryKind.STATE, reason, each.own)
        for load in each.folder.loads:
            for name in _matches(each.outside, load):
                path = each.outside + b"/" + name
                yield ViewEntry(path, read, f"what {title} loads")


def _program_entries(program: str, home: bytes, reason: str) -> Iterator[ViewEntry]:
    """Yield the entries for a program, and its interpreter, that no view has by itself.

    A program from npm brings its `node_modules`. Otherwise it is one file. Each link on the way is
    shown as a link.
    """
    found = shutil.which(program)
    path = os.path.abspath(os.fsencode(found)) if found else b""
    if interpreter := _interpreter(path):
        yield from _program_entries(interpreter, home, reason)
    shown = [*SYSTEM, *(home + b"/" + each for each in (*TOOLCHAINS, OWN_PROGRAMS))]
    for _ in range(MAX_LINKS):
        if not path or any(contains(each, path) for each in shown):
            return
        parts = path.split(b"/")
        if _NODE_MODULES in parts:
            modules = b"/".join(parts[: parts.index(_NODE_MODULES) + 1])
            yield from entry_for(os.path.realpath(modules), ViewEntryKind.READ, reason)
            return
        yield from entry_for(path, ViewEntryKind.READ, reason)
        if not os.path.islink(path):
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def _interpreter(script: bytes) -> str:
    """Return the program that runs a script, or the empty string for one without."""
    line = (read_small(os.path.realpath(script), _MAX_LINE_BYTES) or b"").partition(b"\n")[0]
    words = line.removeprefix(b"#!").split()
    if not line.startswith(b"#!") or not words:
        return ""
    if os.path.basename(words[0]) == b"env":
        named = (word for word in words[1:] if not word.startswith(b"-") and b"=" not in word)
        return os.fsdecode(next(named, b""))
    return os.fsdecode(words[0])


def _matches(folder: bytes, pattern: str) -> list[bytes]:
    """Return the names in a folder outside that match, sorted. A plain name matches itself."""
    return sorted(glob.glob(pattern.encode(), root_dir=folder))


def _project_name(roots: Iterable[bytes]) -> bytes:
    """Return a name for the project in which the agent starts: its root, or else its folder."""
    try:
        folder = os.path.realpath(os.getcwdb())
    except FileNotFoundError:
        folder = b"/"
    above = max((root for root in roots if contains(root, folder)), key=len, default=folder)
    name = bytes(byte for byte in os.path.basename(above) if chr(byte).isalnum() or byte in b"-_")
    return name[:_MAX_NAME] + b"-" + hashlib.sha256(above).hexdigest()[:16].encode()


def _place_load(each: PlannedFolder, load: str, own: int) -> None:
    """Make the mount points for what exists outside, and remove everything else of that name."""
    outside = {
        os.fsdecode(name): os.path.isdir(each.outside + b"/" + name)
        for name in _matches(each.outside, load)
    }
    with _made_below(own, load) as (place, pattern):
        kept = {os.path.basename(path) for path in outside}
        for name in os.listdir(place):
            if name not in kept and fnmatch.fnmatchcase(name, pattern):
                _remove(place, name)
        for path, is_folder in outside.items():
            _make_point(place, os.path.basename(path), is_folder=is_folder)


def _make_point(folder: int, name: str, *, is_folder: bool) -> None:
    kind = _kind(folder, name)
    is_right = stat.S_ISDIR if is_folder else stat.S_ISREG
    if kind is not None and is_right(kind):
        return
    _remove(folder, name)
    if is_folder:
        os.mkdir(name, 0o700, dir_fd=folder)
    else:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(name, flags, 0o600, dir_fd=folder))


def _write(folder: int, name: str, text: bytes, time_ns: int | None = None) -> None:
    """Replace a file in one step. Raises OSError."""
    _remove(folder, _NEW)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    with open(os.open(_NEW, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(text)
        file.flush()
        if time_ns is not None:
            os.utime(file.fileno(), ns=(time_ns, time_ns))
    kind = _kind(folder, name)
    if kind is not None and stat.S_ISDIR(kind):
        _remove(folder, name)
    os.rename(_NEW, name, src_dir_fd=folder, dst_dir_fd=folder)


def _remove(folder: int, name: str) -> None:
    kind = _kind(folder, name)
    if kind is None:
        return
    if stat.S_ISDIR(kind):
        remove_tree(name, folder)
    else:
        os.unlink(name, dir_fd=folder)


def _kind(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _newest(base: bytes, folder: bytes, path: str) -> tuple[int, bytes] | None:
    """Return the time and the folder of the newest credentials of all projects of the name."""
    found: list[tuple[int, bytes]] = []
    with os.scandir(base) as projects:
        for project in projects:
            own = project.path + b"/" + folder
            with suppress(OSError), _opened(own) as fd, _found_below(fd, path) as (place, name):
                seen = os.stat(name, dir_fd=place, follow_symlinks=False)
                if stat.S_ISREG(seen.st_mode):
                    found.append((seen.st_mtime_ns, own))
    return max(found, default=None)


def _stamp(path: bytes) -> Stamp | None:
    """Return what changes when the file outside does, or None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_mtime_ns, found.st_size, found.st_ino) if is_file else None


def _opened(folder: bytes) -> AbstractContextManager[int]:
    return closing(os.open(folder, _FOLDER_FLAGS))


@contextmanager
def _found_below(own: int, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that holds `path`, step by step. Yield it with the last name in `path`."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        for folder in folders:
            own = stack.enter_context(closing(os.open(folder, _FOLDER_FLAGS, dir_fd=own)))
        yield own, name


@contextmanager
def _made_below(own: int, path: str) -> Iterator[tuple[int, str]]:
    """Do the same, and make folders where there are none. What is in the way goes."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        for folder in folders:
            _make_point(own, folder, is_folder=True)
            own = stack.enter_context(closing(os.open(folder, _FOLDER_FLAGS, dir_fd=own)))
        yield own, name


@contextmanager
def _locked(base: bytes) -> Iterator[None]:
    with open(base + b"/lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_record(folder: bytes) -> dict[str, Stamp]:
    return dict((read_record(CopiedStamps, folder + _RECORD) or CopiedStamps()).by_file)
