"""Edits of generated files: the values are right, and all other bytes stay."""

from __future__ import annotations

import re
import tomllib
from copy import deepcopy
from typing import Any

import pytest

from rootsd.settings.errors import NotEditable
from rootsd.settings.formats import JsonFormat, SettingsFormat, TomlFormat, YamlFormat
from support.settings_texts import SettingsText, make
from support.sizes import Sizes

FORMATS: dict[str, SettingsFormat] = {
    "json": JsonFormat(), "toml": TomlFormat(), "yaml": YamlFormat(),
}  # fmt: skip
OURS = {"command": "/opt/rootsd", "args": ["bridge"]}
FRONT = ["run", "--", "npx"]


def is_kept(before: str, after: str) -> bool:
    """Return whether all characters of `before` are in `after`, in order."""
    rest = iter(after)
    return all(character in rest for character in before)


def servers_of(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    for key in keys:
        values = values.setdefault(key, {})
    return values


def check(language: SettingsFormat, file: SettingsText) -> None:
    """Insert our entry, put a program before each server, and take both back."""
    assert language.values(file.text) == file.values
    expected = deepcopy(file.values)
    servers_of(expected, file.keys)["rootsd"] = OURS
    after, made = language.insert(file.text, file.keys, "rootsd", OURS)
    assert language.values(after) == expected
    # In YAML, lines replace the braces of an empty container.
    empty = rf"""(?m)^(\ufeff?["']?{file.keys[0]}["']? *:) *\{{\}}"""
    assert is_kept(re.sub(empty, r"\1", file.text), after)
    wrapped = after
    for name, entry in servers_of(file.values, file.keys).items():
        if "command" in entry:
            wrapped = wrap(language, wrapped, (*file.keys, name), entry, expected)
    assert language.values(wrapped) == expected
    assert language.remove(after, (*file.keys, "rootsd"), made) == file.text
    wrapped = language.remove(wrapped, (*file.keys, "rootsd"), made)
    for name, entry in reversed(servers_of(file.values, file.keys).items()):
        if "command" in entry:
            wrapped = unwrap(language, wrapped, (*file.keys, name), file.text, entry)
    assert wrapped == file.text


def check_many(language: SettingsFormat, name: str, count: int) -> int:
    """Check `count` files, and return how many were refused."""
    refused = 0
    for seed in range(count):
        file = make(name, seed)
        try:
            check(language, file)
        except NotEditable:
            refused += 1
        except Exception as error:
            error.add_note(f"seed {seed}: {file.text!r}")
            raise
    return refused


def wrap(
    language: SettingsFormat,
    text: str,
    keys: tuple[str, ...],
    entry: dict[str, Any],
    expected: dict[str, Any],
) -> str:
    target = servers_of(expected, keys)
    target["args"] = FRONT + entry.get("args", [])
    target["command"] = "/opt/rootsd"
    raw = language.raw(text, (*keys, "args"))
    if raw is None:
        text = language.insert_beside(text, (*keys, "command"), "args", FRONT)
    else:
        text = language.replace(text, (*keys, "args"), language.prepend(raw, FRONT))
    return language.replace(text, (*keys, "command"), language.literal("/opt/rootsd"))


def unwrap(
    language: SettingsFormat, text: str, keys: tuple[str, ...], before: str, entry: dict[str, Any]
) -> str:
    text = language.replace(
        text, (*keys, "command"), language.raw(before, (*keys, "command")) or ""
    )
    if "args" not in entry:
        return language.remove_beside(text, (*keys, "args"))
    raw = language.raw(text, (*keys, "args"))
    assert raw is not None
    return language.replace(text, (*keys, "args"), language.without_first(raw, len(FRONT)))


@pytest.mark.parametrize("name", FORMATS)
def test_an_edit_and_its_removal_change_no_other_byte(name: str, sizes: Sizes) -> None:
    count = sizes.pick(test=30, check=1_000, soak=3_000)
    refused = check_many(FORMATS[name], name, count)
    assert refused <= (0.6 * count if name == "yaml" else 0)  # half of the YAML is in flow style


def test_the_generated_texts_have_the_expected_values() -> None:
    """The oracle for TOML is the parser of the standard library."""
    for seed in range(300):
        file = make("toml", seed)
        assert tomllib.loads(file.text.removeprefix("\ufeff")) == file.values


class ForgetfulJson(JsonFormat):
    """Writes the file anew, as some programs do."""

    def remove(self, text: str, keys: tuple[str, ...], made: object) -> str:
        values = self.values(text)
        servers_of(values, keys[:-1]).pop(keys[-1], None)
        return self.literal(values)  # type: ignore[arg-type]


def test_control_a_format_that_rewrites_the_file_is_found() -> None:
    with pytest.raises(AssertionError):
        check_many(ForgetfulJson(), "json", 50)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", '{"a": 1, "a": 2}'), ("json", '{"mcpServers": {"x": {}, "x": {}}}'),
        ("json", "null"), ("json", "[]"), ("json", '{"mcpServers": []}'), ("json", "{"),
        ("json", '{"mcpServers": null}'), ("json", "{} {}"), ("json", "{'a': 1}"),
        ("json", '{"a": NaN}'), ("json", '{"a": 1,,}'), ("json", "{,}"), ("json", '{"a": 01}'),
        ("json", "{" * 10_000),
        ("toml", "a = 1\na = 2\n"), ("toml", "mcp_servers = 1\n"), ("toml", "[[mcp_servers]]\n"),
        ("toml", "[a\n"), ("toml", "mcp_servers = { x = { command = 'y' } }\n"),
        ("toml", "[mcp_servers.rootsd]\n"), ("toml", "a = \r 1"),
    ],
)  # fmt: skip
def test_an_unsupported_text_is_refused(name: str, text: str) -> None:
    language = FORMATS[name]
    keys = ("mcpServers",) if name == "json" else ("mcp_servers",)
    with pytest.raises(NotEditable):
        language.insert(text, keys, "rootsd", OURS)


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "\n", " \t\n", "// only\n", "// only", "/* c */\r\n"]
)
def test_a_file_without_values_gets_an_object_and_loses_it_again(text: str) -> None:
    language = JsonFormat()
    after, made = language.insert(text, ("mcpServers",), "rootsd", OURS)
    assert language.values(after) == {"mcpServers": {"rootsd": OURS}}
    assert after.startswith(text)
    assert language.remove(after, ("mcpServers", "rootsd"), made).rstrip("\r\n") == text.rstrip(
        "\r\n"
    )


def test_comments_of_neighbours_stay_at_their_lines() -> None:
    text = '{\n  "mcpServers": { // mine\n    "x": {} // why x\n  } // end\n}\n'
    after, _ = JsonFormat().insert(text, ("mcpServers",), "rootsd", OURS)
    assert '"x": {}, // why x\n    "rootsd": {\n      "command"' in after
    toml = "# top\n[a]\nb = 1 # why b\n\n# about c\n[c]\n"
    after, made = TomlFormat().insert(toml, ("mcp_servers",), "rootsd", OURS)
    assert after.startswith(toml)
    later = after + "\n# about d\n[d]\nx = 1\n"
    left = TomlFormat().remove(later, ("mcp_servers", "rootsd"), made)
    assert left == toml + "\n# about d\n[d]\nx = 1\n"
