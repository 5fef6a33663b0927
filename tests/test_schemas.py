"""docs/schema/ matches the code, and the messages and the output of a daemon."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec.structs import fields
from write_configuration import FILE, example_file, page
from write_schemas import FOLDER, SCHEMAS, text_of

from rootsd.config.configuration import parse_config
from rootsd.config.reference import tables
from rootsd.core.errors import BadConfig
from rootsd.core.parsing import parse_toml
from rootsd.core.record import to_json
from rootsd.net.unix_socket import address_of
from rootsd.wire import hello
from rootsd.wire.daemon import StopRequest
from rootsd.wire.hello import Hello, HelloResult, ResumeState
from rootsd.wire.jsonrpc import Message, encode
from rootsd.wire.registry import REQUEST_TYPE_BY_METHOD, REQUEST_TYPES
from rootsd.wire.request import ControlRequest, encode_request
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.scans import ScanProgressItem
from support.control_requests import REQUESTS, smallest_request
from support.golden_files import GOLDEN_FILES
from support.person import Person
from support.sample_answers import ANSWERS

PRINTS_TEXT = {"help"}  # also with --json
# The documents themselves, which a test compares with the code.
STORED = {name: json.loads((FOLDER / name).read_text()) for name in SCHEMAS}
CONTROL, CONFIG = STORED["rootsd-1.schema.json"], STORED["config.schema.json"]
DEFINITIONS = CONTROL["$defs"]


def errors(value: object, definition: str = "") -> list[str]:
    """Return why `value` does not fit a definition of the schema, or its root."""
    schema = {"$ref": f"#/$defs/{definition}", "$defs": DEFINITIONS} if definition else CONTROL
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_matches_the_code(name: str) -> None:
    assert (FOLDER / name).read_text() == text_of(SCHEMAS[name]()), "run make reference"


def test_no_other_file_is_among_the_schemas() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_json_schema(name: str) -> None:
    Draft202012Validator.check_schema(STORED[name])


def test_every_definition_has_a_title_and_a_description() -> None:
    types = [each for name, each in DEFINITIONS.items() if "." not in name]
    assert len(types) > 60
    assert [each for each in types if not (each.get("title") and each.get("description"))] == []


@given(REQUESTS)
def test_every_request_fits(request_: ControlRequest) -> None:
    method, params = encode_request(request_)
    params = json.loads(json.dumps(params))
    assert errors(params, f"{method}.params") == []
    assert errors({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("check", {}),
        ("check", {"path": 1}),
        ("decide", {"verb": "fly", "cwd": "/"}),
        ("log", {"last": 1.5}),
        ("status", {"typed": 1}),
        ("fly", {}),
    ],
)
def test_a_wrong_request_does_not_fit(method: str, params: dict[str, Any]) -> None:
    assert errors({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) != []


SESSION_START = ResumeState("/src/api", 7)
SCOPE = RequestedScope(("a",), ("b",), "/c", True, "/d")
HELLO = Hello(client="x", scope=SCOPE, start=SESSION_START)


@pytest.mark.parametrize(
    "message",
    [
        hello.encode_hello(Hello(), 1),
        hello.encode_hello(HELLO, 1),
        hello.encode_reported_roots(("a", "b")),
        hello.encode_proposed_folder("/src"),
    ],
)
def test_the_messages_of_the_proxies_fit(message: Message) -> None:
    whole = json.loads(encode(message))
    assert errors(whole) == []
    assert errors({**whole, "params": {**whole["params"], "later": 1}}) != [] or "id" not in whole
    assert errors({**whole, "params": {}}) != []


def test_the_answer_to_a_hello_fits() -> None:
    for start in (None, SESSION_START):
        assert errors(to_json(HelloResult(start=start)), "rootsd-hello.result") == []


def test_a_line_that_says_that_the_daemon_works_fits() -> None:
    assert errors({"jsonrpc": "2.0", "method": "working", "params": {}}) == []


def test_the_progress_of_a_scan_fits() -> None:
    progress = ScanProgressItem(folders=1, projects=2, parent="/src")
    assert errors({"jsonrpc": "2.0", "method": "progress", "params": progress}) == []
    assert errors({"jsonrpc": "2.0", "method": "progress", "params": {"folders": 1}}) != []


def _answer(method: str) -> dict[str, Any]:
    answer = ANSWERS[method]
    assert not isinstance(answer, Exception)
    return dict(answer({}) if callable(answer) else answer)


@pytest.mark.parametrize("method", ANSWERS)
def test_the_answers_behind_the_golden_files_fit(method: str) -> None:
    assert errors(_answer(method), f"{method}.result") == []


def _broken(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copies of `value`: each key is left out, or has a wrong type, also in a first item."""
    for key, inner in value.items():
        yield {name: kept for name, kept in value.items() if name != key}
        yield {**value, key: {"wrong": [1]}}
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            for item in _broken(inner[0]):
                yield {**value, key: [item, *inner[1:]]}


