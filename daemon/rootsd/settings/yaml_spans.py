"""Insert values into YAML text, replace them, and remove them.

ruamel.yaml finds the positions of values. An insertion writes whole lines directly below the key
of the container, and a removal deletes whole lines. So every other byte stays, and comments stay
above the values that they belong to. Containers in flow style, unless they are empty, and texts
with aliases, are refused. As in the other formats, each edit parses its own result.

`keys` lead through mappings by their keys, and through sequences of mappings by the member `name`
of each item. The raw text of a sequence in block style is all its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from rootsd.core.parsing import Unparsable, check_levels
from rootsd.settings.errors import NotEditable

Keys = tuple[str, ...]

MAX_CHARACTERS = 1 << 20
"""The largest text. ruamel.yaml reads about 100 kB in a second."""
_BOM = "\ufeff"
_STEP = "  "
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_ALIAS = re.compile(r"(?:^|[\s,\[{:-])\*[^\s*]", re.MULTILINE)
_DEEP = re.compile(r"(?:[\[{][\s-]*){65}")  # ruamel.yaml takes the square of the levels
_MARKER = re.compile(r"^---[^\n]*\n", re.MULTILINE)
_COLON = re.compile(r"[ \t]*:")
_EMPTY = re.compile(r"[ \t]*(?:\[\]|\{\})(?=[ \t]*(?:[\r\n]|$|[ \t]#))")
_COMMA = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*,")
_KEY = "x: "
_REST = re.compile(r"[ \t]*(?:#[^\r\n]*)?(\r?\n|$)")


def parse(text: str) -> dict[str, Any]:
    """Return the values of `text`, which is one document or empty. Raises NotEditable."""
    if len(text) > MAX_CHARACTERS:
        raise NotEditable("it is too large")
    body = _body(text)
    if _DEEP.search(body):
        raise NotEditable("it is nested too deeply")
    try:
        has_alias = _ALIAS.search(body) is not None and _has_alias(body)
        value = None if has_alias else _yaml("safe").load(body)
        check_levels(value)
    except Unparsable as error:
        raise NotEditable(str(error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotEditable(f"it is not YAML: {_first_line(error)}") from error
    if has_alias:
        raise NotEditable("it has aliases")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotEditable("the file is not a mapping")
    return value


def insert_member(text: str, keys: Keys, name: str, value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return `text` with `value` as the first member `name` of the mapping at `keys`.

    Also returns whether the mapping is new. Raises NotEditable.
    """
    expected = deepcopy(parse(text))
    if name in _container(expected, keys, {}):
        raise NotEditable(f"{'.'.join((*keys, name))} is there already")
    target = _container(expected, keys, {})
    target[name] = dict(value)
    lines = [f"{_scalar(name)}:", *(_STEP + line for line in _lines(value))]
    return _inserted(text, keys, lines, expected)


