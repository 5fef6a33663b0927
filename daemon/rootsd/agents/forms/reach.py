"""What an agent can read and write without a question, and the line of its settings that says so.

An agent is not a sandbox: what it may do on its own is decided by its settings, and only a
sandbox of the kernel makes that a limit. `rootsd exposure` prints it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any, TypedDict

from msgspec import Struct, field

from rootsd.agents.forms.client import JSON, TOML
from rootsd.agents.forms.place import Platform, SettingsPlace
from rootsd.core import suggestions
from rootsd.core.labels import first_of, safe_label
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.secret_names import secret_part
from rootsd.disk.reader import CONFIG_CAP
from rootsd.settings.formats import KeyPath, SettingsFormat
from rootsd.settings.settings_text import SettingsText, read_settings, read_text

_LIKENESS = 0.75
_NO_DIGITS = str.maketrans("", "", "0123456789")
_SHOWN = 3
_MAX_NAMES = 500
_WILD = re.compile(r"[*?\[{]")
_PRINTERS = frozenset(("cat", "cp", "find", "grep", "head", "rg", "sed", "tail"))
_WRITERS = frozenset(("cp", "find", "ln", "mv", "rm", "sed", "tee", "touch"))
# Commands that run any other one, or use any file, as Claude Code knows of the others.
_RUNNERS = frozenset(
    (
        "", "awk", "bash", "bun", "bunx", "dash", "dd", "deno", "docker", "env", "eval", "exec",
        "fish", "git", "less", "lua", "make", "more", "nice", "node", "nohup", "npm", "npx",
        "perl", "php", "pipx", "pnpm", "pnpx", "podman", "python", "python3", "rsync", "ruby",
        "scp", "sh", "ssh", "sudo", "tar", "timeout", "tsx", "uv", "uvx", "watch", "xargs",
        "yarn", "zsh",
    )
)  # fmt: skip


class Extent(StrEnum):
    """Which files a program gets without a question, and what happens with the others."""

    EVERYTHING = "everything"
    """All that your account can use."""
    ASKS_ELSEWHERE = "project, asks"
    """The project in which it starts. Elsewhere, it asks."""
    PROJECT = "project"
    """The project in which it starts. Elsewhere, it is refused."""
    ASKS = "asks"
    """It asks each time."""
    ROOTS = "roots"
    """The roots that you approved: it runs behind the wall."""
    NOTHING = "nothing"
    """It runs on another machine, or it is refused each time."""
    CONTAINER = "container"
    """What its container mounts."""
    UNKNOWN = "not known"
    """rootsd does not know its settings, so nothing is known to limit it."""

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing keeps the program from the files of the home folder."""
        return self in (Extent.EVERYTHING, Extent.UNKNOWN)


_NARROW_TO_WIDE = ("nothing", "asks", "project", "project, asks", "everything")


class ExposedAccess(TypedDict):
    """How far an agent or a server can read or write, and why."""

    extent: str
    """A value of `Extent`."""
    reason: str
    """The setting that says so, or a sentence if no setting does."""
    file: str | None
    """The settings file, or null."""
    line: int | None
    """The line there, or null."""


class ExposureKind(StrEnum):
    """What is wrong in a finding of `rootsd exposure`. The order is that of their weight."""

    ASKS_NOTHING = "asks-nothing"
    TOO_WIDE = "too-wide"
    ANY_PROJECT = "any-project"
    MISSPELLED = "misspelled"
    MATCHES_NOTHING = "matches-nothing"
    OVERRIDDEN = "overridden"
    CONTRADICTED = "contradicted"
    INACTIVE = "inactive"
    HOOKS_OFF = "hooks-off"
    INVALID_FILE = "invalid-file"
    PROGRAM_GONE = "program-gone"
    UNPINNED = "unpinned"
    FOLDER_GONE = "folder-gone"


class ExposureFinding(TypedDict):
    """A setting that does not do what it seems to do, or that opens more than it should."""

    kind: str
    """A value of `ExposureKind`."""
    text: str
    """What is wrong, as a sentence."""
    file: str
    """The settings file."""
    line: int
    """The line there, counted from 1."""
    remedy: str
    """The command that closes it."""


AgentFile = SettingsText
AgentFiles = Sequence[SettingsText]
Findings = Iterator[ExposureFinding]
TextsByKeys = dict[KeyPath, str]
ServerTest = Callable[[str], bool]
"""Whether a server of this name counts."""
ToolRules = Iterator[tuple[AgentFile, KeyPath, str, str, str]]
"""Rules: the file and the keys of each, its tool, pattern, and action."""
Accesses = tuple[ExposedAccess, ExposedAccess]
"""Of reads, and of writes."""


class AgentReach(Struct, frozen=True):
    """What an agent's settings let it do. `opened` are folders that it reads besides.

    `findings` may be an iterator: those of a project's files are not all worth the time.
    """

    reads: ExposedAccess
    writes: ExposedAccess
    opened: tuple[str, ...] = ()
    findings: Iterable[ExposureFinding] = ()


