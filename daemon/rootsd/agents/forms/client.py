"""An MCP client, as `rootsd connect` needs it: its configuration file, and its entries there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

from msgspec import Struct, field

from rootsd.agents.forms.place import SettingsPlace
from rootsd.settings.formats import JsonFormat, Keys, SettingsFormat, TomlFormat, YamlFormat

ENTRY_NAME = "rootsd"
"""The name of our entry among the servers of a client."""
TOOLS = ("list_roots", "resolve_root", "request_root")
"""The tools that a client may call without a question, if a person says so."""

HOOK_COMMAND = "@COMMAND@"
"""What stands for our command in the entry of a hook."""
NO_DENIALS = "it has no list of denied folders"

JSON = JsonFormat()
TOML = TomlFormat()
YAML = YamlFormat()


class OtherSettings(Struct, frozen=True):
    """Settings of the same client that `connect` does not change.

    `what` is a sentence with `{}` for the folder. `place` is the folder, or a pattern for several.
    """

    what: str
    place: SettingsPlace


def from_flatpak(title: str, application: str) -> OtherSettings:
    """Return the settings of a client that Flatpak installed. It cannot run programs outside."""
    what = f"{title} from Flatpak has its own settings in {{}}; rootsd does not change them"
    return OtherSettings(what, SettingsPlace(f".var/app/{application}/config"))


class NewJsonFile(JsonFormat):
    """JSON in which a new file has more than an empty object."""

    def __init__(self, new_file: str) -> None:
        self.new_file = new_file


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


class AgentList(Struct, frozen=True):
    """Where an editor keeps the agents that it starts (ACP): members of the object at `keys`."""

    keys: Keys
    form: EntryForm = field(default_factory=EntryForm)


class HookFile(Struct, frozen=True):
    """Where a client keeps its permission hooks: a JSON file at `place`.

    `entry` is in the array `hooks` of each event. In its strings, `HOOK_COMMAND` stands for our
    command. `strict` is the entry of a strict hook, if the client can refuse calls whose hook
    fails, which it does from the version `strict_since`. `language` has the text of a new file.
    `gap` is a sentence about sessions in which the client does not run the hook.
    """

    place: SettingsPlace
    entry: Mapping[str, Any]
    language: JsonFormat = JSON
    strict: Mapping[str, Any] | None = None
    strict_since: tuple[int, ...] = ()
    gap: str = ""


def nested_hook(
    timeout: int, tools: str = ".*", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return our entry in the form of Claude Code, which others have, too."""
    hook = {"type": "command", "command": HOOK_COMMAND, "timeout": timeout, **(more or {})}
    return {"matcher": tools, "hooks": [hook]}


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


class ServerList(Enum):
    """How a client keeps its servers: by name, or as items that have one."""

    MEMBERS = "members of an object"
    ITEMS = "items of a list"


class ClientFacts(Struct, frozen=True):
    """What is known about a client.

    * `name`: what a person types, and `title` what they read.
    * `places`: of its settings. The first one that exists is used, else the first one.
    * `merged`: all files whose servers the client merges, if it has several for all projects. Of
      two entries with one name, the later file wins. Of `places`, the last one is used then.
    * `keys`: lead to the object that has the servers. Empty for an editor of agents alone.
    * `agents`: where it keeps its agents, in the same file.
    * `list_of`: how the servers are kept there.
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
    * `not_synced`: why its settings of access are of no use for `rootsd sync`.
    * `notes`: sentences that `rootsd connect` prints.
    * `only_printed`: why `rootsd connect` changes no file, and only prints the lines to paste.
    """

    name: str
    title: str
    places: tuple[SettingsPlace, ...]
    keys: Keys
    agents: AgentList | None = None
    merged: tuple[SettingsPlace, ...] = ()
    list_of: ServerList = ServerList.MEMBERS
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
    not_synced: str = ""
    health: HealthCheck | None = None
    lock: ClientLock = ClientLock.NONE
    worktrees: SettingsPlace | None = None
    others: tuple[OtherSettings, ...] = ()
    notes: tuple[str, ...] = ()
    only_printed: str = ""
