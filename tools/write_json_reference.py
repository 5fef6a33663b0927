"""Write docs/reference/json.md and protocol.md from the types of rootsd/1: `make reference`.

A test compares the files with what `json_page` and `protocol_page` return now. Others compare what
commands print, and what a daemon answers, with the same types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from inspect import cleandoc
from itertools import groupby
from pathlib import Path

import msgspec
from attribute_docs import bases_of, own_attribute_docs
from msgspec import NODEFAULT, inspect
from msgspec.structs import fields
from wire_types import Object, command_outputs, json_objects, key_descriptions

from rootsd.cli.text.render import CommandOutput, ErrorOutput, ErrorOutputItem
from rootsd.wire.feed import CHANGE_METHOD
from rootsd.wire.follow import FeedChange
from rootsd.wire.guard import ErrorDetails
from rootsd.wire.hello import (
    HELLO_METHOD,
    MOVE_METHOD,
    Hello,
    HelloResult,
    MoveResult,
    WorkFolders,
)
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import WORKING_METHOD, ControlRequest, EmptyResult
from rootsd.wire.scans import ScanProgressItem

FILE = Path(__file__).parent.parent / "docs" / "reference" / "json.md"
PROTOCOL_FILE = FILE.with_name("protocol.md")

# ruff: noqa: E501 - the introductions show output as it is
_INTRODUCTION = """\
# JSON

With `--json`, a command prints one object of the format `rootsd/1` on one line, and no messages
for people. [Command line](cli.md) describes the commands.

This page is generated from the types in the code. The same types are in
[rootsd-1.schema.json](../schema/rootsd-1.schema.json), a JSON Schema for programs that check
messages or generate code. There, what `rootsd parent add` prints is under `parent-add.output` in
`$defs`, and the other headings of this page are names in `$defs`, too. An installed rootsd has the
file in `rootsd/share/schema`.

## An example

```console
$ rootsd check ~/src/api --json
{"schema": "rootsd/1", "command": "check", "revision": null, "items": [{"path": "/home/you/src/api", "published": true, "verdict": "approved", "root": "api", "access": "read-write"}], "warnings": []}
$ rootsd check ~/src/tool --json >/dev/null; echo $?
3
$ rootsd show nothing --json
{"schema": "rootsd/1", "command": "show", "error": {"code": "nothing-matched", "message": "no project is called nothing", "remedy": "rootsd ls"}}
$ rootsd ls --json | python3 -c 'import json, sys; print(*(p["name"] for p in json.load(sys.stdin)["items"]))'
api tool zero
```

## What you can rely on

* `schema` names the format. As long as it is `rootsd/1`, no key is renamed, is removed, or changes
  its meaning.
* A newer version may add keys, and values where this page says "one of". Ignore the keys that you
  do not know.
