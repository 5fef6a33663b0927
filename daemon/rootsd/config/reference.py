"""The reference of `config.toml`: each key with its type, default, meaning, and an example.

It is derived from the structs that validate the file, so it cannot differ from them.
`rootsd config help` and docs/CONFIGURATION.md print it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache
from inspect import cleandoc

from msgspec import NODEFAULT, Struct, inspect, structs

from rootsd.config.schema import ConfigTables
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.settings.toml_spans import literal

HELP = "rootsd config help"


class UnknownKey(RootsdError):
    """A word that names no key of the configuration."""

    code = ErrorCode.NOTHING_MATCHED


class KeyReference(Struct, frozen=True):
    """The reference of one key.

    `default` is None for a required key, and `example` None if the default is the example.
    `type_words` and `description` have code between backticks. `words` are all allowed values, or
    empty if they cannot be listed.
    """

    table: str
    name: str
    type_words: str
    default: object
    example: object
    description: str
    words: tuple[str, ...]
    is_list: bool

    @property
    def full_name(self) -> str:
        """Return the name with the table's, such as `confine.read`."""
        return f"{self.table}.{self.name}".removeprefix(".")

    @property
    def default_text(self) -> str:
        """Return the default in TOML, or "required"."""
        return "required" if self.default is None else literal(self.default)

    @property
    def assignment(self) -> str:
        """Return a line of TOML that sets the key to its example."""
        value = self.default if self.example is None else self.example
        return f"{self.name} = {literal(value)}"


class TableReference(Struct, frozen=True):
    """The reference of one table. A repeated table is written once for each folder."""

    name: str
    description: str
    keys: tuple[KeyReference, ...]
    is_repeated: bool

    @property
    def header(self) -> str:
        """Return the line of TOML that starts the table."""
        if not self.name:
            return ""
        return f"[[{self.name}]]" if self.is_repeated else f"[{self.name}]"


@cache
def tables(shape: type[Struct] = ConfigTables) -> tuple[TableReference, ...]:
    """Return all tables of a file in the order of its schema.

    The first one has no name and has the keys above all tables, if there are any.
    """
    return tuple(_tables(shape))


def settable_keys() -> list[KeyReference]:
    """Return the keys that the file has at most once."""
    return [key for table in tables() if not table.is_repeated for key in table.keys]


def find_key(name: str) -> KeyReference:
    """Return the key with this full name. Raises UnknownKey for any other word."""
    keys = {key.full_name: key for key in settable_keys()}
    if name in keys:
        return keys[name]
    for table in tables():
        if table.is_repeated and name.partition(".")[0].partition("[")[0] == table.name:
            raise UnknownKey(
                f"the file may have several {table.header} tables, so one key cannot name them",
                f"rootsd {table.name} --help",
            )
        if name == table.name:
            raise UnknownKey(
                f"{name} is a table; its keys are {_listed(table.keys)}", f"{HELP} {name}"
            )
    similar = [
        *nearest(name, keys),
        *(full for full, key in keys.items() if key.name == name),
    ][:1]
    message = f"there is no key {safe_label(name)}{did_you_mean(similar)}"
    raise UnknownKey(message, HELP, typed=name, choices=similar)


def find_tables(name: str) -> list[TableReference]:
    """Return the table with this name, or only the key with this full name. Raises UnknownKey."""
    for table in tables():
        if name == table.name:
            return [table]
        for key in table.keys:
            if name == key.full_name:
                return [TableReference(table.name, table.description, (key,), table.is_repeated)]
    find_key(name)
    raise AssertionError(name)


def _listed(keys: tuple[KeyReference, ...]) -> str:
    return ", ".join(key.full_name for key in keys)


def _tables(shape: type[Struct]) -> Iterator[TableReference]:
    fields = structs.fields(shape)
    if plain := [field for field in fields if not _is_table(field)]:
        keys = tuple(_key("", field) for field in plain)
        yield TableReference("", "Keys above all tables.", keys, is_repeated=False)
    for field in (field for field in fields if _is_table(field)):
        outer = inspect.type_info(field.type)
        assert isinstance(outer, inspect.Metadata)
        match outer.type:
            case inspect.ListType(item_type=inspect.StructType(cls=table)):
                description, is_repeated = cleandoc(table.__doc__ or ""), True
            case inspect.StructType(cls=table):
                description, is_repeated = (outer.extra_json_schema or {})["description"], False
            case other:
                raise TypeError(other)
        name = field.encode_name
        keys = tuple(_key(name, each) for each in structs.fields(table))
        yield TableReference(name, description, keys, is_repeated)


def _is_table(field: structs.FieldInfo) -> bool:
    outer = inspect.type_info(field.type)
    kind = outer.type if isinstance(outer, inspect.Metadata) else outer
    match kind:
        case inspect.ListType(item_type=inspect.StructType()) | inspect.StructType():
            return True
        case _:
            return False


def _key(table: str, field: structs.FieldInfo) -> KeyReference:
    outer = inspect.type_info(field.type)
    assert isinstance(outer, inspect.Metadata)
    schema, kind = outer.extra_json_schema or {}, outer.type
    [example] = schema.get("examples") or [None]
    return KeyReference(
        table,
        field.encode_name,
        _type_words(kind),
        _default(field),
        example,
        schema["description"],
        tuple(_words(kind)),
        isinstance(kind, inspect.CollectionType),
    )


def _default(field: structs.FieldInfo) -> object:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    if field.default is NODEFAULT:
        return None
    if isinstance(field.default, tuple):
        return list(field.default)
    return field.default.value if isinstance(field.default, Enum) else field.default


def _type_words(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _type_words(inner)
        case inspect.EnumType():
            return "one of " + ", ".join(f"`{literal(word)}`" for word in _words(kind))
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return f"list of {_type_words(item)}s"
        case inspect.IntType(ge=lowest, le=highest) if lowest == highest:
            return f"the integer {lowest}"
        case inspect.IntType(ge=lowest, le=highest):
            return f"integer from {lowest} to {highest}"
        case inspect.BoolType():
            return "boolean"
        case inspect.StrType():
            return "string"
        case _:
            raise TypeError(kind)


def _words(kind: inspect.Type) -> list[str]:
    match kind:
        case inspect.EnumType(cls=words):
            return sorted(str(word.value) for word in words)
        case inspect.BoolType():
            return ["true", "false"]
        case _:
            return []