def insert_item(text: str, keys: Keys, value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return `text` with `value` as the first item of the sequence at `keys`.

    Also returns whether the sequence is new. Raises NotEditable.
    """
    expected = deepcopy(parse(text))
    _container(expected, keys, []).insert(0, dict(value))
    first, *others = _lines(value)
    lines = [f"- {first}", *(_STEP + line for line in others)]
    return _inserted(text, keys, lines, expected)


def remove_member(text: str, keys: Keys) -> str:
    """Return `text` without the member at `keys`, if it is there. Raises NotEditable."""
    expected = deepcopy(parse(text))
    container = _found(expected, keys[:-1])
    if not isinstance(container, dict) or keys[-1] not in container:
        return text
    del container[keys[-1]]
    key, value = _member(_node_at(text, keys[:-1]), keys[-1])
    text = _cut(text, key.start_mark.index, _end(_body(text), value, key), expected)
    return text if container else _with_value(text, keys[:-1], "{}")


def raw_at(text: str, keys: Keys) -> str | None:
    """Return the text of the value at `keys`, or None if there is none. Raises NotEditable."""
    container = _found(parse(text), keys[:-1])
    if not isinstance(container, dict) or keys[-1] not in container:
        return None
    body = _body(text)
    _, value = _member(_node_at(text, keys[:-1]), keys[-1])
    start, end = _span(body, value)
    return body[start:end]


def line_at(text: str, keys: Sequence[str | int]) -> int:
    """Return the line of a member, or 1 if it is not in block style. Raises NotEditable."""
    try:
        node = _node_at(text, tuple(map(str, keys[:-1])))
        key, _ = _member(node, str(keys[-1]))
    except NotEditable:
        return 1
    return int(key.start_mark.line) + 1


def replace_at(text: str, keys: Keys, raw: str) -> str:
    """Return `text` with `raw` in place of the value at `keys`. Raises NotEditable."""
    expected = deepcopy(parse(text))
    container = _found(expected, keys[:-1])
    if not isinstance(container, dict) or keys[-1] not in container:
        raise NotEditable(f"{'.'.join(keys)} is not there")
    container[keys[-1]] = _value(raw)
    body = _body(text)
    key, value = _member(_node_at(text, keys[:-1]), keys[-1])
    start, end = _span(body, value)
    if _is_block(value) and not _is_lines(raw):
        colon = _colon(body, key) + 1
        body = f"{body[:colon]} {raw}{body[colon:start]}{body[end:]}"
    else:
        body = body[:start] + raw + body[end:]
    return _verified(_mark(text) + body, expected)


def insert_beside(text: str, keys: Keys, name: str, value: Sequence[str]) -> str:
    """Return `text` with the member `name` below the one at `keys`, in the same mapping.

    Raises NotEditable.
    """
    expected = deepcopy(parse(text))
    _found(expected, keys[:-1])[name] = list(value)
    body = _body(text)
    key, beside = _member(_node_at(text, keys[:-1]), keys[-1])
    match = _REST.match(body, _end(body, beside, key))
    if match is None:
        raise NotEditable(f"{keys[-1]} shares a line with another value")
    line = f"{' ' * int(key.start_mark.column)}{_scalar(name)}: {literal(value)}"
    at = match.end() + len(text) - len(body)
    return _verified(_with_block(text, at, [line], _newline(text)), expected)


def prepend(raw: str, items: Sequence[str]) -> str:
    """Return the text of a sequence in block style with `items` before the others.

    Raises NotEditable.
    """
    if not _is_lines(raw):
        raise NotEditable("a list of arguments has an unusual form")
    indent = raw[: raw.index("-")]
    lines = [f"{indent}- {_scalar(item)}" for item in items]
    return "".join(line + _newline(raw) for line in lines) + raw


def without_first(raw: str, count: int) -> str:
    """Return the text of a sequence without its first `count` items. Raises NotEditable."""
    value = _value(raw)
    if not isinstance(value, list) or len(value) < count:
        raise NotEditable("it is not a sequence with these items")
    body = _below_key(raw)
    items = _node_at(body, ("x",)).value
    end = _end(body, items[count - 1], None)
    if _is_lines(raw):
        left = body[end:].partition("\n")[2] if value[count:] else "[]"
    else:
        comma = _COMMA.match(body, end)
        start = items[0].start_mark.index
        left = body[len(_KEY) : start] + body[comma.end() if comma else end :]
    if _value(left) != value[count:]:
        raise NotEditable("the edit would change other values")
    return left


def literal(value: str | Sequence[str]) -> str:
    """Return a string, or strings as a sequence in flow style, as YAML."""
    if isinstance(value, str):
        return _scalar(value)
    return f"[{', '.join(map(_scalar, value))}]"


def remove_item(text: str, keys: Keys, name: str) -> str:
    """Return `text` without the items named `name` of the sequence at `keys`.

    Raises NotEditable.
    """
    while True:
        expected = deepcopy(parse(text))
        items = _found(expected, keys)
        at = next((n for n, item in enumerate(items or ()) if _name_of(item) == name), None)
        if at is None or not isinstance(items, list):
            return text
        del items[at]
        node = _node_at(text, keys)
        item = node.value[at]
        text = _cut(text, item.start_mark.index, _end(_body(text), item, None), expected)
        text = text if items else _with_value(text, keys, "[]")


def remove_empty(text: str, keys: Keys) -> str:
    """Return `text` without the key at `keys`, if it has no value. Raises NotEditable."""
    return text if _found(parse(text), keys) else remove_member(text, keys)


def _inserted(
    text: str, keys: Keys, lines: Sequence[str], expected: dict[str, Any]
) -> tuple[str, bool]:
    newline = _newline(text)
    body = _body(text)
    root = _root(body)
    if root is not None and not isinstance(root, MappingNode):
        raise NotEditable("the file is not a mapping")
    if root is None or not any(_is_named(key, keys[0]) for key, _ in root.value):
        block = [f"{_scalar(keys[0])}:", *(_STEP + line for line in lines)]
        if root is not None and root.flow_style:
            raise NotEditable("the file is in flow style")
        after = _with_block(text, len(text), block, newline)
        if root is not None and not _has_values(after, expected):
            # The text ends in `...`, or in a block scalar that a line break would extend.
            top = _after_marker(body[: root.start_mark.index]) + len(text) - len(body)
            after = _with_block(text, top, block, newline)
        return _verified(after, expected), True
    key, value = _member(root, keys[0])
    if (empty := _EMPTY.match(body, _colon(body, key) + 1)) is not None:
        without = f"{_mark(text)}{body[: empty.start()]}{body[empty.end() :]}"
        return _inserted(without, keys, lines, expected)
    indent = _indent(value, key)
    match = _REST.match(body, _colon(body, key) + 1)
    if match is None:
        raise NotEditable(f"{keys[0]} is in flow style")
    at = match.end() + len(text) - len(body)
    block = [indent + line for line in lines]
    return _verified(_with_block(text, at, block, newline), expected), False


def _with_block(text: str, at: int, lines: Sequence[str], newline: str) -> str:
    """Return `text` with whole lines at the start of a line, or at the end of the text."""
    block = newline.join(lines)
    head = text[:at].removeprefix(_BOM)
    if head and not head.endswith("\n"):
        return f"{text[:at]}{newline}{block}{text[at:]}"
    return f"{text[:at]}{block}{newline}{text[at:]}"


def _after_marker(head: str) -> int:
    """Return the position after the line `---` in `head`, or 0 if there is none."""
    found = [match.end() for match in _MARKER.finditer(head)]
    return found[-1] if found else 0


def _cut(text: str, start: int, end: int, expected: dict[str, Any]) -> str:
    """Return `text` without the lines from `start` to `end`, which count without a mark."""
    body = _body(text)
    first = body.rfind("\n", 0, start) + 1
    last = body.find("\n", end)
    lead = body[first:start].strip(" -")
    if lead or not _REST.match(body, end):
        raise NotEditable("the entry shares a line with another value")
    if last < 0:  # the last line ends without a newline, and so does the text before
        head = body[:first]
        head = head.removesuffix("\n").removesuffix("\r")
        body = head
    else:
        body = body[:first] + body[last + 1 :]
    return _verified(_mark(text) + body, expected)


def _with_value(text: str, keys: Keys, empty: str) -> str:
    """Return `text` with `empty` as the value at `keys`, which lost its last child.

    Continue refuses a whole file in which a key has no value.
    """
    if not keys:
        return text
    body = _body(text)
    key, _ = _member(_node_at(text, keys[:-1]), keys[-1])
    colon = _colon(body, key) + 1
    return _verified(f"{_mark(text)}{body[:colon]} {empty}{body[colon:]}", parse(text))


def _has_alias(body: str) -> bool:
    """Return whether a value stands for another one. A few aliases can mean a billion values."""
    return any(isinstance(event, AliasEvent) for event in _yaml("safe").parse(body))


def _yaml(kind: str) -> YAML:
    """Return a parser. YAML lets a later anchor replace one of the same name."""
    yaml = YAML(typ=kind, pure=True)
    yaml.composer.warn_double_anchors = False
    return yaml


def _body(text: str) -> str:
    return text.removeprefix(_BOM)


def _mark(text: str) -> str:
    return _BOM if text.startswith(_BOM) else ""


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


@lru_cache(maxsize=1)
def _root(body: str) -> Node | None:
    try:
        root: Node | None = _yaml("rt").compose(body)
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotEditable(f"it is not YAML: {_first_line(error)}") from error
    return root


def _node_at(text: str, keys: Keys) -> Node:
    node = _root(_body(text))
    for key in keys:
        node = _item(node, key) if isinstance(node, SequenceNode) else _member(node, key)[1]
    if node is None:
        raise NotEditable("the file is empty")
    return node


def _member(node: Node | None, name: str) -> tuple[Node, Node]:
    """Return the key and the value of a member of a mapping in block style."""
    if not isinstance(node, MappingNode) or node.flow_style:
        raise NotEditable("it is in flow style")
    for key, value in node.value:
        if _is_named(key, name):
            return key, value
    raise NotEditable(f"{name} comes from an alias")


def _item(node: SequenceNode, name: str) -> Node:
    """Return the item of a sequence in block style that has this name."""
    found = [
        item
        for item in node.value
        if isinstance(item, MappingNode)
        and any(_is_named(key, "name") and _is_named(value, name) for key, value in item.value)
    ]
    if node.flow_style or len(found) != 1:
        raise NotEditable("it is in flow style" if node.flow_style else f"{name} is there twice")
    return found[0]


def _is_named(key: Node, name: str) -> bool:
    return isinstance(key, ScalarNode) and key.value == name


def _indent(value: Node, key: Node) -> str:
    """Return the blanks before the children of a container, or before those of a new one."""
    if isinstance(value, MappingNode | SequenceNode):
        if value.flow_style or not value.value:
            raise NotEditable(f"{key.value} is in flow style")
        first = value.value[0]
        if isinstance(value, MappingNode):
            return " " * int(first[0].start_mark.column)
        return " " * int(value.start_mark.column)
    if isinstance(value, ScalarNode) and not value.value:
        return " " * int(key.start_mark.column) + _STEP
    raise NotEditable(f"{key.value} is no container")


def _colon(body: str, key: Node) -> int:
    match = _COLON.match(body, key.end_mark.index)
    if match is None:
        raise NotEditable(f"{key.value} has an unusual form")
    return match.end() - 1


def _span(body: str, value: Node) -> tuple[int, int]:
    """Return the positions of the raw text of a value."""
    if _is_block(value):
        start = body.rfind("\n", 0, value.start_mark.index) + 1
        rest = _REST.match(body, _end(body, value, None))
        if rest is not None and not body[start : value.start_mark.index].strip(" "):
            return start, rest.end()
    elif isinstance(value, SequenceNode) or (
        isinstance(value, ScalarNode) and value.style not in ("|", ">")
    ):
        return int(value.start_mark.index), int(value.end_mark.index)
    raise NotEditable("a value has an unusual form")


def _is_block(value: Node) -> bool:
    return isinstance(value, SequenceNode) and not value.flow_style


def _is_lines(raw: str) -> bool:
    """Return whether this is the raw text of a sequence in block style."""
    return raw.lstrip(" ").startswith(("- ", "-\n", "-\r"))


def _below_key(raw: str) -> str:
    """Return a raw text as the value of the key `x`."""
    return f"{_KEY}\n{raw}" if _is_lines(raw) else f"{_KEY}{raw}"


def _value(raw: str) -> Any:  # noqa: ANN401 - a YAML value
    return parse(_below_key(raw))["x"]


def _end(body: str, value: Node, key: Node | None) -> int:
    """Return the end of the last scalar in `value`, or that of the colon after the key."""
    ends = [int(node.end_mark.index) for node in _leaves(value)]
    end = max([*ends, _colon(body, key) + 1 if key is not None else 0])
    colon = _COLON.match(body, end)  # the last scalar is a key without a value
    return colon.end() if colon else end


def _leaves(node: Node) -> Iterator[Node]:
    if not isinstance(node, MappingNode | SequenceNode):
        is_quoted = isinstance(node, ScalarNode) and node.style
        if node.value or is_quoted:  # a key without a value has no position
            yield node
        return
    if node.flow_style:
        yield node
        return
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            yield from _leaves(part)


def _container(value: dict[str, Any], keys: Keys, empty: Any) -> Any:  # noqa: ANN401
    """Return the container at `keys`, made if there is none."""
    [key] = keys
    if value.get(key) is None:
        value[key] = empty
    if not isinstance(value[key], type(empty)):
        raise NotEditable(f"{key} is another kind of value")
    return value[key]


def _found(value: Any, keys: Keys) -> Any:  # noqa: ANN401
    for key in keys:
        if isinstance(value, list):
            value = next((item for item in value if _name_of(item) == key), None)
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _name_of(item: object) -> object:
    return item.get("name") if isinstance(item, dict) else None


def _lines(value: Mapping[str, Any]) -> list[str]:
    """Return the members of a mapping of scalars and lists as lines."""
    found = []
    for key, each in value.items():
        if isinstance(each, Mapping):
            found += [f"{_scalar(key)}:", *(_STEP + line for line in _lines(each))]
        elif isinstance(each, list | tuple):
            found.append(f"{_scalar(key)}: {literal(each)}")
        else:
            found.append(f"{_scalar(key)}: {_scalar(each)}")
    return found


def _scalar(value: object) -> str:
    """Return a string, a number, or a truth value as YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)  # a scalar of JSON is one of YAML


def _first_line(error: Exception) -> str:
    """Return what is wrong, and the line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return f"{problem} in line {mark.line + 1}" if mark is not None else str(problem)


def _verified(text: str, expected: dict[str, Any]) -> str:
    if not _has_values(text, expected):
        raise NotEditable("the edit would change other values")
    return text


def _has_values(text: str, expected: dict[str, Any]) -> bool:
    try:
        return _without_null(parse(text)) == _without_null(expected)
    except NotEditable:
        return False


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    """Return the values without empty containers: a key may have none, or an empty one."""
    found = {}
    for key, each in value.items():
        inner = _without_null(each) if isinstance(each, dict) else each
        if inner not in (None, {}, []):
            found[key] = inner
    return found
