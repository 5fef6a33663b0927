"""Define what rootsd must know about an MCP client to connect it.

To add a client, write one module in `rootsd.connect.clients` with the tuple `CLIENTS`. Nearly all
clients are a `DescribedClient`, which is data alone. A client that keeps its servers in an unusual
form implements some methods of `McpClient` itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from rootsd.agents.forms.place import Platform, SettingsPlace
from rootsd.files.private_files import display_path
from rootsd.settings.formats import JsonFormat, Keys, SettingsFormat, TomlFormat, YamlFormat

ENTRY_NAME = "rootsd"
"""The name of our entry among the servers of a client."""
TOOLS = ("list_roots", "resolve_root", "request_root")
"""The tools that a client may call without a question, if a person says so."""

HOOK_COMMAND = "@COMMAND@"

JSON = JsonFormat()
TOML = TomlFormat()
YAML = YamlFormat()


class ClientEnvironment(Struct, frozen=True):
    """The surroundings in which clients are looked for: a home folder, and the variables there."""

    home: Path
    variables: Mapping[str, str]
    platform: Platform

    def locate(self, place: SettingsPlace) -> Path:
        """Return the absolute path of a file or a folder of a client."""
        return Path(place.locate(str(self.home), self.variables, self.platform))

    def in_home(self, home: ClientHome) -> ClientEnvironment:
        """Return these surroundings with another home of a client."""
        others = {k: v for k, v in self.variables.items() if k not in home.variables}
        named = {name: value for name, value in home.variables.items() if value}
        return ClientEnvironment(Path(home.user_home), {**others, **named}, self.platform)

    def program(self, names: Sequence[str]) -> Path | None:
        """Return the first program of these names on the PATH."""
        for name in names:
            found = shutil.which(name, path=self.variables.get("PATH", ""))
            if found is not None:
                return Path(found)
        return None


class ClientHome(Struct, frozen=True):
    """One of the homes of a client: the folders in which it has all of its settings.

    `user_home` is the home folder of the user. `variables` has each variable that can name another
    home, with an empty value if it is not set.
    """

    user_home: str
    variables: Mapping[str, str]

    def command(self, words: str, shell: Mapping[str, str]) -> str:
        """Return a command as a person types it for this home, in a `shell` of these variables."""
        unset = [name for name, value in self.variables.items() if not value and shell.get(name)]
        front = ["env", *(f"-u {name}" for name in unset)] if unset else []
        named = {name: value for name, value in self.variables.items() if value}
        return " ".join([*front, *(f"{k}={shlex.quote(v)}" for k, v in named.items()), words])


class OtherSettings(Struct, frozen=True):
    """Settings of the same client that `connect` does not change.

    `what` is a sentence with `{}` for the folder. `place` is the folder, or a pattern for several.
    """

    what: str
    place: SettingsPlace

    def sentences(self, environment: ClientEnvironment) -> list[str]:
        """Return a sentence for each folder that is there."""
        pattern = environment.locate(self.place)
        found = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_dir())
        return [self.what.format(display_path(each)) for each in found]


def from_flatpak(title: str, application: str) -> OtherSettings:
    """Return the settings of a client that Flatpak installed. It cannot run programs outside."""
    what = f"{title} from Flatpak has its own settings in {{}}; rootsd does not change them"
    return OtherSettings(what, SettingsPlace(f".var/app/{application}/config"))


class Placeholder(Enum):
    """A notation in an entry that a client replaces by a value."""

    BRACES = "${NAME}"
    DEFAULT = "${NAME:-value}"
    BARE = "$NAME"
    ENV = "${env:NAME}"
    CURLY = "{env:NAME}"
    EDITOR = "${userHome}"
    FILE = "{file:path}"


class EntryPart(Enum):
    """A part of an entry that some clients ignore, or do not understand."""

    FOLDER = "cwd"
    HOME_FOLDER = "cwd that begins with ~"
    ENV_FILE = "envFile"
    COMMAND_LINE = "a whole command line as the program"
    OTHER_PLACEHOLDERS = "placeholders that rootsd does not know"


class EntryReading(Struct, frozen=True):
    """What a client makes of an entry before it starts the server.

    It fills `placeholders`. It understands `parts`, or is not known to ignore them. A placeholder
    that it does not fill stays as it is.
    """

    placeholders: tuple[Placeholder, ...] = ()
    parts: frozenset[EntryPart] = frozenset(EntryPart)


class EntryForm(Struct, frozen=True):
    """How a client writes the command of a server.

    * `fixed`: members of each new entry before the command. `more` are members of the entry after
      the command, outside of `inside`.
    * `program`: the key of the program. `arguments` is the key of its arguments. None says that
      `program` has a list with the arguments in it.
    * `environment`: the key of the variables.
    * `inside`: the key of an object around the command, in entries that have one.
    * `wrapped`: JSON members that the entry of a wrapped server gets, if it does not have them.
    """

    fixed: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    program: str = "command"
    arguments: str | None = "args"
    environment: str = "env"
    inside: str = ""
    wrapped: Mapping[str, Any] = field(default_factory=dict)

    def entry(
        self, words: Sequence[str], extra: Mapping[str, Any], variables: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return a new entry for the command `words`, with the members `extra`."""
        command: dict[str, Any] = dict(self.fixed)
        if self.arguments is None:
            command[self.program] = list(words)
        else:
            command |= {self.program: words[0], self.arguments: list(words[1:])}
        if variables:
            command[self.environment] = dict(variables)
        whole = {self.inside: command} if self.inside else command
        return {**whole, **self.more, **extra}

    def command_keys(self, entry: Mapping[str, Any]) -> Keys:
        """Return the keys that lead from an entry to the object with its command."""
        inner = entry.get(self.inside) if self.inside else None
        return (self.inside,) if isinstance(inner, dict) else ()

    def words(self, entry: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the command of an entry, or None if it has none or an unusual one."""
        for key in self.command_keys(entry):
            entry = entry[key]
        program = entry.get(self.program)
        if self.arguments is None:
            whole = program
        else:
            arguments = entry.get(self.arguments, [])
            whole = [program, *arguments] if isinstance(arguments, list) else None
        if not isinstance(whole, list) or not whole:
            return None
        return tuple(whole) if all(isinstance(word, str) for word in whole) and whole[0] else None

    def variables(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables that an entry sets."""
        for key in self.command_keys(entry):
            entry = entry[key]
        found = entry.get(self.environment)
        if not isinstance(found, dict):
            return {}
        return {name: value for name, value in found.items() if isinstance(value, str)}


class ToolFile(Enum):
    """Where a client keeps the permission to call a tool without a question."""

    ENTRY = "in the entry of the server"
    LIST = "in a list of another file"


class ToolPermission(Struct, frozen=True):
    """How a client lets its model call our three tools without a question.

    For ENTRY, `members` go into our entry. For LIST, `items` are appended to the array at `keys`
    of the file at `place`.
    """

    where: ToolFile
    members: Mapping[str, Any] = field(default_factory=dict)
    place: SettingsPlace | None = None
    keys: Keys = ()
    items: tuple[str, ...] = ()


class HookUse(Enum):
    """Whether a client asks rootsd before each call of a file tool.

    With STRICT, it refuses a call whose hook fails.
    """

    NO = "no"
    YES = "yes"
    STRICT = "strict"


class HookFile(Struct, frozen=True):
    """Where a client keeps its permission hooks: a JSON file at `place`.

    `entries` has our entry in the array at each key. In its strings, `HOOK_COMMAND` stands for our
    command. `strict` has the entries of a strict hook, if the client can refuse calls whose hook
    fails, which it does from the version `strict_since`. `language` has the text of a new file.
    `gap` is a sentence about sessions in which the client does not run the hook.
    """

    place: SettingsPlace
    entries: Mapping[Keys, Mapping[str, Any]]
    language: JsonFormat = JSON
    strict: Mapping[Keys, Mapping[str, Any]] | None = None
    strict_since: tuple[int, ...] = ()
    gap: str = ""

    def entries_for(self, use: HookUse, command: str) -> dict[Keys, dict[str, Any]]:
        """Return the entries that run `command`."""
        entries = self.strict if use is HookUse.STRICT and self.strict else self.entries
        return {keys: _with_command(entry, command) for keys, entry in entries.items()}

    def possible(self, use: HookUse) -> HookUse:
        """Return `use`, or YES if the client has no strict hooks."""
        return HookUse.YES if use is HookUse.STRICT and self.strict is None else use


def members(value: Any, keys: Keys) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    """Return the members of the object at `keys`, none if it is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


class NewJsonFile(JsonFormat):
    """JSON in which a new file has more than an empty object."""

    def __init__(self, new_file: str) -> None:
        self.new_file = new_file


def nested_hook(
    event: str, timeout: int, tools: str = ".*", more: Mapping[str, Any] | None = None
) -> dict[Keys, Mapping[str, Any]]:
    """Return our entry in the form of Claude Code, which others have, too."""
    hook = {"type": "command", "command": HOOK_COMMAND, "timeout": timeout, **(more or {})}
    return {("hooks", event): {"matcher": tools, "hooks": [hook]}}


def _with_command(value: Any, command: str) -> Any:  # noqa: ANN401 - a JSON value
    match value:
        case str():
            return value.replace(HOOK_COMMAND, command)
        case list():
            return [_with_command(each, command) for each in value]
        case dict():
            return {key: _with_command(each, command) for key, each in value.items()}
        case _:
            return value


class HealthCheck(Struct, frozen=True):
    """A client's own command that lists its servers.

    `connected` matches the output if rootsd answered. `listed` matches if the client knows rootsd.
    `problems` has a sentence for each pattern that explains a failure. `variables` are set for the
    command.
    """

    words: tuple[str, ...]
    listed: str
    connected: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


class ClientLock(Enum):
    """The lock that a client takes while it writes its settings."""

    NONE = "none"
    FOLDER = "a folder beside the file"


class ClientTrial(StrEnum):
    """Whether rootsd's own tests connect the real program."""

    TRIED = "tried"
    NOT_TRIED = "not tried"


class ClientFacts(Struct, frozen=True):
    """What is known about a client.

    * `name`: what a person types, and `title` what they read.
    * `places`: of its settings. The first one that exists is used, else the first one.
    * `keys`: lead to the object that has the servers.
    * `projects`: lead to an object that has, by the path of a project, servers at `keys`, too.
      `project_file` is a file in a project with servers at `keys`.
    * `reading`: what it makes of an entry.
    * `programs`: names of its program on the PATH. `folder` is a folder that the client makes.
    * `hook`: where it keeps its permission hooks, if `rootsd hook` answers them.
    * `applies`: when it notices a change.
    * `worktrees`: the folder in which it makes worktrees for itself. Without it, the client makes
      none, or makes them in the checkout.
    * `others`: settings that it has elsewhere, and that rootsd only names.
    * `no_hook`: why the hooks that it has are of no use for that.
    * `notes`: sentences that `rootsd connect` prints.
    """

    name: str
    title: str
    places: tuple[SettingsPlace, ...]
    keys: Keys
    projects: Keys = ()
    project_file: str = ""
    language: SettingsFormat = JSON
    form: EntryForm = field(default_factory=EntryForm)
    reading: EntryReading = field(default_factory=EntryReading)
    programs: tuple[str, ...] = ()
    folder: SettingsPlace | None = None
    trial: ClientTrial = ClientTrial.NOT_TRIED
    applies: str = "at its next start"
    tools: ToolPermission | None = None
    hook: HookFile | None = None
    no_hook: str = ""
    health: HealthCheck | None = None
    lock: ClientLock = ClientLock.NONE
    worktrees: SettingsPlace | None = None
    others: tuple[OtherSettings, ...] = ()
    notes: tuple[str, ...] = ()

    def home(self, environment: ClientEnvironment) -> ClientHome:
        """Return the home of the client that the variables name."""
        places = [*self.places, *([self.folder] if self.folder is not None else [])]
        places += [self.tools.place] if self.tools is not None and self.tools.place else []
        places += [self.hook.place] if self.hook is not None else []
        places += [self.worktrees] if self.worktrees is not None else []
        names = {
            variable.name
            for place in places
            for variable in place.variables
            if environment.platform in variable.platforms
        }
        values = {name: environment.variables.get(name, "") for name in sorted(names)}
        kept = {name: value if os.path.isabs(value) else "" for name, value in values.items()}
        return ClientHome(str(environment.home), kept)


class McpClient(Protocol):
    """One MCP client, as `rootsd connect` needs it. Methods on texts raise NotEditable."""

    facts: ClientFacts

    @abstractmethod
    def settings(self, environment: ClientEnvironment) -> Path:
        """Return the path of the file that has the servers. It may be missing."""

    @abstractmethod
    def settings_files(self, environment: ClientEnvironment) -> list[Path]:
        """Return the files whose servers the client merges, that of `settings` among them.

        Of two entries with one name, the later file wins. Missing files may be left out.
        """

    @abstractmethod
    def is_found(self, environment: ClientEnvironment) -> bool:
        """Return whether the client is there, by its program or its files."""

    @abstractmethod
    def servers(self, text: str) -> dict[str, Any]:
        """Return the entries of the servers for all projects, by name."""

    @abstractmethod
    def project_servers(self, text: str) -> dict[str, dict[str, Any]]:
        """Return the entries that belong to one project each, by its path and by name."""

    @abstractmethod
    def insert(self, text: str, entry: Mapping[str, Any]) -> tuple[str, list[Keys]]:
        """Return the text with our entry, and the keys of the containers that are new."""

    @abstractmethod
    def remove(self, text: str, made: Sequence[Keys]) -> str:
        """Return the text without our entry, and without those of `made` that are empty then."""

    @abstractmethod
    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the lines that a person can paste for our entry."""


class DescribedClient(McpClient):
    """A client that keeps its servers as named members of one object."""

    def __init__(self, facts: ClientFacts) -> None:
        self.facts = facts

    def settings(self, environment: ClientEnvironment) -> Path:
        """Return the first of the places that exists, else the first one."""
        paths = [environment.locate(place) for place in self.facts.places]
        return next((path for path in paths if os.path.lexists(path)), paths[0])

    def settings_files(self, environment: ClientEnvironment) -> list[Path]:
        """Return the one file: most clients have only one for all projects."""
        return [self.settings(environment)]

    def is_found(self, environment: ClientEnvironment) -> bool:
        """Return whether the program is on the PATH, or the settings or the folder exist."""
        if environment.program(self.facts.programs) is not None:
            return True
        settings = self.settings(environment)
        folder = environment.locate(self.facts.folder) if self.facts.folder else settings.parent
        return os.path.lexists(settings) or folder.is_dir()

    def servers(self, text: str) -> dict[str, Any]:
        """Return the members of the object at the keys."""
        found: Any = self.facts.language.values(text)
        for key in self.facts.keys:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}

    def project_servers(self, text: str) -> dict[str, dict[str, Any]]:
        """Return the members of that object in each project."""
        if not self.facts.projects:
            return {}
        projects = members(self.facts.language.values(text), self.facts.projects)
        return {path: members(project, self.facts.keys) for path, project in projects.items()}

    def insert(self, text: str, entry: Mapping[str, Any]) -> tuple[str, list[Keys]]:
        """Insert a member of that object."""
        return self.facts.language.insert(text, self.facts.keys, ENTRY_NAME, entry)

    def remove(self, text: str, made: Sequence[Keys]) -> str:
        """Remove that member."""
        return self.facts.language.remove(text, (*self.facts.keys, ENTRY_NAME), made)

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the member with the objects around it."""
        return self.facts.language.snippet(self.facts.keys, ENTRY_NAME, entry)
