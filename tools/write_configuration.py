"""Write docs/CONFIGURATION.md, the reference of `config.toml`, from its schema: `make schemas`.

A test compares the file with what `page` returns now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from write_schemas import JsonSchema, config_schema

FILE = Path(__file__).parent.parent / "docs" / "CONFIGURATION.md"

_INTRODUCTION = """\
# Configuration reference

rootsd reads one file, `config.toml`. `rootsd config path` prints where it is: usually
`~/.config/rootsd/config.toml`. You need not write it by hand. `rootsd up ~/src` and
`rootsd parent` create and change it, and keep your comments.

Every table is optional, and so is every key except `path`. The daemon reads the file again when it
changes. If the file has an error, the daemon keeps the last valid configuration.
`rootsd config check` lists all errors, each with its line and key.

A file that rootsd creates starts with a line such as `#:schema file:///…/config.schema.json`.
Editors with Taplo, such as VS Code with Even Better TOML, then complete and check the keys. To add
the line to an older file, take the path from the key `json_schema` of `rootsd config path --json`.

This page is generated from the types that check the file.

## Example
"""


def page() -> str:
    """Return the text of the page."""
    schema = config_schema()
    return (
        "\n".join([_INTRODUCTION, "```toml", example_file(schema), "```", *_tables(schema)]) + "\n"
    )


def example_file(schema: JsonSchema) -> str:
    """Return a `config.toml` that sets every key to its example."""
    tables = [
        "\n".join([_header(name, table), *(_assignment(*key) for key in _keys(table))])
        for name, table in schema["properties"].items()
    ]
    return "\n\n".join(tables)


def _tables(schema: JsonSchema) -> Iterator[str]:
    for name, table in schema["properties"].items():
        yield f"\n## `{_header(name, table)}`\n\n{_table_of(table)['description']}"
        required = _table_of(table)["required"]
        for key, each in _keys(table):
            default = "required" if key in required else f"`{_toml(each['default'])}`"
            yield f"\n### `{name}.{key}`\n\n{each['description']}\n"
            yield f"* Type: {_type_words(each)}"
            yield f"* Default: {default}"
            yield f"* Example: `{_assignment(key, each)}`"


def _header(name: str, table: JsonSchema) -> str:
    return f"[[{name}]]" if table["type"] == "array" else f"[{name}]"


def _table_of(table: JsonSchema) -> JsonSchema:
    """Return the schema of one table; `table` may be that of an array of tables."""
    one: JsonSchema = table["items"] if table["type"] == "array" else table
    return one


def _keys(table: JsonSchema) -> list[tuple[str, JsonSchema]]:
    return [*_table_of(table)["properties"].items()]


def _assignment(key: str, each: JsonSchema) -> str:
    [example] = each.get("examples") or [each["default"]]
    return f"{key} = {_toml(example)}"


def _toml(value: Any) -> str:  # noqa: ANN401 - any value of JSON but an object
    """Return a value in TOML, which writes these values as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def _type_words(each: JsonSchema) -> str:
    if "enum" in each:
        return "one of " + ", ".join(f"`{_toml(word)}`" for word in each["enum"])
    if each["type"] == "array":
        return f"list of {_type_words(each['items'])}s"
    if "minimum" in each:
        return f"{each['type']} from {each['minimum']} to {each['maximum']}"
    return str(each["type"])


def main() -> None:
    """Write the page."""
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
