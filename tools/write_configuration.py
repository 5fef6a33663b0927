"""Write docs/CONFIGURATION.md and docs/POLICY.md from the schemas of both files: `make reference`.

A test compares the files with what `page` and `policy_page` return now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rootsd.config.policy_schema import PolicyTables
from rootsd.config.reference import TableReference, tables

FILE = Path(__file__).parent.parent / "docs" / "CONFIGURATION.md"
POLICY_PAGE = FILE.with_name("POLICY.md")

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

[Command line](reference/cli.md), [JSON](reference/json.md), and [Python](reference/python.md) are
the other references. This page is generated from the types that check the file.

## Example
"""


_POLICY_INTRODUCTION = """\
# Policy reference

`/etc/rootsd/policy.toml` sets rules for all users of a machine. [Teams](TEAMS.md) describes what
it does, and what it does not do. Only `version` is required. The daemon reads the file again when
it changes. While the file has an error, or users other than root can write to it, nothing is
published.

[policy.schema.json](schema/policy.schema.json) is its JSON Schema. This page is generated from the
types that check the file.

## Example
"""


def page() -> str:
    """Return the text of docs/CONFIGURATION.md."""
    return _page(_INTRODUCTION, tables())


def policy_page() -> str:
    """Return the text of docs/POLICY.md."""
    return _page(_POLICY_INTRODUCTION, tables(PolicyTables))


def example_file(shown: Iterable[TableReference] | None = None) -> str:
    """Return a file that sets every key of these tables, or of `config.toml`, to its example."""
    return "\n\n".join(
        "\n".join(filter(None, [table.header, *(key.assignment for key in table.keys)]))
        for table in (tables() if shown is None else shown)
    )


def _page(introduction: str, shown: Sequence[TableReference]) -> str:
    lines = (line for table in shown for line in _section(table))
    return "\n".join([introduction, "```toml", example_file(shown), "```", *lines]) + "\n"


def _section(table: TableReference) -> Iterator[str]:
    title = f"`{table.header}`" if table.name else "Top level"
    yield f"\n## {title}\n\n{table.description}"
    for key in table.keys:
        default = key.default_text if key.default is None else f"`{key.default_text}`"
        yield f"\n### `{key.full_name}`\n\n{key.description}\n"
        yield f"* Type: {key.type_words}"
        yield f"* Default: {default}"
        yield f"* Example: `{key.assignment}`"


def main() -> None:
    """Write both pages."""
    FILE.write_text(page(), encoding="utf-8")
    POLICY_PAGE.write_text(policy_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