class AgentHome(Struct, frozen=True):
    """The home folder in which the settings of one agent are looked for.

    `texts` are the files that were read, by their paths.
    """

    home: str
    variables: Mapping[str, str]
    platform: Platform
    texts: dict[str, SettingsText] = field(default_factory=dict)

    def read(self, place: SettingsPlace, language: SettingsFormat = JSON) -> SettingsText:
        """Return the settings file at a place."""
        return self.read_path(place.locate(self.home, self.variables, self.platform), language)

    def read_path(self, path: str, language: SettingsFormat = JSON) -> SettingsText:
        """Return a settings file."""
        if path not in self.texts:
            self.texts[path] = read_settings(path, language)
        return self.texts[path]

    def read_folder(
        self, place: SettingsPlace, ending: str, language: SettingsFormat = JSON
    ) -> list[SettingsText]:
        """Return the settings files in a folder, by their names."""
        return [self.read_path(path, language) for path in self.paths_in(place, ending)]

    def paths_in(self, place: SettingsPlace, ending: str) -> list[str]:
        """Return the paths in a folder that end so, by their names."""
        folder = place.locate(self.home, self.variables, self.platform)
        return sorted(f"{folder}/{name}" for name in _names_in(folder) if name.endswith(ending))

    def read_lines(self, path: str) -> list[str]:
        """Return the lines of a file that is no settings file."""
        return read_text(self.expand(path) or path, CONFIG_CAP)[0].splitlines()

    def read_in_project(self, path: str) -> SettingsText:
        """Return a settings file that others may have written, so a small one."""
        language = TOML if path.endswith(".toml") else JSON
        self.texts[path] = read_settings(path, language, CONFIG_CAP)
        return self.texts[path]

    def expand(self, typed: str) -> str | None:
        """Return a typed path as an absolute one, or None if it depends on the session."""
        if typed == "~" or typed.startswith("~/"):
            typed = self.home + typed[1:]
        typed = typed.replace("$HOME", self.home)
        return os.path.normpath(typed) if os.path.isabs(typed) else None

    def holds_home(self, path: str) -> bool:
        """Return whether a folder is the home folder or contains it."""
        return f"{self.home}/".startswith(path.rstrip("/") + "/")


def tool_rule(rule: str) -> tuple[str, str]:
    """Return the tool of a rule such as `Read(~/x)`, and what it may be used for."""
    tool, _, rest = rule.partition("(")
    return tool, rest.removesuffix(")")


def command_reach(command: str) -> str:
    """Return `r` or `w` if an allowed command does that with any file, and `x` if it runs any.

    A `*` at its end stands for any further words. A fixed script or subcommand counts for nothing.
    """
    words = command.replace(":*", " *").split()
    program = words[0].rpartition("/")[2].rstrip("*") if words else ""
    if program and (not command.endswith("*") or any(word[0] not in "-*" for word in words[1:])):
        return ""
    if program in _RUNNERS:
        return "rwx"
    return "r" * (program in _PRINTERS) + "w" * (program in _WRITERS)


def widened(
    accesses: Accesses,
    file: SettingsText,
    rules: Mapping[KeyPath, str],
    widens: Callable[[str], str] = command_reach,
) -> Accesses:
    """Return the accesses with what the rules of a file allow everywhere, as `widens` says."""
    reads, writes = accesses
    for keys, rule in rules.items():
        if what := widens(rule):
            said = said_by(Extent.EVERYTHING, file, *keys)
            reads, writes = said if "r" in what else reads, said if "w" in what else writes
    return reads, writes


def by_mode(
    files: Iterable[SettingsText],
    keys: tuple[str, ...],
    modes: Mapping[str, tuple[Extent, Extent]],
    usual: Accesses,
) -> Accesses:
    """Return what the first file with a mode at `keys` says, or the usual accesses."""
    file = first_with(files, *keys)
    extents = modes.get(str(file.at(*keys))) if file is not None else None
    if file is None or extents is None:
        return usual
    return said_by(extents[0], file, *keys), said_by(extents[1], file, *keys)


def is_wider(extent: str, usual: str) -> bool:
    """Return whether an extent is wider than the usual one."""
    order = _NARROW_TO_WIDE
    return extent in order and usual in order and order.index(extent) > order.index(usual)


def folder_of(pattern: str) -> str:
    """Return the folder of all that a pattern means, or the path if it has no wildcards."""
    front, *wild = _WILD.split(pattern, maxsplit=1)
    return (front.rpartition("/")[0] or "/") if wild else front


def by_default(extent: Extent, reason: str) -> ExposedAccess:
    """Return an access that no setting changes."""
    return ExposedAccess(extent=extent, reason=reason, file=None, line=None)


