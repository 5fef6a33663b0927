"""The tools, as a client calls them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the SDK brings it along
import pytest

from rootsd.core.model import ProjectKind, PublishedRoot
from rootsd.core.scope import NO_SESSION_START, SessionStart
from rootsd.mcp.tools import LIST_ROOTS, REQUEST_ROOT, RESOLVE_ROOT
from support.list_roots_output import listed, text_of_result
from support.mcp_harness import FakeSource, connected, root

API = root("/src/acme/api", name="acme/api", tags=("work",))
NESTED = root("/src/acme/api/vendor/lib", name="lib")
DOCS = root("https://docs.example/v1", name="docs", kind=ProjectKind.URI)
ROOTS = (API, DOCS, NESTED)


async def call(
    name: str, arguments: object, roots: tuple[PublishedRoot, ...] = ROOTS
) -> dict[str, Any]:
    source = FakeSource(*roots)
    source.links = {b"/src/acme/api/out": b"/etc", b"/home/link": b"/src/acme/api/a"}
    async with connected(source) as peer:
        params = {"name": name, "arguments": arguments}
        answer = await peer.ask_2026("tools/call", params)
    result: dict[str, Any] = answer.get("result", answer)
    assert not (result.get("isError") and source.requests), "only the model hears of a mistake"
    return result


@pytest.mark.parametrize("tool", [LIST_ROOTS, RESOLVE_ROOT, REQUEST_ROOT])
async def test_every_tool_has_a_description_and_annotations(tool: Any) -> None:  # noqa: ANN401
    async with connected(FakeSource()) as peer:
        tools = (await peer.ask_2026("tools/list"))["result"]["tools"]
    (shown,) = [each for each in tools if each["name"] == tool.name]
    assert shown["title"]
    assert shown["description"]
    assert shown["annotations"] == {
        "readOnlyHint": tool is not REQUEST_ROOT,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert ("outputSchema" in shown) is (tool is not LIST_ROOTS)


@pytest.mark.parametrize("tool", [LIST_ROOTS, RESOLVE_ROOT, REQUEST_ROOT])
def test_schemas_use_only_what_every_model_api_accepts(tool: Any) -> None:  # noqa: ANN401
    for schema in filter(None, (tool.input_schema, tool.output_schema)):
        for validator in (jsonschema.Draft202012Validator, jsonschema.Draft7Validator):
            validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf"} & schema.keys()
        assert "additionalProperties" not in json.dumps(schema)
    for value in tool.input_schema["properties"].values():
        assert value.keys() == {"type", "description"}
        assert value["type"] in ("string", "integer")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (RESOLVE_ROOT, {"name": "lib"}),
        (RESOLVE_ROOT, {"name": "nobody"}),
        (RESOLVE_ROOT, {"path": "/src/acme/api/main.py"}),
        (RESOLVE_ROOT, {"path": "/etc"}),
        (REQUEST_ROOT, {"path": "/etc", "reason": "to see", "wait_seconds": 0}),
        (REQUEST_ROOT, {"path": "/src/acme/api", "reason": "to see"}),
    ],
)
async def test_structured_results_fit_the_schema_and_the_text_says_the_same(
    tool: Any,  # noqa: ANN401
    arguments: object,
) -> None:
    result = await call(tool.name, arguments)
    jsonschema.validate(result["structuredContent"], tool.output_schema)
    assert json.loads(text_of_result(result)) == result["structuredContent"]


@pytest.mark.parametrize("arguments", [None, {}, {"all": True}, {"query": None, "limit": ""}])
async def test_the_list_is_sent_once_as_text(arguments: object) -> None:
    result = await call("list_roots", arguments)
    assert "structuredContent" not in result
    assert text_of_result(result) == (
        "3 approved folders:\n"
        "- acme/api: /src/acme/api (read-write)\n"
        "- docs: https://docs.example/v1 (read-write)\n"
        "- lib: /src/acme/api/vendor/lib (read-write)"
    )


async def test_an_empty_list_names_request_root() -> None:
    assert "request_root" in text_of_result(await call("list_roots", {}, ()))


@pytest.mark.parametrize(
    ("arguments", "heading", "names"),
    [
        ({"query": "API"}, "2 of 3 approved folders match API:", ["acme/api", "lib"]),
        ({"query": "work"}, "1 of 3 approved folders match work:", ["acme/api"]),
        ({"query": "*/lib"}, '1 of 3 approved folders match "*/lib":', ["lib"]),
        ({"query": "acme/*"}, '2 of 3 approved folders match "acme/*":', ["acme/api", "lib"]),
        ({"query": "li?"}, '1 of 3 approved folders match "li?":', ["lib"]),
        ({"query": "docs.example"}, "1 of 3 approved folders match docs.example:", ["docs"]),
        ({"query": "none"}, "0 of 3 approved folders match none.", []),
        ({"limit": 1.0}, "3 approved folders; the first 1 follow; ", ["acme/api"]),
        ({"limit": "2"}, "3 approved folders; the first 2 follow; ", ["acme/api", "docs"]),
        ({"limit": 3}, "3 approved folders:", ["acme/api", "docs", "lib"]),
        ({"limit": 0}, "3 approved folders:", ["acme/api", "docs", "lib"]),
        (
            {"limit": 1, "query": "api"},
            "2 of 3 approved folders match api; the first 1 follow; ",
            ["acme/api"],
        ),
    ],
)
async def test_a_query_and_a_limit_narrow_the_list_and_it_says_how_many_there_are(
    arguments: object, heading: str, names: list[str]
) -> None:
    result = await call("list_roots", arguments)
    assert text_of_result(result).splitlines()[0].startswith(heading)
    assert list(listed(result)) == names


async def test_a_long_list_is_cut_and_a_higher_limit_shows_all() -> None:
    roots = tuple(root(f"/src/p{number:03}") for number in range(250))
    assert len(listed(await call("list_roots", {}, roots))) == 100
    assert len(listed(await call("list_roots", {"limit": 1000.0}, roots))) == 250


async def test_each_result_says_what_changed_since_the_previous_one() -> None:
    source = FakeSource(API)
    async with connected(source) as peer, connected(source) as other:

        async def ask(tool: str, **arguments: object) -> dict[str, Any]:
            params = {"name": tool, "arguments": arguments}
            result: dict[str, Any] = (await peer.ask_2026("tools/call", params))["result"]
            return result

        assert text_of_result(await ask("list_roots")).startswith("1 approved folder:")
        source.publish(API, NESTED)
        found = (await ask("resolve_root", name="docs"))["structuredContent"]
        assert found["changes"] == "Since your last call: added lib."
        jsonschema.validate(found, RESOLVE_ROOT.output_schema)
        assert "changes" not in (await ask("resolve_root", name="docs"))["structuredContent"]
        source.publish(NESTED)
        source.publish(NESTED, DOCS)
        asked = await ask("request_root", path="/src/acme", reason="r", wait_seconds=0)
        assert asked["structuredContent"]["changes"] == (
            "Since your last call: added docs; removed acme/api."
        )
        jsonschema.validate(asked["structuredContent"], REQUEST_ROOT.output_schema)
        source.publish()
        wrong = await ask("resolve_root")
        assert "Since your last call" not in text_of_result(wrong)
        assert text_of_result(await ask("list_roots")).splitlines()[0] == (
            "Since your last call: removed lib, docs."
        )
        first = await other.ask_2026("tools/call", {"name": "list_roots"})
        assert "Since" not in text_of_result(first["result"])


async def test_changes_outside_the_scope_are_not_named() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"names": ["acme/api"]}})
        params = {"name": "list_roots"}
        before = (await peer.ask_2026("tools/call", params))["result"]
        source.publish(API, NESTED, DOCS)
        assert (await peer.ask_2026("tools/call", params))["result"] == before


@pytest.mark.parametrize(
    ("arguments", "name", "relative"),
    [
        ({"name": "acme/api"}, "acme/api", None),
        ({"name": "docs"}, "docs", None),
        ({"name": "api"}, None, None),
        ({"path": "/src/acme/api"}, "acme/api", "."),
        ({"path": "/src/acme/api/"}, "acme/api", "."),
        ({"path": "/src/acme/api/a/b.py"}, "acme/api", "a/b.py"),
        ({"path": "/src/acme/api/vendor/lib/x"}, "lib", "x"),
        ({"path": "/src/acme/api-old"}, None, None),
        ({"path": "/src/acme/api/../../etc"}, None, None),
        ({"path": "/src/acme/api/b/../a"}, "acme/api", "a"),
        ({"path": "/src/acme/api/out/passwd"}, None, None),
        ({"path": "/home/link/b.py"}, "acme/api", "a/b.py"),
        ({"path": "/src/acme"}, None, None),
        ({"path": "file:///src/acme/api/a%20b.py"}, "acme/api", "a b.py"),
        ({"path": "file:///etc"}, None, None),
        ({"uri": "file:///src/acme/api/x"}, "acme/api", "x"),
        ({"name": "file:///src/acme/api/x"}, "acme/api", "x"),
        ({"name": "/src/acme/api/x"}, "acme/api", "x"),
        ({"path": "https://docs.example/v1"}, "docs", None),
        ({"path": "https://other.example/v1"}, None, None),
        ({"path": "acme/api"}, "acme/api", None),
        ({"name": "lib", "path": None}, "lib", None),
        ({"name": "lib", "path": ""}, "lib", None),
        ({"name": "", "path": "/src/acme/api/x"}, "acme/api", "x"),
        ({"name": None, "path": "/etc"}, None, None),
        ({"name": "acme/api", "path": "/src/acme/api/x", "reason": "r"}, "acme/api", "x"),
        ({"name": "nobody", "path": "/src/acme/api/x"}, "acme/api", "x"),
        ({"name": "acme/api", "path": "/etc"}, None, None),
        ({"name": "acme/api", "path": "a/b.py"}, "acme/api", "a/b.py"),
        ({"name": "acme/api", "path": "."}, "acme/api", "."),
        ({"name": "acme/api", "path": "../../../etc"}, None, None),
        ({"name": "acme/api", "path": "out/passwd"}, None, None),
        ({"name": "nobody", "path": "a"}, None, None),
        ({"name": "docs", "path": "a"}, None, None),
        ({"path": "/"}, None, None),
    ],
)
async def test_a_name_or_path_resolves_to_the_nearest_root_or_to_none(
    arguments: Mapping[str, str], name: str | None, relative: str | None
) -> None:
    found = (await call("resolve_root", arguments))["structuredContent"]
    assert found["inside"] is (name is not None)
    assert (found["root"] or {}).get("name") == name
    assert found["relative"] == relative


async def test_a_label_resolves_like_its_name() -> None:
    odd = root("/src/odd", name="odd\u202e")
    found = await call("resolve_root", {"name": "odd\\u{202e}"}, (odd,))
    assert found["structuredContent"]["root"]["path"] == "/src/odd"


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("list_roots", {"limit": "many"}, "limit is not a number"),
        ("list_roots", {"query": ["api"]}, "query is not a string"),
        ("list_roots", {"query": "*a" * 9}, "8 wildcards"),
        ("list_roots", {"query": "a" * 201}, "200 characters"),
        ("resolve_root", {}, "both missing"),
        ("resolve_root", {"name": 7}, "name is not a string"),
        ("resolve_root", {"ref": "a"}, "both missing"),
        ("resolve_root", {"path": "src/api"}, "src/api is neither an absolute path"),
        ("resolve_root", {"path": "/src\0"}, "is not an absolute path"),
        ("resolve_root", {"path": "file://host/src"}, "another machine"),
        ("resolve_root", {"path": ""}, "both missing"),
        ("request_root", {"path": "/src", "reason": ""}, "reason is missing"),
        ("request_root", {"path": "/src"}, "reason is missing"),
        ("request_root", {"reason": "r"}, "path is missing"),
        ("request_root", {"path": "a", "reason": "r"}, "absolute path"),
        (
            "request_root",
            {"path": "/a", "reason": "r", "wait_seconds": "long"},
            "wait_seconds is not a number",
        ),
    ],
)
async def test_wrong_arguments_give_an_error_result_that_a_model_can_follow(
    tool: str, arguments: object, hint: str
) -> None:
    result = await call(tool, arguments)
    assert result["isError"] is True
    assert hint in text_of_result(result)
    example = json.loads(
        text_of_result(result).partition("A correct call has these arguments: ")[2]
    )
    assert (await call(tool, {**example, "wait_seconds": 0}))["isError"] is False


async def test_an_unknown_tool_is_invalid_params_and_names_all_tools() -> None:
    error = (await call("approve", {}))["error"]
    assert error["code"] == -32602
    assert "list_roots" in error["data"]["reason"]


@pytest.mark.parametrize("start", [SessionStart(b"/src/acme/api/vendor/lib", 0), NO_SESSION_START])
async def test_the_roots_of_the_workspace_come_first_and_are_marked(start: SessionStart) -> None:
    async with connected(FakeSource(*ROOTS), start=start) as peer:
        shown = [
            (await peer.ask_2026("tools/call", {"name": name, "arguments": arguments}))["result"]
            for name, arguments in (
                ("list_roots", {}),
                ("resolve_root", {"name": "lib"}),
                ("resolve_root", {"name": "docs"}),
            )
        ]
        uri = {"uri": "roots://approved"}
        read = (await peer.ask_2026("resources/read", uri))["result"]["contents"][0]["text"]
    lines = text_of_result(shown[0]).splitlines()[1:]
    marked = [line for line in lines if line.endswith("(in this workspace)")]
    items = {each["name"]: each["_meta"] for each in json.loads(read)["roots"]}
    if start.anchor is None:
        assert marked == []
        assert "rootsd/inWorkspace" not in read
        assert "in_workspace" not in shown[1]["structuredContent"]["root"]
        return
    assert marked == lines[:1]
    assert marked[0].startswith("- lib: ")
    assert [name for name in items if items[name].get("rootsd/inWorkspace")] == ["lib"]
    assert shown[1]["structuredContent"]["root"]["in_workspace"] is True
    assert "in_workspace" not in shown[2]["structuredContent"]["root"]
    jsonschema.validate(shown[1]["structuredContent"], RESOLVE_ROOT.output_schema)
