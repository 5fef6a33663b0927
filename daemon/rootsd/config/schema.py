"""The shape of `config.toml`: each key with its type, its limits, its default, and its meaning.

This is the only place that declares the keys. `configuration` validates the file with these
structs. `tools/write_schemas.py` generates the JSON Schema from them, and
`tools/write_configuration.py` the reference page.

To add a key, add a field: to a struct here, or to `WallSettings` for `[confine]`. `expected`
completes the sentence "expected …" of an error message.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

from msgspec import Meta, Struct, defstruct, field

from rootsd.core.guard_setting import Guard
from rootsd.core.model import DEFAULT_DEPTH, MountPolicy, NestedPolicy
from rootsd.core.record import field_docs
from rootsd.core.wall import PROGRAM_PATTERN, WallSettings

MAX_DEPTH = 64
MAX_CONNECTIONS = 1 << 16

_PATH_PATTERN = r"^[/~][^\x00]*$"
# An optional "!", then a file name, or "*." with an ending. No other wildcard.
_PROJECT_FILE_PATTERN = r"^!?(\*\.)?[^/*?!\[\]\x00]+$"


def describe_key(description: str, expected: str, example: object = None) -> Meta:
    """Return the description of a key. `example` is a value that differs from the default."""
    examples = None if example is None else [example]
    return Meta(description=description, extra={"expected": expected}, examples=examples)


def _whole_number(description: str, maximum: int, example: int) -> Meta:
    expected = f"a whole number from 1 to {maximum}"
    return Meta(
        description=description, extra={"expected": expected}, examples=[example], ge=1, le=maximum
    )


def one_of(words: type[Enum]) -> str:
    return "one of " + ", ".join(f'"{word.value}"' for word in words)


PathText = Annotated[str, Meta(pattern=_PATH_PATTERN)]
_Name = Annotated[str, Meta(min_length=1)]
_Program = Annotated[str, Meta(pattern=PROGRAM_PATTERN)]
_ProjectFile = Annotated[str, Meta(pattern=_PROJECT_FILE_PATTERN)]


# A `Parent` as a person writes it: with `~`, and checked key by key.
class ParentTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder that rootsd watches for projects. Write one `[[parent]]` for each folder."""

    path: Annotated[
        PathText,
        describe_key(
            "The folder. `~` is your home folder.",
            'a path in quotes that starts with / or ~/, such as "~/src"',
            "~/src",
        ),
    ]
    depth: Annotated[
        int,
        _whole_number("How many levels below the parent a project may lie.", MAX_DEPTH, 6),
    ] = DEFAULT_DEPTH
    skip: Annotated[
        list[str],
        describe_key(
            "Names or globs of folders that rootsd never enters. The built-in ones still apply.",
            'a list of names or globs, such as ["old", "tmp-*"]',
            ["old", "tmp-*"],
        ),
    ] = []
    nested: Annotated[
        NestedPolicy,
        describe_key(
            "Which projects inside another project rootsd proposes: none, those with their own "
            "version control (`vcs`), or also the members of a workspace (`members`).",
            one_of(NestedPolicy),
            NestedPolicy.VCS.value,
        ),
    ] = NestedPolicy.NONE
    project_files: Annotated[
        list[_ProjectFile],
        describe_key(
            "File names, or `*.ENDING` patterns, that also make a folder a project. A leading `!` "
            "removes one from the built-in list.",
            'a list of names such as ["Justfile", "*.nimble", "!package.json"]',
            ["Justfile", "*.nimble", "!package.json"],
        ),
    ] = []
    mounts: Annotated[
        MountPolicy,
        describe_key(
            "Which file systems that are mounted inside the parent rootsd looks into: none, those "
            "of this machine (`local`), or also those of other machines and programs (`all`).",
            one_of(MountPolicy),
            MountPolicy.LOCAL.value,
        ),
    ] = MountPolicy.NONE


class RootsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Folders that can never be roots or parents, and exceptions from the built-in ones."""

    refuse: Annotated[
        list[PathText],
        describe_key(
            "Folders that rootsd refuses, with everything below them.",
            'a list of paths that start with / or ~/, such as ["~/vault"]',
            ["~/vault"],
        ),
    ] = []
    allow: Annotated[
        list[PathText],
        describe_key(
            "Folders that rootsd accepts although its built-in list refuses them.",
            'a list of paths that start with / or ~/, such as ["~/.config/nvim"]',
            ["~/.config/nvim"],
        ),
    ] = []


class SessionsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits for MCP connections."""

    max_connections: Annotated[
        int,
        _whole_number(
            "How many connections all programs together may have.", MAX_CONNECTIONS, 4096
        ),
    ] = 1024
    max_connections_per_process: Annotated[
        int,
        _whole_number("How many connections one process may have.", MAX_CONNECTIONS, 256),
    ] = 64


class ChangePolicy(Enum):
    """What happens to an approval when files that run by themselves change.

    TELL: nothing, and rootsd tells you. PENDING: it lapses.
    """

    TELL = "tell"
    PENDING = "pending"


class ApprovalTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Which programs may decide, and what ends an approval."""

    guard: Annotated[
        Guard,
        describe_key(
            "The guard of a new store: ask about unknown programs (`agents`), require a typed "
            "word at a terminal (`terminal`), or admit every program (`off`). Afterwards, "
            "`rootsd guard` changes it.",
            one_of(Guard),
            Guard.TERMINAL.value,
        ),
    ] = Guard.AGENTS
    agents: Annotated[
        tuple[_Name, ...],
        describe_key(
            "Process names of more agents, in addition to the built-in list.",
            'a list of names, such as ["my-agent"]',
            ["my-agent"],
        ),
    ] = ()
    markers: Annotated[
        tuple[_Name, ...],
        describe_key(
            "Environment variables that more agents set, as `NAME` or `NAME=VALUE`.",
            'a list of names, such as ["MY_AGENT=1"]',
            ["MY_AGENT=1"],
        ),
    ] = ()
    on_change: Annotated[
        ChangePolicy,
        describe_key(
            "What rootsd does when a file that runs by itself is new or changed in an approved "
            "project, or a file with secrets is new: tell you (`tell`), or also end the approval "
            "(`pending`).",
            one_of(ChangePolicy),
            ChangePolicy.PENDING.value,
        ),
    ] = ChangePolicy.TELL


def _switch(description: str) -> Meta:
    return describe_key(description, "true or false, without quotes")


_EXAMPLE_PATHS = 'a list of paths that start with / or ~/, such as ["~/.aws"]'
_EXAMPLE_PROGRAMS = 'a list of names of programs, such as ["claude"]'


def _meta_of(kind: type, description: str) -> Meta:
    """Return the description of a key of this type, with what its error message expects."""
    if kind is bool:
        return _switch(description)
    if issubclass(kind, Enum):
        return describe_key(description, one_of(kind))
    raise TypeError(f"say here what a value of the type {kind.__name__} is to look like")


def _table_of(record: type[tuple[Any, ...]]) -> type[Struct]:
    """Return the table with the fields of a record, whose paths are as the user writes them."""
    docs = field_docs(record)
    types = get_type_hints(record)
    fields: list[tuple[str, Any, Any]] = []
    for name, default in record._field_defaults.items():  # type: ignore[attr-defined]
        if types[name] == tuple[str, ...]:
            meta = describe_key(docs[name], _EXAMPLE_PROGRAMS, ["claude", "codex"])
            fields.append((name, Annotated[tuple[_Program, ...], meta], default))
        elif isinstance(default, tuple):
            meta, kind = describe_key(docs[name], _EXAMPLE_PATHS), list[PathText]
            fields.append((name, Annotated[kind, meta], field(default_factory=list)))
        else:
            kind = types[name]
            fields.append((name, Annotated[kind, _meta_of(kind, docs[name])], default))
    return defstruct(
        record.__name__,
        fields,
        namespace={"__doc__": record.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )


if TYPE_CHECKING:
    ConfineTable: TypeAlias = Struct
else:
    ConfineTable = _table_of(WallSettings)


class NotifyTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Notifications on your desktop."""

    enabled: Annotated[
        bool,
        _switch(
            "Whether the desktop shows new projects, the folders that programs ask for, and "
            "changed files that run outside. Without it, `rootsd` still prints the first two at "
            "your next command, and `rootsd status` prints the last."
        ),
    ] = True


class UiTable(Struct, frozen=True, forbid_unknown_fields=True):
    """How rootsd prints on your terminal."""

    pager: Annotated[
        str,
        describe_key(
            "The program that shows a list that is longer than your terminal. `off` means that "
            "the list is printed. By default, it is the program in the variable PAGER, or else "
            "less.",
            'a command in quotes, such as "less -S", or "off"',
            "less -S",
        ),
    ] = ""


class ConfigTables(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. Every table is optional."""

    parent: Annotated[
        list[ParentTable],
        describe_key("The folders that rootsd watches.", "[[parent]], once for each folder"),
    ] = []
    roots: Annotated[
        RootsTable,
        describe_key("Refused and allowed folders.", "a table that starts with [roots]"),
    ] = RootsTable()
    sessions: Annotated[
        SessionsTable,
        describe_key("Limits for MCP connections.", "a table that starts with [sessions]"),
    ] = SessionsTable()
    approval: Annotated[
        ApprovalTable,
        describe_key(
            "Which programs may decide, and what ends an approval.",
            "a table that starts with [approval]",
        ),
    ] = ApprovalTable()
    confine: Annotated[
        ConfineTable,
        describe_key(
            "What programs behind the wall may reach besides the approved roots.",
            "a table that starts with [confine]",
        ),
    ] = ConfineTable()
    notify: Annotated[
        NotifyTable,
        describe_key("Notifications on your desktop.", "a table that starts with [notify]"),
    ] = NotifyTable()
    ui: Annotated[
        UiTable,
        describe_key("How rootsd prints on your terminal.", "a table that starts with [ui]"),
    ] = UiTable()