def from_variable(name: str, text: str, keys: tuple[str, ...]) -> SettingsText:
    """Return the settings in JSON that a variable has: the value at `keys`."""
    try:
        values: Any = parse_json(text)
    except Unparsable:
        values = None
    for key in reversed(keys):
        values = {key: values}
    return SettingsText(f"${name}", JSON, text, values if isinstance(values, dict) else {})


def said_by(extent: Extent, file: SettingsText, *keys: str | int) -> ExposedAccess:
    """Return an access that the setting at `keys` decides."""
    return ExposedAccess(
        extent=extent, reason=_setting(file, keys), file=file.path, line=file.line(keys)
    )


def first_with(files: Iterable[SettingsText], *keys: str) -> SettingsText | None:
    """Return the first file that has a value at `keys`."""
    return next((file for file in files if file.at(*keys) is not None), None)


def finding(
    kind: ExposureKind, file: SettingsText, where: KeyPath | int, text: str, remedy: str = ""
) -> ExposureFinding:
    """Return a finding about the setting at these keys, or about a line.

    Without a remedy, a person edits the line.
    """
    line = where if isinstance(where, int) else 1
    if not isinstance(where, int) and where and not file.problem:
        line = file.line(where)
    typed = remedy or edit_command(file.path, line)
    return ExposureFinding(kind=kind, text=text, file=file.path, line=line, remedy=typed)


def edit_command(path: str, line: int | None) -> str:
    """Return the command with which a person edits a line of a file, by default the first."""
    return f"${{EDITOR:-vi}} +{line or 1} {shlex.quote(safe_label(path, None))}"


def about_folders(
    home: AgentHome, file: SettingsText, keys: Mapping[KeyPath, str], what: str
) -> Findings:
    """Yield the findings about folders that settings trust or open: gone, misspelled, too wide.

    `keys` lead to each folder, as it is typed. `what` is a verb, such as `trusts`.
    """
    gone = []
    for place, typed in islice(keys.items(), _MAX_NAMES):
        path = home.expand(typed)
        if path is None:
            continue
        if home.holds_home(path):
            text = f"it {what} {typed}, so everything in your home folder"
            yield finding(ExposureKind.TOO_WIDE, file, place, text)
        elif (meant := misspelled(path)) is not None:
            text = f"it {what} {typed}, which does not exist: is it {meant}?"
            yield finding(ExposureKind.MISSPELLED, file, place, text)
        elif not os.path.lexists(path):
            gone.append((place, typed))
    if gone:
        names = first_of([typed for _, typed in gone], _SHOWN)
        is_one = len(gone) == 1
        text = f"it {what} {names}, which {'does' if is_one else 'do'} not exist"
        yield finding(ExposureKind.FOLDER_GONE, file, gone[0][0], text)


def misspelled(path: str) -> str | None:
    """Return the existing path that `path` was probably meant to be, or None.

    Only what comes before the first wildcard counts. A usual name of a secret is never a mistake:
    people deny `~/.aws` before they have it. Nor is the next number of a name.
    """
    known = "/"
    for part in path.strip("/").split("/"):
        if _WILD.search(part) or secret_part(os.fsencode(part)) is not None:
            return None
        if os.path.lexists(os.path.join(known, part)):
            known = os.path.join(known, part)
            continue
        others = [name for name in _names_in(known) if _differ_in_letters(name, part)]
        like = nearest(part, others)
        return os.path.join(known, like) if like is not None else None
    return None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the one of the `known` names that is most like `name`, if any is."""
    return next(iter(suggestions.nearest(name, known, likeness=_LIKENESS)), None)


def misspelled_keys(file: SettingsText, keys: Sequence[str], known: Collection[str]) -> Findings:
    """Yield a finding for each key that is not known, but nearly."""
    for name in file.members(*keys):
        like = nearest(name, known)
        if name not in known and like is not None:
            text = f'it does not know "{name}": is it "{like}"?'
            yield finding(ExposureKind.MISSPELLED, file, (*keys, name), text)


def misspelled_paths(
    home: AgentHome, file: SettingsText, rules: Mapping[KeyPath, str]
) -> Findings:
    """Yield a finding for each rule about a path that does not exist, but nearly."""
    for keys, rule in rules.items():
        path = home.expand(rule)
        if path is not None and (meant := misspelled(path)) is not None:
            text = f"{rule} matches nothing: is it {meant}?"
            yield finding(ExposureKind.MISSPELLED, file, keys, text)


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_MAX_NAMES), strict=False)]
    except OSError:
        return []


def _differ_in_letters(name: str, other: str) -> bool:
    """Return whether two names differ in more than their numbers."""
    return name.translate(_NO_DIGITS) != other.translate(_NO_DIGITS)


def _setting(file: SettingsText, keys: KeyPath) -> str:
    value: object = file.values
    for key in keys:
        value = value[key] if isinstance(value, dict | list) else None  # type: ignore[index]
    name = next((key for key in reversed(keys) if isinstance(key, str)), "")
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{name}: {shown}"
