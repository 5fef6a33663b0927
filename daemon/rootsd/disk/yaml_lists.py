"""Read one list of strings at the top of a YAML file, such as the `packages` of pnpm.

A parser for all of YAML is large, and a hostile file can make it slow. So this reads a subset, in
linear time: each line is a key, an item, or both, with plain and quoted strings and short lists in
brackets. It refuses a file with any other line: anchors, tags, and values of several lines. From a
valid text, it never returns another list than a YAML parser does. Source: YAML 1.2, chapters 7
and 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


class UnreadYaml(ValueError):
    """The text is not in the subset that is read here."""


_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_OTHER_BREAKS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
# A plain string starts with none of the indicators, and `-`, `?`, and `:` need a sign after them.
_PLAIN = (
    r"""(?:[^\s,\[\]{}#&*!|>'"%@`?:-]|[?:-](?=[^\s,\[\]{}'"]))"""
    r"""(?:[^\s,\[\]{}'":#]|:(?=[^\s,\[\]{}])|(?<=\S)#|[ ]+(?=[^\s,\[\]{}'":#]))*"""
)
_STRING = rf"""(?:'(?:[^']|'')*'|"[^"\\]*"|{_PLAIN})"""
_LIST = rf"\[[ ]*(?:{_STRING}[ ]*(?:,[ ]*{_STRING}[ ]*)*)?\]"
_LINE = re.compile(
    rf"(?!(?:---|\.\.\.) )(?P<indent> *)(?P<dashes>(?:-[ ]+(?=\S))*)"
    rf"(?:(?P<key>{_STRING}):(?:[ ]+(?=\S)|$))?"
    rf"(?P<value>{_STRING}|{_LIST}|\{{\}}|)(?:[ \t]*(?<=[ \t])#.*)?"
)
_EACH_STRING = re.compile(_STRING)


def yaml_list(text: str, key: str) -> list[str]:
    """Return the strings of the list `key` at the top; none if it is absent or no list.

    Raises UnreadYaml.
    """
    text = text.removeprefix("\ufeff")
    if _OTHER_BREAKS.search(text):
        raise UnreadYaml("control characters")
    lines = list(_lines(_LINE_BREAK.split(text)))
    starts = [number for number, line in enumerate(lines) if _is_key(line, key)]
    if len(starts) > 1:
        raise UnreadYaml("a key is there twice")
    if not starts:
        return []
    value = lines[starts[0]]["value"]
    if value.startswith("["):
        return [_unquote(each) for each in _EACH_STRING.findall(value[1:-1])]
    return [] if value else list(_items(lines[starts[0] + 1 :]))


def _is_key(line: re.Match[str], key: str) -> bool:
    """Return whether this is the line of a key at the top."""
    is_at_top = not line["indent"] and not line["dashes"]
    return is_at_top and line["key"] is not None and _unquote(line["key"]) == key


def _lines(lines: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the lines with a key or an item. Raises UnreadYaml."""
    full = [line.rstrip(" \t") for line in lines]
    full = [line for line in full if line and not line.lstrip(" \t").startswith("#")]
    for line in full[1:] if full[:1] == ["---"] else full:
        found = _LINE.fullmatch(line)
        if found is None or not (found["dashes"] or found["key"]):
            raise UnreadYaml("a line of another form")
        yield found


def _items(lines: Iterable[re.Match[str]]) -> Iterator[str]:
    """Yield the strings of the block list that begins with the first line. Raises UnreadYaml."""
    indent = None
    for line in lines:
        if not line["dashes"] and (indent is None or not line["indent"]):
            return  # the next key, or a mapping and no list
        indent = line["indent"] if indent is None else indent
        is_item = line["indent"] == indent and line["dashes"].rstrip() == "-" and not line["key"]
        if not is_item or _EACH_STRING.fullmatch(line["value"]) is None:
            raise UnreadYaml("no string")
        yield _unquote(line["value"])


def _unquote(text: str) -> str:
    """Return the string that a quoted text, or a plain one, stands for."""
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return text.strip('"')
