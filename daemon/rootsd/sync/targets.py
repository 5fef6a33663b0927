"""The access lists of each client: in which file they are, under which keys, and in which words.

Only access is written, never trust: nothing here lets a project's own hooks or servers run. No
switch is written that turns the sandbox of a client on or off.

A pattern language gives some characters a meaning. They are escaped where the client allows that.
Otherwise, the folder is left out, and `rootsd deny` and `rootsd sync status` name it. Sources: the
settings references of the clients, and runs of Claude Code 2.1, Codex 0.169, Copilot CLI 1.0, and
opencode 1.18 with each character, as of November 2026.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum

from msgspec import Struct

from rootsd.sync.access import AccessLists, GrantedFolder

Keys = tuple[str, ...]

# Codex reads a path with one of these as a pattern, and denies only the files that it finds then.
_CODEX_CHARACTERS = frozenset("*?[]")
_EXPANDED_CHARACTERS = frozenset("$%~\\")
# Claude Code matches these as gitignore(5) does, but it does not match an escaped ? or \.
_CLAUDE_CHARACTERS = frozenset("?\\")
_CLAUDE_ESCAPED = re.compile(r"[*\[\]]")
# opencode knows only the wildcards, has no escapes, and reads \ as /.
_OPENCODE_CHARACTERS = frozenset("*?\\")


class TargetFile(Enum):
    """Who writes the file that has the lists.

    A PROFILE has nothing but our entries. The client reads it only if a person names it.
    """

    SHARED = "the settings of a client, which others write, too"
    PROFILE = "a file of our own, in TOML"


class EntryKind(StrEnum):
    """Whether an entry takes access away or gives it. Grants do not outlive the process."""

    DENIAL = "denial"
    GRANT = "grant"


class ListEntry(Struct, frozen=True):
    """One line of a client's list: an item of the array at `keys` or, with a `value`, a member of
    the object there.
    """

    keys: Keys
    name: str
    kind: EntryKind
    value: str | None = None

    @property
    def place(self) -> tuple[Keys, str]:
        """What identifies the entry in its file."""
        return self.keys, self.name


class Wanted(Struct, frozen=True):
    """The entries for one file, and a sentence for each folder that cannot be written there.

    `denied` and `granted` are the numbers of folders that can. `projects` are the folders whose
    own settings can take denials away.
    """

    entries: tuple[ListEntry, ...] = ()
    denied: int = 0
    granted: int = 0
    omitted: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


class SyncTarget(Struct, frozen=True):
    """The lists of one client.

    * `name`: of the client, as in `rootsd connect`.
    * `file`: of the settings, relative to the home folder. `override` names the variable that
      locates its folder instead, and `below` is the path from there.
    * `denial`: returns the entries for a folder, or a clause that says why there are none.
    * `applies`: when a running client notices.
    * `not_covered`: what a denial does not cover.
    * `grant`: as `denial`, or None if rootsd opens no folder to this client.
    * `merged_with`: the names of all files in its folder that the client merges, the one that
      wins last. If a later one than `file` exists, our entries are there.
    * `kept_in`: whether the file is ours alone. `always` are the entries that it needs for the
      others to mean something.
    """

    name: str
    file: str
    override: str
    below: str
    denial: Callable[[str], list[ListEntry] | str]
    applies: str
    not_covered: str
    grant: Callable[[GrantedFolder], list[ListEntry] | str] | None = None
    merged_with: tuple[str, ...] = ()
    kept_in: TargetFile = TargetFile.SHARED
    always: tuple[ListEntry, ...] = ()

    def settings_file(self, home: str, variables: Mapping[str, str]) -> str:
        """Return the file in the home of the client that these surroundings name, after links."""
        moved = variables.get(self.override, "") if self.override else ""
        file = os.path.join(moved, self.below) if os.path.isabs(moved) else f"{home}/{self.file}"
        folder, name = os.path.split(file)
        return os.path.join(os.path.realpath(folder), name)

    def merged_files(self, file: str) -> list[str]:
        """Return the files that the client merges with the settings `file`, the winner last.

        The settings file itself is in the list, also if it is missing.
        """
        files = [os.path.join(os.path.dirname(file), name) for name in self.merged_with]
        return [each for each in files if each == file or os.path.lexists(each)] or [file]

    def home_variables(self, file: str) -> dict[str, str]:
        """Return the variables that lead the client to the home that has `file`."""
        folder = os.path.dirname(file)
        usual = os.path.dirname(os.path.expanduser(f"~/{self.file}"))
        if not self.override or folder == os.path.realpath(usual):
            return {}
        inside = os.path.dirname(self.below)
        return {self.override: folder.removesuffix(f"/{inside}") if inside else folder}

    def in_home(self, file: str, command: str) -> str:
        """Return a command of rootsd as a person types it for the home that has `file`."""
        variables = self.home_variables(file)
        is_set = bool(self.override and os.environ.get(self.override))
        front = [f"env -u {self.override}"] if is_set and not variables else []
        return " ".join(
            [*front, *(f"{k}={shlex.quote(v)}" for k, v in variables.items()), command]
        )

    def entries(self, lists: AccessLists) -> Wanted:
        """Return the entries for `lists`."""
        denials = [(path, self.denial(path)) for path in lists.denied]
        grant = self.grant
        grants = [(each.path, grant(each)) for each in lists.granted] if grant else []
        omitted = [
            *lists.omitted,
            *(
                f"{path} is not denied there: {why}"
                for path, why in denials
                if isinstance(why, str)
            ),
            *(
                f"{path} is not opened there: {why}"
                for path, why in grants
                if isinstance(why, str)
            ),
        ]
        denied = [found for _, found in denials if not isinstance(found, str)]
        granted = [found for _, found in grants if not isinstance(found, str)]
        entries = [entry for found in (*denied, *granted) for entry in found]
        return Wanted((*self.always, *entries), len(denied), len(granted), tuple(omitted))


def _refusal(path: str, special: frozenset[str]) -> str | None:
    """Return why `path` cannot be written, or None.

    Only characters that a person can see are written. So no path can end a line or hide its end.
    """
    if not path.isprintable() or path != path.strip():
        return "its path has invisible characters"
    if found := sorted(special & set(path)):
        return f"{found[0]} has another meaning in this client's lists"
    return None


def _items(
    keys: Keys, kind: EntryKind, names: Iterable[str], path: str, special: frozenset[str]
) -> list[ListEntry] | str:
    return _refusal(path, special) or [ListEntry(keys, name, kind) for name in names]


def _claude_denial(path: str) -> list[ListEntry] | str:
    pattern = _claude_pattern(path)
    names = (f"Read({pattern})", f"Edit({pattern})")
    keys = ("permissions", "deny")
    if any(part != part.rstrip() for part in path.split("/")):
        return "a name in its path ends with a space"
    return _items(keys, EntryKind.DENIAL, names, path, _CLAUDE_CHARACTERS)


def _claude_pattern(path: str) -> str:
    """Return the pattern for everything in a folder. Its first slash stands for the whole disk."""
    escaped = _CLAUDE_ESCAPED.sub(lambda found: f"\\{found[0]}", path)
    return f"/{escaped}/**"


def _claude_grant(folder: GrantedFolder) -> list[ListEntry] | str:
    path = folder.path
    keys = ("permissions", "additionalDirectories")
    special = _EXPANDED_CHARACTERS | (frozenset() if folder.is_writable else _CLAUDE_CHARACTERS)
    opened = _items(keys, EntryKind.GRANT, (path,), path, special)
    if isinstance(opened, str) or folder.is_writable:
        return opened
    kept = ListEntry(("permissions", "deny"), f"Edit({_claude_pattern(path)})", EntryKind.GRANT)
    return [kept, *opened]


def _opencode_denial(path: str) -> list[ListEntry] | str:
    keys = ("permission", "external_directory")
    refused = _refusal(path, _OPENCODE_CHARACTERS)
    return refused or [ListEntry(keys, f"{path}/**", EntryKind.DENIAL, "deny")]


# Its paths have no wildcards: `copilot help sandbox`, and tests/e2e/agents/test_sync_lists.py.
def _copilot_denial(path: str) -> list[ListEntry] | str:
    keys = ("sandbox", "userPolicy", "filesystem", "deniedPaths")
    return _items(keys, EntryKind.DENIAL, (path,), path, _EXPANDED_CHARACTERS)


_CODEX = ("permissions", "rootsd")


def _codex_denial(path: str) -> list[ListEntry] | str:
    refused = _refusal(path, _CODEX_CHARACTERS)
    return refused or [ListEntry((*_CODEX, "filesystem"), path, EntryKind.DENIAL, "deny")]


_AT_NEXT_START = "at its next start"

TARGETS = {
    target.name: target
    for target in (
        SyncTarget(
            "claude-code", ".claude/settings.json", "CLAUDE_CONFIG_DIR", "settings.json",
            _claude_denial, "within a second or two, in running sessions",
            "paths in shell commands, unless its sandbox is on", grant=_claude_grant,
        ),
        SyncTarget(
            "codex", ".codex/rootsd.config.toml", "CODEX_HOME", "rootsd.config.toml",
            _codex_denial, "at its next start with codex -p rootsd",
            "a session without -p rootsd or with another sandbox, and MCP servers",
            kept_in=TargetFile.PROFILE,
            # Codex's own default, to which denials are added.
            always=(ListEntry(_CODEX, "extends", EntryKind.DENIAL, ":workspace"),),
        ),
        SyncTarget(
            # It merges the settings of projects after ~/.config/opencode, and before this folder.
            "opencode", ".opencode/opencode.json", "OPENCODE_CONFIG_DIR", "opencode.json",
            _opencode_denial, _AT_NEXT_START,
            "a project that the session itself began in, and paths that a shell command hides",
            merged_with=("opencode.json", "opencode.jsonc"),
        ),
        SyncTarget(
            "copilot", ".copilot/settings.json", "COPILOT_HOME", "settings.json",
            _copilot_denial, _AT_NEXT_START, "anything, unless its sandbox is on",
        ),
    )
}  # fmt: skip
"""The clients whose lists can be synced, by name."""

_NO_DENIALS = "it has no list of denied folders"
_NO_SANDBOX = "the vendor deprecated the settings of its sandbox, and its own tools ignore them"
NOT_SYNCED = {
    "cursor": _NO_DENIALS,
    "gemini": _NO_DENIALS,
    "qwen": _NO_DENIALS,
    "vscode": _NO_SANDBOX,
    "vscode-insiders": _NO_SANDBOX,
    "zed": "its sandbox limits only what terminal commands write, and it cannot deny a folder",
}
"""Clients that have settings of access but no denials that rootsd writes, and why."""
