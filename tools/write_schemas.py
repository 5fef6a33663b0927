"""Write the JSON Schemas in docs/schema/ from the types in the code: `make reference`.

Each schema is made by one function of `SCHEMAS`. A test compares the files with what these
functions return now.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.inspect import NamedTupleType
from wire_types import command_outputs, json_objects, key_descriptions

from rootsd.cli.text.render import CommandOutput, ErrorOutput
from rootsd.config.policy_schema import PolicyTables
from rootsd.config.schema import ConfigTables
from rootsd.wire.feed import CHANGE_METHOD
from rootsd.wire.follow import FeedChange
from rootsd.wire.guard import CHALLENGE_ANSWER, ErrorDetails
from rootsd.wire.hello import (
    HELLO_METHOD,
    MOVE_METHOD,
    PROPOSED_FOLDER_METHOD,
    REPORTED_ROOTS_METHOD,
    Hello,
    HelloResult,
    MoveResult,
    ProposedFolderParams,
    WorkFolders,
)
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.reported_roots import ReportedRoots
from rootsd.wire.request import WORKING_METHOD, EmptyResult
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.scans import ScanProgressItem

FOLDER = Path(__file__).parent.parent / "docs" / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
JsonSchema = dict[str, Any]

_ABOUT = """\
The messages of rootsd's own protocol, and the output of its commands with --json.

control.sock takes one JSON-RPC 2.0 request per line. rootsd/hello, rootsd/move, and the
notifications rootsd/told and rootsd/proposed go to mcp.sock. The parameters of METHOD are in
$defs under METHOD.params, and its result under METHOD.result, with - in place of /. What a command
such as `parent add` prints with --json is under parent-add.output.

Newer versions add keys to results. A query ignores keys that the daemon does not know. A command
that decides something, and rootsd/hello, are refused with them. Strings may have lone surrogates,
which stand for bytes of a path that are not UTF-8. Times are RFC 3339 in UTC."""

_ABOUT_CONFIG = """\
The configuration of rootsd. `rootsd config path` prints where the file is. `rootsd config check`
also checks what this schema cannot: whether each folder can be a parent."""

_ABOUT_POLICY = """\
The policy of a machine, /etc/rootsd/policy.toml, which only root may write. `rootsd doctor` also
checks what this schema cannot: the owner and the mode of the file."""

_RESULTS: Mapping[str, type] = {
    **{request_type.method: request_type.result for request_type in REQUEST_TYPES},
    HELLO_METHOD: HelloResult,
    MOVE_METHOD: MoveResult,
}
_REQUESTS: Mapping[str, type] = {
    **{request_type.method: request_type for request_type in REQUEST_TYPES},
    HELLO_METHOD: Hello,
    MOVE_METHOD: WorkFolders,
}
_NOTIFICATIONS: Mapping[str, type] = {
    WORKING_METHOD: EmptyResult,
    "progress": ScanProgressItem,
    CHANGE_METHOD: FeedChange,
    REPORTED_ROOTS_METHOD: ReportedRoots,
    PROPOSED_FOLDER_METHOD: ProposedFolderParams,
}
_COMMON = CommandOutput.__annotations__.keys() - {"items"}
_ID = {"type": ["integer", "string"]}


def control_schema() -> JsonSchema:
    """Return the schema of `rootsd/1`. Its root matches each message and each printed object."""
    printed = (CommandOutput, ErrorOutput)
    types = (*_REQUESTS.values(), *_RESULTS.values(), *_NOTIFICATIONS.values(), ErrorDetails)
    outputs = command_outputs()
    results = (each for some in outputs.values() for each in some)
    definitions = _definitions((*types, *printed, *results))
    for record in (Hello, RequestedScope):
        definitions[record.__name__] |= {"additionalProperties": False, "required": []}
    definitions[Hello.__name__]["required"] = ["version"]
    params = {**_REQUESTS, **_NOTIFICATIONS}
    definitions |= {f"{_key(name)}.params": _ref(of.__name__) for name, of in params.items()}
    definitions |= {f"{_key(name)}.result": _ref(of.__name__) for name, of in _RESULTS.items()}
    definitions |= {
        f"{command.replace(' ', '-')}.output": _command_output(some)
        for command, some in outputs.items()
        if some
    }
    definitions |= {
        f"{of.__name__}.printed": _printed(definitions[of.__name__])
        for some in outputs.values()
        for of in some
        if not _COMMON.isdisjoint(of.__annotations__)
    }
    messages = [
        *(_request(method, definitions[of.__name__]) for method, of in _REQUESTS.items()),
        *(_notification(method) for method in _NOTIFICATIONS),
        _response("result", {"type": "object"}),
        _response("error", _error()),
        *(_ref(of.__name__) for of in printed),
    ]
    return {
        "$schema": DIALECT,
        "$id": "rootsd-1.schema.json",
        "title": "rootsd/1",
        "description": _ABOUT,
        "anyOf": messages,
        "$defs": dict(sorted(definitions.items())),
    }


def config_schema() -> JsonSchema:
    """Return the schema of `config.toml`.

    It has no `$ref`: editors often ignore a description or a default beside one. It has no `$id`:
    Taplo rejects a schema with a relative one, and no absolute one is known.
    """
    definitions = _definitions((ConfigTables,))
    whole = _inlined(definitions[ConfigTables.__name__], definitions)
    return {
        "$schema": DIALECT,
        "title": "config.toml of rootsd",
        **whole,
        "description": _ABOUT_CONFIG,
    }


def policy_schema() -> JsonSchema:
    """Return the schema of `policy.toml`, in the form of `config_schema`."""
    definitions = _definitions((PolicyTables,))
    whole = _inlined(definitions[PolicyTables.__name__], definitions)
    return {
        "$schema": DIALECT,
        "title": "policy.toml of rootsd",
        **whole,
        "description": _ABOUT_POLICY,
    }


CONFIG_SCHEMA = "config.schema.json"
SCHEMAS: Mapping[str, Callable[[], JsonSchema]] = {
    "rootsd-1.schema.json": control_schema,
    CONFIG_SCHEMA: config_schema,
    "policy.schema.json": policy_schema,
}


def text_of(schema: JsonSchema) -> str:
    """Return the text of the file of `schema`."""
    return json.dumps(schema, indent=2) + "\n"


def _definitions(types: Iterable[type]) -> dict[str, JsonSchema]:
    unique = tuple(dict.fromkeys(types))
    _, definitions = msgspec.json.schema_components(unique, ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition["description"] = inspect.cleandoc(definition["description"])
    for name, owner in json_objects(unique).items():
        if isinstance(owner, NamedTupleType):
            definitions[name] = _of_record(owner, definitions[name])
        descriptions = key_descriptions(owner.cls)
        for key, schema in definitions[name]["properties"].items():
            schema["description"] = descriptions[key]
    return definitions


def _of_record(owner: NamedTupleType, array: JsonSchema) -> JsonSchema:
    """Return the schema of the object of a record. To msgspec, a record is an array."""
    names = [field.name for field in owner.fields]
    properties = dict(zip(names, array["prefixItems"], strict=True))
    for each in properties.values():
        for text in (each, *(each.get("anyOf", [])), each.get("items", {})):
            text.pop("contentEncoding", None)
        each.pop("default", None)  # the object has all keys
    kept = {key: array[key] for key in ("title", "description")}
    return {**kept, "type": "object", "properties": properties, "required": names}


def _inlined(schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return `schema` with each `$ref` replaced by its definition, without generated titles.

    A table has no default: an editor would complete it as one long line.
    """
    own = {key: value for key, value in schema.items() if key not in ("$ref", "title")}
    if "$ref" in schema:
        own = {**_inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions), **own}
    if own.get("type") == "object":
        own.pop("default", None)
        properties = own["properties"].items()
        own["properties"] = {name: _inlined(each, definitions) for name, each in properties}
    if "items" in own:
        own["items"] = _inlined(own["items"], definitions)
    return own