@pytest.mark.parametrize("method", ANSWERS)
def test_a_broken_answer_does_not_fit(method: str) -> None:
    broken = [*_broken(_answer(method))]
    assert len(broken) >= 2
    assert [answer for answer in broken if not errors(answer, f"{method}.result")] == []


@pytest.mark.parametrize("golden", GOLDEN_FILES.values(), ids=lambda path: path.stem)
def test_the_printed_objects_fit(golden: Path) -> None:
    lines = golden.read_text().partition("--- json\n")[2].splitlines()
    if golden.stem in PRINTS_TEXT:
        assert not lines[0].startswith("{")
        return
    for line in lines:
        printed = json.loads(line)
        definition = "ErrorOutput" if "error" in printed else "CommandOutput"
        assert errors(printed, definition) == errors(printed) == []
        assert errors({**printed, "schema": "rootsd/2"}) != []
        assert errors({**printed, "command": None}) != []


def config_errors(text: str) -> list[str]:
    """Return why a `config.toml` does not fit its schema."""
    return [error.message for error in Draft202012Validator(CONFIG).iter_errors(parse_toml(text))]


def config_keys() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each key of the configuration, such as `parent.depth`, with its schema."""
    for name, table in CONFIG["properties"].items():
        for key, each in table.get("items", table)["properties"].items():
            yield f"{name}.{key}", each


def test_the_configuration_reference_matches_the_types() -> None:
    assert FILE.read_text() == page(), "run make reference"


def test_each_key_of_the_configuration_is_described_and_in_the_reference() -> None:
    keys = dict(config_keys())
    assert {"parent.path", "roots.allow", "sessions.max_connections", "approval.guard"} <= {*keys}
    assert [key for key, each in keys.items() if not each.get("description")] == []
    assert [key for key in keys if f"### `{key}`\n" not in page()] == []


def test_the_reference_and_the_schema_for_editors_have_the_same_keys() -> None:
    described = {key.full_name: key for table in tables() for key in table.keys}
    schema = dict(config_keys())
    assert list(described) == list(schema)
    for name, key in described.items():
        in_schema = schema[name]
        assert key.description == in_schema["description"]
        assert key.default == in_schema.get("default")
        assert key.example == in_schema.get("examples", [None])[0]
        words = (
            ["true", "false"] if in_schema.get("type") == "boolean" else in_schema.get("enum", [])
        )
        assert list(key.words) == words


def test_editors_find_descriptions_and_defaults_beside_the_keys() -> None:
    assert "$ref" not in text_of(CONFIG)
    assert "$id" not in CONFIG, "Taplo rejects a relative $id"
    required = {"parent.path"}
    assert {key for key, each in config_keys() if "default" not in each} == required


def test_the_example_in_the_reference_is_a_valid_configuration() -> None:
    example = example_file()
    assert example in page()
    assert config_errors(example) == []
    assert parse_config(example, b"config.toml").sessions.max_connections == 4096


@pytest.mark.parametrize(
    "text",
    [
        "[[parent]]",
        "[[parent]]\npath = 'src'",
        "[[parent]]\npath = '/src'\ndepth = 65",
        "[[parent]]\npath = '/src'\nnested = 'all'",
        "[[parent]]\npath = '/src'\nproject_files = ['a/b']",
        "[parent]\npath = '/src'",
        "[roots]\nallow = ['x']",
        "[sessions]\nmax = 1",
        "[approval]\nagents = ['']",
        "zzz = 1",
    ],
)
def test_rootsd_and_an_editor_reject_the_same_configuration(text: str) -> None:
    with pytest.raises(BadConfig):
        parse_config(text, b"config.toml")
    assert config_errors(text) != []


class Caller:
    """A program that speaks the control protocol by itself."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        with address_of(bytes(path)) as address:
            self._socket.connect(address)
        self._stream = self._socket.makefile("rwb")

    def __enter__(self) -> Callable[[str, dict[str, Any]], list[dict[str, Any]]]:
        return self._ask

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def _ask(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the notifications before the response, and the response."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        assert errors(request) == []
        self._stream.write(json.dumps(request).encode() + b"\n")
        self._stream.flush()
        messages: list[dict[str, Any]] = []
        while not messages or "id" not in messages[-1]:
            messages.append(json.loads(self._stream.readline()))
        return messages


def _calls(top: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests with the effects of earlier ones in the answers to later ones, then those
    without required values.
    """
    cwd = {"cwd": top}
    yield "scan", {}
    yield "decide", {"verb": "approve", "refs": ["one"], "effect": "dry-run", **cwd}
    yield "decide", {"verb": "approve", "refs": ["one"], "tags": ["go"], **cwd}
    yield "decide", {"verb": "deny", "refs": ["two"], **cwd}
    yield "rename", {"ref": "one", "name": "first", **cwd}
    yield "tag", {"refs": ["first"], "on": ["work"], **cwd}
    yield "set-focus", {"tag": "work"}
    yield "rule-add", {"verdict": "denied", "pattern": f"{top}/x/**", **cwd}
    yield "add", {"what": "https://example.com/x", **cwd}
    yield "add_folders", {"paths": [f"{top}/one"], "tag": "work"}
    yield "rule-rm", {"number": 1}
    yield "set-guard", {"guard": "off"}
    yield "allow-programs", {"programs": [f"{top}/tool"]}
    yield "disallow-programs", {"programs": [f"{top}/tool"]}
    yield "announce", {"command": "down"}
    yield "remote-command", {"command": "approve api --host ann@build"}
    yield "check", {"path": f"{top}/one"}
    yield "why", {"path": f"{top}/one"}
    yield "show", {"refs": ["first", "two"], **cwd}
    yield "projects", cwd
    yield "sessions", {"view": "history"}
    yield "session_roots", {"id": "0a1b2c3d"}
    hello = {"version": 1, "client": "a server", "scope": {"workspace": f"{top}/one"}}
    program = {"pid": 7, "program": "x", "engine": "static", "landlock": 7, "network": True}
    yield "follow", {"version": 1, "part": "roots", "hello": hello, "wall": program,
                      "use": "server"}  # fmt: skip
    state = {"roots": 1, "read_only": 0, "masked": 0, "waiting": 0, "holders": [], "not_shown": []}
    yield "report_confined", {"network": False, "state": state}
    for form in REQUEST_TYPES:
        if form is not StopRequest and not any(each.required for each in fields(form)):
            yield form.method, {}
    yield "stop", {}


def test_the_answers_of_a_real_daemon_fit(person: Person) -> None:
    for name in ("one", "two", "three"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    control = Path(os.environ["ROOTSD_DIR"], "run", "ctl", "control.sock")
    calls = [*_calls(str(person.parent))]
    unknown = REQUEST_TYPE_BY_METHOD.keys() - {method for method, _ in calls}
    with Caller(control) as ask:  # a connection has one subscription
        screen = {"version": 1, "part": "screen"}
        [result], [update] = ask("follow", screen), ask("sessions", {})[:1]
        assert errors(result["result"], "follow.result") == []
        assert update["params"]["screen"]["is_complete"]
        assert errors(update) == []
    with Caller(control) as ask:
        [refused] = ask("show", {"refs": ["nowhere"], "cwd": "/"})
        assert errors(refused) == errors(refused["error"]["data"], "ErrorDetails") == []
        for method in unknown:
            _, params = encode_request(smallest_request(REQUEST_TYPE_BY_METHOD[method]))
            response = ask(method, params)[-1]
            assert errors(response) == []
        for method, params in calls:
            *notifications, response = ask(method, params)
            assert "error" not in response, (method, response)
            assert errors(response["result"], f"{method}.result") == [], method
            assert [error for each in (*notifications, response) for error in errors(each)] == []
