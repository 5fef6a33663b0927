"""The tools, as a client calls them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the SDK brings it along
import pytest

from rootsd.core.model import ProjectKind, Root
from rootsd.publish.offers import LIST_ROOTS, REQUEST_ROOT, RESOLVE_ROOT
from support.publishing import FakeSource, connected, root

API = root("/src/acme/api", name="acme/api", tags=("work",))
NESTED = root("/src/acme/api/vendor/lib", name="lib")
DOCS = root("https://docs.example/v1", name="docs", kind=ProjectKind.URI)
ROOTS = (API, DOCS, NESTED)


async def call(name: str, arguments: object, roots: tuple[Root, ...] = ROOTS) -> dict[str, Any]:
    source = FakeSource(*roots)
    source.links = {b"/src/acme/api/out": b"/etc", b"/home/link": b"/src/acme/api/a"}
    async with connected(source) as peer:
        params = {"name": name, "arguments": arguments}
        answer = await peer.ask_2026("tools/call", params)
    result: dict[str, Any] = answer.get("result", answer)
    return result


@pytest.mark.parametrize("tool", [LIST_ROOTS, RESOLVE_ROOT, REQUEST_ROOT])
async def test_every_tool_says_what_it_is_and_what_it_may_change(tool: Any) -> None:  # noqa: ANN401
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
    for schema in (shown["inputSchema"], shown["outputSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf"} & schema.keys(), "model APIs refuse these"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (LIST_ROOTS, {}),
        (LIST_ROOTS, None),
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
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


async def test_every_root_is_listed_with_the_revision() -> None:
    listed = (await call("list_roots", {}))["structuredContent"]
    assert [item["name"] for item in listed["roots"]] == ["acme/api", "docs", "lib"]
    assert listed["revision"] == 1


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


async def test_a_label_resolves_like_the_name_it_stands_for() -> None:
    odd = root("/src/odd", name="odd\u202e")
    found = await call("resolve_root", {"name": "odd\\u{202e}"}, (odd,))
    assert found["structuredContent"]["root"]["path"] == "/src/odd"


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("list_roots", {"all": True}, "takes none"),
        ("resolve_root", {}, "either name or path"),
        ("resolve_root", {"name": "a", "path": "/a"}, "either name or path"),
        ("resolve_root", {"name": 7}, "give name, as a string"),
        ("resolve_root", {"ref": "a"}, "takes name, path"),
        ("resolve_root", {"path": "src/api"}, "absolute path"),
        ("resolve_root", {"path": "/src\0"}, "NUL"),
        ("resolve_root", {"path": ""}, "not empty"),
    ],
)
async def test_wrong_arguments_are_a_result_that_tells_the_model_what_to_do(
    tool: str, arguments: object, hint: str
) -> None:
    result = await call(tool, arguments)
    assert result["isError"] is True
    assert hint in result["content"][0]["text"]


async def test_an_unknown_tool_is_invalid_params_and_names_those_there_are() -> None:
    error = (await call("approve", {}))["error"]
    assert error["code"] == -32602
    assert "list_roots" in error["data"]["reason"]
