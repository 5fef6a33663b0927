"""Write docs/CONFIGURATION.md, the reference of `config.toml`, from its schema: `make schemas`.

A test compares the file with what `page` returns now.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rootsd.system.config_reference import TableReference, tables

FILE = Path(__file__).parent.parent / "docs" / "CONFIGURATION.md"

_INTRODUCTION = """\
# Configuration reference

rootsd reads one file, `config.toml`. `rootsd config path` prints where it is: usually
`~/.config/rootsd/config.toml`. You need not write it by hand. `rootsd up ~/src` and
`rootsd parent` create it and change its parents, `rootsd config set KEY VALUE` sets any other key,
and both keep your comments. `rootsd config help` prints this reference in a terminal.

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
    lines = (line for table in tables() for line in _section(table))
    return "\n".join([_INTRODUCTION, "```toml", example_file(), "```", *lines]) + "\n"


def example_file() -> str:
    """Return a `config.toml` that sets every key to its example."""
    return "\n\n".join(
        "\n".join([table.header, *(key.assignment for key in table.keys)]) for table in tables()
    )


def _section(table: TableReference) -> Iterator[str]:
    yield f"\n## `{table.header}`\n\n{table.description}"
    for key in table.keys:
        default = key.default_text if key.default is None else f"`{key.default_text}`"
        yield f"\n### `{key.full_name}`\n\n{key.description}\n"
        yield f"* Type: {key.type_words}"
        yield f"* Default: {default}"
        yield f"* Example: `{key.assignment}`"


def main() -> None:
    """Write the page."""
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