* Commands also have an [exit status](cli.md#exit-statuses).
* The object is one line of ASCII. Only `rootsd log --follow` prints several, one for each event.
* Times are RFC 3339 in UTC, such as `2026-11-25T10:00:00Z`.
* Paths are absolute. A path that is not UTF-8 is null, and `path_b64` has its bytes. In other
  texts, such bytes are lone surrogates, as in Python.
* Names, notes, and facts from the files of a project may have any characters. Do not print them on
  a terminal as they are.

"""

_PROTOCOL_INTRODUCTION = """\
# Control protocol

`rootsd` talks to the daemon on the control socket, `/run/user/UID/rootsd/ctl/control.sock`. It
takes one JSON-RPC 2.0 request per line, and sends one response per line. Most programs run the
[command line](cli.md) with `--json` instead. MCP clients use the other socket, `mcp.sock`.

This page is generated from the types in the code. The same types are in
[rootsd-1.schema.json](../schema/rootsd-1.schema.json). [JSON](json.md#what-you-can-rely-on) says
what stays the same in newer versions.

* A request names its parameters. Leave out a parameter to get its default.
* A query ignores parameters that the daemon does not know. A request that decides something is
  refused with them, because without them, it might decide more than the caller wants.
* The daemon finds out which process sent a request. The guard decides whether that process may
  give orders.
* A connection may send several requests, one after the other. The daemon sends the notifications
  of a request before its response, except for `follow`.
* A request that may mean many folders can take minutes. Until it answers, the daemon sends `working`
  every 15 seconds. If a minute passes without a line, the daemon is stuck.

## An example

```console
$ echo '{"jsonrpc": "2.0", "id": 1, "method": "check", "params": {"path": "/home/you/src/api"}}' | python3 ask.py
{"jsonrpc":"2.0","id":1,"result":{"published":true,"verdict":"approved","root":"api","access":"read-write"}}
```

`ask.py` connects, sends a line, and prints the answer:

```python
import os
import socket
import sys

folder = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
with socket.socket(socket.AF_UNIX) as control:
    control.connect(f"{folder}/rootsd/ctl/control.sock")
    control.sendall(sys.stdin.buffer.readline())
    print(control.makefile().readline(), end="")
```

"""

_NOTIFICATIONS = {
    WORKING_METHOD: EmptyResult,
    "progress": ScanProgressItem,
    CHANGE_METHOD: FeedChange,
}
_METHODS = {each.__name__: each.method for each in REQUEST_TYPES}
_NAME = re.compile(r"`([A-Z]\w+)`")
_ENVELOPE = tuple(CommandOutput.__annotations__)
_ALONE = """
`parent` and `rule` alone print what they print with `ls`. `config` alone prints what `config show`
prints, and `sync` alone what `sync status` prints. `init --dry-run` prints no object, and
`config edit` prints none if the text is the same."""
_NO_OBJECT = "These never print an object: "


def json_page() -> str:
    """Return the text of docs/reference/json.md."""
    return _page(_INTRODUCTION, _json_lines())


def protocol_page() -> str:
    """Return the text of docs/reference/protocol.md."""
    return _page(_PROTOCOL_INTRODUCTION, _protocol_lines())


def _page(introduction: str, lines: Iterable[str]) -> str:
    return introduction + "\n".join(lines).strip("\n") + "\n"


def _json_lines() -> Iterator[str]:
    outputs = {command: types for command, types in command_outputs().items() if types}
    results = dict.fromkeys(each for types in outputs.values() for each in types)
    objects = _objects_of_commands()
    yield "## All commands\n\nEach object has these keys, and those of the command between them."
    yield from _table(objects[CommandOutput.__name__], ())
    yield "\nIf the command fails, it prints this object instead."
    for each in (ErrorOutput, ErrorOutputItem):
        yield from _object(objects[each.__name__])
    yield "\n## What each command prints\n"
    for types, commands in groupby(outputs, key=outputs.__getitem__):
        links = " or ".join(f"[{each.__name__}](#{each.__name__.lower()})" for each in types)
        yield f"* {', '.join(map(_command_link, commands))}: {links}"
    yield _ALONE
    without = (command for command, types in command_outputs().items() if not types)
    yield f"\n{_NO_OBJECT}{', '.join(map(_command_link, without))}."
    yield "\n## Results"
    for result in results:
        by = (command for command, types in outputs.items() if result in types)
        yield f"\n### {result.__name__}\n\nPrinted by {', '.join(map(_command_link, by))}."
        yield cleandoc(result.__doc__ or "")
        yield from _keys_of_result(objects[result.__name__], results)
    shown = {CommandOutput, ErrorOutput, ErrorOutputItem, *results}
    yield "\n## Objects in results"
    for name in sorted(objects):
        if objects[name].cls not in shown:
            yield from _object(objects[name])


def _keys_of_result(one: Object, results: Iterable[type]) -> Iterator[str]:
    """Yield a table of the keys, or the other results whose keys the result has together."""
    bases = [base for base in bases_of(one.cls) if base in results]
    if bases:
        links = " and ".join(f"[{base.__name__}](#{base.__name__.lower()})" for base in bases)
        yield f"It has all keys of {links}."
    else:
        yield from _table(one, _ENVELOPE[:3] + _ENVELOPE[4:])


def _objects_of_commands() -> dict[str, Object]:
    results = (each for types in command_outputs().values() for each in types)
    return json_objects((CommandOutput, ErrorOutput, *results))


def _protocol_lines() -> Iterator[str]:
    elsewhere = _objects_of_commands()
    yield "## Requests"
    for request in sorted(REQUEST_TYPES, key=lambda each: each.method):
        yield from _request(request, elsewhere)
    yield "\n## Notifications\n\nThe daemon sends these.\n"
    for method, params in _NOTIFICATIONS.items():
        yield f"* `{method}`: {_words(msgspec.inspect.type_info(params), elsewhere)}"
    yield "\n## Errors\n"
    yield "An error has a `code` and a `message`, as in JSON-RPC, and this object as its `data`."
    errors = json_objects((ErrorDetails,))
    for each in errors.values():
        yield from _object(each, elsewhere=elsewhere)
    yield "\n## The hello on mcp.sock\n"
    yield cleandoc(f"""
        `mcp.sock` speaks MCP. Before its first message, a client may send `{HELLO_METHOD}`, which
        names the client and narrows its roots. A hello with unknown keys is refused.
        When its session works in other folders, it sends them with `{MOVE_METHOD}`. The answer
        says which of them are in no root. The session moves only if the first one is in a root.""")
    hello = json_objects((Hello, HelloResult, WorkFolders, MoveResult))
    for each in hello.values():
        yield from _object(each, elsewhere=elsewhere)
    results = (each.result for each in REQUEST_TYPES)
    parameters = (field.type for each in REQUEST_TYPES for field in fields(each))
    objects = json_objects((*results, *_NOTIFICATIONS.values(), *parameters))
    yield "\n## Objects in messages"
    for name in sorted(objects.keys() - elsewhere.keys() - errors.keys() - hello.keys()):
        yield from _object(objects[name], elsewhere=elsewhere)


def _request(request: type[ControlRequest], elsewhere: Mapping[str, Object]) -> Iterator[str]:
    yield f"\n### `{request.method}`\n"
    result = _words(msgspec.inspect.type_info(request.result), elsewhere)
    about = cleandoc(request.__doc__ or "").replace(f"`{request.result.__name__}`", result)
    yield _NAME.sub(lambda found: _named(found[1], elsewhere), about)
    if not fields(request):
        return
    yield "\n| Parameter | Type | Default |\n|---|---|---|"
    for field in fields(request):
        kind = _words(msgspec.inspect.type_info(field.type), elsewhere)
        yield f"| `{field.name}` | {kind} | {_default(field.default)} |"


def _named(name: str, elsewhere: Mapping[str, Object]) -> str:
    """Return what stands for the name of a class: the method of a request, a link, or the name."""
    if name in _METHODS:
        return f"`{_METHODS[name]}`"
    results = (each.result for each in REQUEST_TYPES)
    owner = json_objects((*results, *_NOTIFICATIONS.values())).get(name)
    return _words(owner, elsewhere) if owner is not None else f"`{name}`"


def _default(value: object) -> str:
    match value:
        case _ if value is NODEFAULT:
            return "required"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Enum():
            return f"`{value.value}`"
        case ():
            return "`[]`"
        case str():
            return f'`"{value}"`'
        case _:
            return f"`{value}`"


def _object(one: Object, elsewhere: Mapping[str, Object] | None = None) -> Iterator[str]:
    """Yield the section of an object: its docstring and its keys.

    A class with several bases has a table for each of them.
    """
    yield f"\n### {one.cls.__name__}\n"
    yield cleandoc(one.cls.__doc__ or "")
    bases = bases_of(one.cls)
    if len(bases) <= 1:
        yield from _table(one, (), elsewhere=elsewhere)
        return
    if own := own_attribute_docs(one.cls):
        yield from _table(one, (), own, elsewhere)
    for base in bases:
        yield f"\n{cleandoc(base.__doc__ or '')}"
        yield from _table(one, (), key_descriptions(base), elsewhere)


def _table(
    one: Object,
    left_out: Sequence[str],
    only: Iterable[str] | None = None,
    elsewhere: Mapping[str, Object] | None = None,
) -> Iterator[str]:
    """Yield a table of the keys of an object, or of some of them, in the order of the source."""
    by_name = {field.encode_name: field for field in one.fields}
    yield "\n| Key | Type | Meaning |\n|---|---|---|"
    for key, meaning in key_descriptions(one.cls).items():
        if key not in left_out and (only is None or key in only):
            field = by_name[key]
            kind = _words(field.type, elsewhere or {})
            is_there = field.required or isinstance(one, inspect.NamedTupleType)
            optional = "" if is_there else ", optional"
            yield f"| `{key}` | {kind}{optional} | {meaning} |"


def _words(kind: inspect.Type, elsewhere: Mapping[str, Object]) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _words(inner, elsewhere)
        case inspect.TypedDictType(cls=cls) | inspect.NamedTupleType(cls=cls):
            page = FILE.name if cls.__name__ in elsewhere else ""
            return f"[{cls.__name__}]({page}#{cls.__name__.lower()})"
        case inspect.CollectionType(item_type=item):
            return f"list of {_plural(_words(item, elsewhere))}"
        case inspect.UnionType(types=types):
            null_last = sorted(types, key=lambda each: isinstance(each, inspect.NoneType))
            return " or ".join(_words(each, elsewhere) for each in null_last)
        case inspect.EnumType(cls=members):
            return "one of " + ", ".join(f"`{member.value}`" for member in members)
        case inspect.LiteralType(values=values):
            return " or ".join(_literal(value) for value in values)
        case inspect.DictType(value_type=inspect.AnyType()):
            return "object"
        case inspect.DictType(value_type=value):
            return f"object with {_plural(_words(value, elsewhere))}"
        case _:
            return _PLAIN_WORDS[type(kind)]


def _literal(value: object) -> str:
    return _default(value) if isinstance(value, bool | str) else str(value)


def _plural(words: str) -> str:
    return f"{words}s" if words in ("string", "integer", "object") else words


def _command_link(command: str) -> str:
    return f"[`{command}`](cli.md#rootsd-{command.replace(' ', '-')})"


_PLAIN_WORDS: Mapping[type[inspect.Type], str] = {
    inspect.BytesType: "string",
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.AnyType: "any value",
}


def main() -> None:
    """Write both pages."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json_page(), encoding="utf-8")
    PROTOCOL_FILE.write_text(protocol_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