def _command_output(types: Iterable[type]) -> JsonSchema:
    """Return the schema of an object with the keys of all commands and those of one of `types`."""
    printed = [
        _ref(of.__name__ if _COMMON.isdisjoint(of.__annotations__) else f"{of.__name__}.printed")
        for of in types
    ]
    return {"allOf": [_ref(CommandOutput.__name__), {"anyOf": printed}]}


def _printed(result: JsonSchema) -> JsonSchema:
    """Return the schema of the keys that a command prints of a result, besides those of all.

    `revision` is one of these, because it is null without a daemon.
    """
    return {
        **result,
        "properties": {k: v for k, v in result["properties"].items() if k not in _COMMON},
        "required": [key for key in result.get("required", ()) if key not in _COMMON],
    }


def _key(method: str) -> str:
    return method.replace("/", "-")


def _ref(name: str) -> JsonSchema:
    return {"$ref": f"#/$defs/{name}"}


def _request(method: str, params: JsonSchema) -> JsonSchema:
    of_message = _message(method)
    if params["title"] != Hello.__name__:
        of_message["params"]["properties"] = {CHALLENGE_ANSWER: {"type": "string"}}
    required = ["jsonrpc", "id", "method", *(["params"] if params.get("required") else [])]
    return _object(f"request {method}", {"id": _ID, **of_message}, required)


def _notification(method: str) -> JsonSchema:
    required = ["jsonrpc", "method", "params"]
    return _object(f"notification {method}", _message(method), required)


def _message(method: str) -> dict[str, Any]:
    params = _ref(f"{_key(method)}.params")
    return {"jsonrpc": {"const": "2.0"}, "method": {"const": method}, "params": params}


def _response(key: str, value: JsonSchema) -> JsonSchema:
    id_ = {"type": [*_ID["type"], "null"]}
    properties = {"jsonrpc": {"const": "2.0"}, "id": id_, key: value}
    return _object(f"response with {key}", properties, list(properties))


def _error() -> JsonSchema:
    reason = _object("data of mcp.sock", {"reason": {"type": "string"}}, ["reason"])
    properties = {
        "code": {"type": "integer"},
        "message": {"type": "string"},
        "data": {"anyOf": [_ref(ErrorDetails.__name__), reason]},
    }
    return _object("error", properties, ["code", "message"])


def _object(title: str, properties: JsonSchema, required: list[str]) -> JsonSchema:
    return {"title": title, "type": "object", "properties": properties, "required": required}


def main() -> None:
    """Write each schema into its file."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in SCHEMAS.items():
        (FOLDER / name).write_text(text_of(make()), encoding="utf-8")


if __name__ == "__main__":
    main()
