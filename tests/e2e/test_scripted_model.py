"""The scripted model serves each wire format, streamed or not, and follows its script."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.scripted_model import Call, ScriptedModel, Shell

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = {"bash": SCHEMA, "rootsd_list_roots": NO_ARGUMENTS}
SCRIPT = (Shell("id"), Call("list_roots"))
Body = dict[str, Any]


def messages(results: dict[str, str]) -> Body:
    tools = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
    told = [
        {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": text}]}
        for call, text in results.items()
    ]
    return {"tools": tools, "messages": [{"role": "user", "content": told or "go"}]}


def responses(results: dict[str, str]) -> Body:
    tools = [{"type": "function", "name": n, "parameters": schema} for n, schema in TOOLS.items()]
    told = [
        {"type": "function_call_output", "call_id": call, "output": text}
        for call, text in results.items()
    ]
    return {"tools": tools, "input": told}


def chat(results: dict[str, str]) -> Body:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in TOOLS.items()
    ]
    told = [
        {"role": "tool", "tool_call_id": call, "content": text} for call, text in results.items()
    ]
    return {"tools": tools, "messages": told}


def gemini(results: dict[str, str]) -> Body:
    declared = [{"name": n, "parametersJsonSchema": schema} for n, schema in TOOLS.items()]
    parts = [
        {"functionResponse": {"id": call, "response": {"output": text}}}
        for call, text in results.items()
    ]
    return {"tools": [{"functionDeclarations": declared}], "contents": [{"parts": parts}]}


FORMATS: dict[str, Callable[[dict[str, str]], Body]] = {
    "/v1/messages": messages,
    "/v1/responses": responses,
    "/v1/chat/completions": chat,
    "/v1beta/models/m:generateContent": gemini,
    "/v1beta/models/m:streamGenerateContent": gemini,
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    model = ScriptedModel(socket.create_server(("127.0.0.1", 0)), SCRIPT)
    yield model
    model.close()


def answer(model: ScriptedModel, path: str, body: Body) -> str:
    request = urllib.request.Request(  # noqa: S310 - http on loopback
        model.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answered:  # noqa: S310
        text: str = answered.read().decode()
    return text


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("path", FORMATS)
def test_it_follows_the_script(path: str, is_streamed: bool, model: ScriptedModel) -> None:
    body, stream = FORMATS[path], {"stream": is_streamed}
    assert "bash" in answer(model, path, {**body({}), **stream})
    assert "bash" in answer(model, path, {**body({}), **stream}), "a client may repeat a request"
    listing = answer(model, path, {**body({"step_0": "uid=1000"}), **stream})
    assert "rootsd_list_roots" in listing
    assert "step_1" in listing
    done = answer(model, path, {**body({"step_0": "uid=1000", "step_1": "none"}), **stream})
    assert "finished" in done
    assert model.results == {0: "uid=1000", 1: "none"}
    assert model.problems == []


def test_a_step_without_its_tool_is_a_problem(model: ScriptedModel) -> None:
    body = {**messages({}), "tools": [{"name": "read", "input_schema": NO_ARGUMENTS}]}
    answer(model, "/v1/messages", body)
    (problem,) = model.problems
    assert "read" in problem


def test_a_request_without_tools_does_not_advance_the_script(model: ScriptedModel) -> None:
    assert "ok" in answer(model, "/v1/chat/completions", {"messages": []})
    assert model.offered == []
