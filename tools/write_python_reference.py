"""Write docs/reference/python.md from the docstrings of `rootsd.client`: `make reference`.

A test compares the file with what `page` returns now, and runs each `python` block of it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from attribute_docs import own_attribute_docs

from rootsd import client

FILE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"

# Blocks with the label `py` are signatures; those with the label `python` run.
_WIDTH = 88

_INTRODUCTION = """\
# Python

`rootsd.client` is for authors of MCP clients and servers. It asks the daemon for the approved
roots. It cannot decide anything. It comes with rootsd, and needs Python 3.11 or newer.

This page is generated from the docstrings of the module. Other languages connect to the MCP socket
and send `roots/list`: [examples/](../../examples/) has a client in Node, and a client and a server
in Python. To decide, or to list pending projects, run the [command line](cli.md) with `--json`;
[JSON](json.md) describes what it prints.

{overview}

Newer versions may add functions, arguments, and fields at the end of `Root`.

## Examples

Print the roots with the tag `work`:

```python
from rootsd.client import list_roots

for root in list_roots(only=["tag:work"], client="my editor"):
    print(root.name, root.path, root.access)
```

Follow all changes, until Ctrl-C:

```python
import asyncio

from rootsd.client import watch_roots


async def main() -> None:
    async for roots in watch_roots(client="my indexer"):
        print("approved:", *(root.name for root in roots), flush=True)


asyncio.run(main())
```

Read a file for a model only if it is in an approved root:

```python
import os
import sys

from rootsd.client import RootsdError, is_path_allowed


def read(path: str) -> str:
    real = os.path.realpath(path)
    try:
        if not is_path_allowed(real):
            raise PermissionError(f"{path} is not in a folder that the user approved")
    except RootsdError as error:
        raise PermissionError(f"{error.message}; try: {error.remedy}") from error
    with open(os.open(real, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
        return file.read()


print(read(sys.argv[1]))
```

Answer `roots/list` of a server. This needs the package `mcp`, which rootsd installs, too:

```python
import asyncio
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from rootsd.client import list_roots_callback


async def main(command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with Client(server, list_roots_callback=list_roots_callback) as session:
        print("connected:", session.server_info.name)


asyncio.run(main(*sys.argv[1:]))
```
"""


def page() -> str:
    """Return the text of docs/reference/python.md."""
    _, *overview, _ = cleandoc(client.__doc__ or "").split("\n\n")
    introduction = _INTRODUCTION.replace("{overview}", "\n\n".join(overview))
    return introduction + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    public = [getattr(client, name) for name in client.__all__]
    functions = [each for each in public if not isinstance(each, type)]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, Exception)]
    yield "\n## Functions"
    for function in sorted(functions, key=lambda each: each.__code__.co_firstlineno):
        yield f"\n### `{function.__name__}`\n"
        yield f"```py\n{_signature(function)}\n```\n"
        yield inspect.getdoc(function) or ""
    yield "\n## Classes"
    for each in public:
        if isinstance(each, type) and each not in errors:
            yield from _class(each)
    yield "\n## Errors"
    for error in sorted(errors, key=lambda each: len(each.__mro__)):
        yield from _class(error)


def _class(owner: type) -> Iterator[str]:
    _, base, *_ = owner.__mro__
    kind = f", a kind of `{base.__name__}`" if base is not object else ""
    yield f"\n### `{owner.__name__}`\n"
    yield (inspect.getdoc(owner) or "").rstrip(".") + f"{kind}.\n"
    yield from (f"* `{name}`: {' '.join(doc.split())}" for name, doc in _fields(owner))


def _fields(owner: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, with their types if it declares them."""
    types: dict[str, str] = vars(owner).get("__annotations__", {})
    for name, doc in own_attribute_docs(owner).items():
        if doc:
            yield f"{name}: {types[name]}" if name in types else name, doc


def _signature(function: object) -> str:
    """Return the first line of a function as its module has it, on several lines if it is long."""
    [source] = ast.parse(inspect.getsource(function)).body  # type: ignore[arg-type]
    assert isinstance(source, ast.FunctionDef | ast.AsyncFunctionDef)
    start = "async def" if isinstance(source, ast.AsyncFunctionDef) else "def"
    result = ast.unparse(source.returns) if source.returns else "None"
    arguments = re.sub(r"(?<=[\w\])])=(?=\S)", " = ", ast.unparse(source.args))
    line = f"{start} {source.name}({arguments}) -> {result}"
    if len(line) <= _WIDTH:
        return line
    return f"{start} {source.name}(\n    {arguments}\n) -> {result}"


def main() -> None:
    """Write the page."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
