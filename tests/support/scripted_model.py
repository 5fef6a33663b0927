"""A model that follows a script, so that real agent programs run without an account or a network.

`ScriptedModel` serves four wire formats on one socket: Anthropic Messages, OpenAI Responses,
OpenAI Chat Completions, and Gemini generateContent, streamed or not. It answers the n-th turn of a
conversation with the n-th step of its script. Each call carries its step number in its id, so the
conversation itself says which turn it is, and a client may repeat a request. A request that offers
no tools (for a title or a summary) gets the answer "ok".

Some clients hide tools until the model searches for them. The model then calls the search first,
and then the tool that it found, through the client's own tool for that if there is one. If a tool
is not found because its server is still starting, the model waits in the shell and searches again.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any
SHELL_TOOLS = re.compile(
    r"(bash|shell|shell_command|exec_command|run_shell_command|run_commands|execute_command)$",
    re.IGNORECASE,
)
SEARCH_TOOLS = re.compile(r"(tool_search|ToolSearch)$")
CALLING_TOOL = "tool_call"
RESOURCE_TOOLS = re.compile(r"(ReadMcpResource(Tool)?|read_mcp_resource)$")
SHELL_SECONDS = 120
_COMMAND_ARGUMENTS = ("command", "cmd", "commands", "script")
_STEP_ID = re.compile(r"step_(\d+)")
_SEARCH_ID = re.compile(r"search_(\d+)")
_WAIT_ID = "wait_"
_MAX_SEARCHES = 60


# Node may report the end of a command before its last output, and Qwen Code then loses that.
LATER = "sleep 0.3"
"""What ends a command whose output a test looks at."""


def _nothing() -> None:
    """Do nothing before a step."""


@dataclass(frozen=True, slots=True)
class Shell:
    """Run `command` in the shell tool of the client, after `before` has returned."""

    command: str
    before: Callable[[], object] = _nothing


@dataclass(frozen=True, slots=True)
class Call:
    """Call the first tool whose name ends in `tool`, after `before` has returned."""

    tool: str
    arguments: dict[str, Json] = field(default_factory=dict)
    before: Callable[[], object] = _nothing


@dataclass(frozen=True, slots=True)
class ReadResource:
    """Read an MCP resource with the client's own tool for that, after `before` has returned."""

    uri: str
    server: str = "rootsd"
    before: Callable[[], object] = _nothing


Step = Shell | Call | ReadResource


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client offers. `full_name` includes the namespace, if the API has one.

    A free-form tool takes one text, `input`, and has no schema.
    """

    name: str
    schema: dict[str, Json]
    namespace: str = ""
    is_free_form: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's answer when it calls a tool. `id` carries the number of the step."""

    id: str
    tool: Tool
    arguments: dict[str, Json]


Answer = str | ToolCall


def text_of(content: Json) -> str:
    """Return the text in a tool result of any of the formats."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "output", "content", "response", "result"):
            if key in content:
                return text_of(content[key])
    return json.dumps(content)


def complete(schema: dict[str, Json], given: dict[str, Json]) -> dict[str, Json]:
    """Return `given` with a value for each other argument that the schema requires."""
    properties = schema.get("properties") or {}
    arguments = {
        name: value for name, value in given.items() if not properties or name in properties
    }
    for name in schema.get("required") or []:
        if name in arguments:
            continue
        expected = properties.get(name) or {}
        kind = str(expected.get("type", "string")).lower()
        fallbacks: dict[str, Json] = {"boolean": False, "array": [], "object": {}}
        number = SHELL_SECONDS if kind in ("integer", "number") else "because the script says so"
        arguments[name] = (expected.get("enum") or [fallbacks.get(kind, number)])[0]
    return arguments


def shell_arguments(schema: dict[str, Json], command: str) -> dict[str, Json]:
    """Return the arguments for a shell tool, to run `command` and wait for its end."""
    properties = schema.get("properties") or {}
    name = next(name for name in _COMMAND_ARGUMENTS if name in properties)
    kind = str(properties[name].get("type", "string")).lower()
    value: Json = command
    if kind == "array":
        value = [command] if name == "commands" else ["bash", "-lc", command]
    patience = {
        "timeout": SHELL_SECONDS * 1000, "timeout_ms": SHELL_SECONDS * 1000,
        "yield_time_ms": 30_000, "initial_wait": SHELL_SECONDS, "is_background": False,
    }  # fmt: skip
    return complete(schema, {name: value, **patience})


class Dialect(ABC):
    """One wire format: reads a request, and writes an answer as JSON or as a stream of events."""

    ends_with = ""

    @abstractmethod
    def tools(self, body: Json) -> Iterator[Tool]:
        """Yield the tools that the request offers."""

    @abstractmethod
    def results(self, body: Json) -> Iterator[tuple[str, str]]:
        """Yield the id of each call that the client has answered, and the text of the answer."""

    @abstractmethod
    def whole(self, body: Json, answer: Answer) -> Json:
        """Return the answer as one JSON object."""

    @abstractmethod
    def events(self, body: Json, answer: Answer) -> Iterator[Json]:
        """Yield the answer as the events of a stream."""

    def is_streamed(self, path: str, body: Json) -> bool:
        """Return whether the client asked for a stream."""
        return bool(body.get("stream"))


class Messages(Dialect):
    """Anthropic's Messages API."""

    ends_with = "/messages"

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or []:
            if "input_schema" in tool:
                yield Tool(tool["name"], tool["input_schema"])

    def results(self, body: Json) -> Iterator[tuple[str, str]]:
        for message in body.get("messages", []):
            for part in message["content"] if isinstance(message["content"], list) else []:
                if part.get("type") == "tool_result":
                    yield part["tool_use_id"], text_of(part.get("content", ""))

    def whole(self, body: Json, answer: Answer) -> Json:
        return {
            "id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant",
            "model": body.get("model"), "content": [self._block(answer)],
            "stop_reason": "end_turn" if isinstance(answer, str) else "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10, "output_tokens": 5,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            },
        }  # fmt: skip

    def _block(self, answer: Answer) -> Json:
        if isinstance(answer, str):
            return {"type": "text", "text": answer}
        return {
            "type": "tool_use", "id": answer.id,
            "name": answer.tool.name, "input": answer.arguments,
        }  # fmt: skip

    def events(self, body: Json, answer: Answer) -> Iterator[Json]:
        message, block = self.whole(body, answer), self._block(answer)
        stop = message["stop_reason"]
        if isinstance(answer, str):
            opening, delta = {**block, "text": ""}, {"type": "text_delta", "text": answer}
        else:
            partial = json.dumps(answer.arguments)
            opening = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": partial}
        yield {
            "type": "message_start", "message": {**message, "content": [], "stop_reason": None},
        }  # fmt: skip
        yield {"type": "content_block_start", "index": 0, "content_block": opening}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {
            "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        }  # fmt: skip
        yield {"type": "message_stop"}


class Responses(Dialect):
    """OpenAI's Responses API."""

    ends_with = "/responses"

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or []:
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    yield Tool(inner["name"], inner.get("parameters") or {}, tool["name"])
            elif tool.get("type") == "function":
                yield Tool(tool["name"], tool.get("parameters") or {})
            elif tool.get("type") == "custom":
                yield Tool(tool["name"], {}, is_free_form=True)

    def results(self, body: Json) -> Iterator[tuple[str, str]]:
        items = body.get("input", [])
        for item in items if isinstance(items, list) else []:
            if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                yield item["call_id"], text_of(item.get("output"))

    def _item(self, answer: Answer) -> Json:
        number = time.time_ns()
        if isinstance(answer, str):
            content = [{"type": "output_text", "text": answer, "annotations": []}]
            return {
                "type": "message", "id": f"msg_{number}", "role": "assistant",
                "status": "completed", "content": content,
            }  # fmt: skip
        if answer.tool.is_free_form:
            return {
                "type": "custom_tool_call", "id": f"ctc_{number}", "call_id": answer.id,
                "name": answer.tool.name, "input": answer.arguments["input"],
                "status": "completed",
            }  # fmt: skip
        call = {
            "type": "function_call", "id": f"fc_{number}", "call_id": answer.id,
            "name": answer.tool.name, "arguments": json.dumps(answer.arguments),
            "status": "completed",
        }  # fmt: skip
        return call | ({"namespace": answer.tool.namespace} if answer.tool.namespace else {})

    def whole(self, body: Json, answer: Answer) -> Json:
        usage = {
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        return {
            "id": f"resp_{time.time_ns()}", "object": "response", "created_at": int(time.time()),
            "status": "completed", "model": body.get("model"), "output": [self._item(answer)],
            "usage": usage,
        }  # fmt: skip

    def events(self, body: Json, answer: Answer) -> Iterator[Json]:
        response = self.whole(body, answer)
        (item,) = response["output"]
        begun = {**response, "status": "in_progress", "output": []}
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
        ]
        if isinstance(answer, str):
            events.append({
                "type": "response.output_text.delta", "item_id": item["id"], "output_index": 0,
                "content_index": 0, "delta": answer,
            })  # fmt: skip
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        for number, event in enumerate(events):
            yield {**event, "sequence_number": number}


class Chat(Dialect):
    """OpenAI's Chat Completions API."""

    ends_with = "/chat/completions"

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or []:
            if "function" in tool:
                yield Tool(tool["function"]["name"], tool["function"].get("parameters") or {})

    def results(self, body: Json) -> Iterator[tuple[str, str]]:
        for message in body.get("messages", []):
            if message["role"] == "tool":
                yield message["tool_call_id"], text_of(message.get("content"))

    def _message(self, answer: Answer) -> tuple[Json, str]:
        if isinstance(answer, str):
            return {"role": "assistant", "content": answer}, "stop"
        function = {"name": answer.tool.name, "arguments": json.dumps(answer.arguments)}
        call = {"index": 0, "id": answer.id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"

    def _head(self, body: Json, kind: str) -> Json:
        return {
            "id": f"chatcmpl-{time.time_ns()}", "created": int(time.time()),
            "model": body.get("model"), "object": kind,
        }  # fmt: skip

    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}  # noqa: RUF012

    def whole(self, body: Json, answer: Answer) -> Json:
        message, stop = self._message(answer)
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return {**self._head(body, "chat.completion"), "choices": [choice], "usage": self.usage}

    def events(self, body: Json, answer: Answer) -> Iterator[Json]:
        message, stop = self._message(answer)
        head = self._head(body, "chat.completion.chunk")
        yield {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}
        yield {**head, "choices": [], "usage": self.usage}
        yield "[DONE]"


class Gemini(Dialect):
    """Google's generateContent API. Its results may lack ids, so their order counts instead."""

    def tools(self, body: Json) -> Iterator[Tool]:
        for group in body.get("tools") or []:
            for tool in group.get("functionDeclarations") or []:
                schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
                yield Tool(tool["name"], schema)

    def results(self, body: Json) -> Iterator[tuple[str, str]]:
        parts = (part for turn in body.get("contents", []) for part in turn.get("parts", []))
        answered = (part["functionResponse"] for part in parts if "functionResponse" in part)
        for number, response in enumerate(answered):
            yield response.get("id") or f"step_{number}", text_of(response.get("response"))

    def whole(self, body: Json, answer: Answer) -> Json:
        part: Json = {"text": answer}
        if isinstance(answer, ToolCall):
            call = {"name": answer.tool.name, "args": answer.arguments, "id": answer.id}
            part = {"functionCall": call}
        elif (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            part = {"text": "{}"}
        candidate = {
            "content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0,
        }  # fmt: skip
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return {
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted-1",
            "responseId": str(time.time_ns()),
        }  # fmt: skip

    def events(self, body: Json, answer: Answer) -> Iterator[Json]:
        yield self.whole(body, answer)

    def is_streamed(self, path: str, body: Json) -> bool:
        return ":streamGenerateContent" in path


DIALECTS: tuple[Dialect, ...] = (Messages(), Responses(), Chat())


def dialect_of(path: str) -> Dialect | None:
    """Return the format of requests to `path`, or None if the model does not serve it."""
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return Gemini()
    return next((dialect for dialect in DIALECTS if path.endswith(dialect.ends_with)), None)


class ScriptedModel:
    """Serves `script` on a listening socket until `close`.

    `results` maps the number of a step to the text that its tool returned, and `seconds` to the
    time that the client took for it. `offered` is the list
    of tools of the latest request. `problems` lists the places where the client did not follow the
    script. At the end of the script, the answer is `last_words`.
    """

    def __init__(self, listening: socket.socket, script: Sequence[Step]) -> None:
        self.script = list(script)
        self.results: dict[int, str] = {}
        self.seconds: dict[int, float] = {}
        self.requests: list[Json] = []
        self.offered: list[str] = []
        self.problems: list[str] = []
        self.last_words = "finished"
        self._lock = threading.Lock()
        self._begun: dict[int, float] = {}
        self._server = _Server(listening, self)
        self.port: int = listening.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, dialect: Dialect, body: Json) -> Answer:
        """Return the script's next answer."""
        tools = list(dialect.tools(body))
        if not tools:
            return "ok"
        due, found, last, now = 0, dict[int, list[str]](), "", time.monotonic()
        with self._lock:
            self.requests.append(body)
            self.offered = [tool.full_name for tool in tools]
            for call_id, text in dialect.results(body):
                last = call_id
                if number := _STEP_ID.search(call_id):
                    done = int(number[1])
                    due = max(due, done + 1)
                    self.results[done] = text
                    self.seconds.setdefault(done, now - self._begun.get(done, now))
                elif number := _SEARCH_ID.search(call_id):
                    found.setdefault(int(number[1]), []).append(text)
            if due >= len(self.script):
                return self.last_words
            step, is_first = self.script[due], due not in self._begun
            self._begun[due] = now
        if is_first:
            step.before()
        searched = found.get(due, [])
        if _WAIT_ID not in last:
            return self._perform(step, due, searched, tools)
        return self._search(step, due, len(searched), tools) or "no such tool"

    def _search(self, step: Step, due: int, number: int, tools: list[Tool]) -> ToolCall | None:
        for tool in tools:
            if SEARCH_TOOLS.match(tool.name):
                arguments = complete(tool.schema, {"query": _searched(step), "limit": 20})
                return ToolCall(f"search_{due}_{number}", tool, arguments)
        return None

    def _perform(self, step: Step, due: int, searched: list[str], tools: list[Tool]) -> Answer:
        for tool in tools:
            if (arguments := _arguments(step, tool)) is not None:
                return ToolCall(f"step_{due}", tool, arguments)
        if isinstance(step, Call) and searched:
            callers = [tool for tool in tools if tool.name == CALLING_TOOL]
            name = re.search(rf'"name":\s*"([^"]*{re.escape(step.tool)})"', searched[-1])
            if callers and name:
                arguments = {"name": name[1], "arguments": step.arguments}
                return ToolCall(f"step_{due}", callers[0], arguments)
        if not searched and (search := self._search(step, due, 0, tools)):
            return search
        if 0 < len(searched) < _MAX_SEARCHES and not isinstance(step, Shell):
            for tool in tools:
                if (arguments := _arguments(Shell("sleep 2"), tool)) is not None:
                    return ToolCall(f"{_WAIT_ID}{due}_{len(searched)}", tool, arguments)
        self.problems.append(f"no tool for step {due}, {step}, among {self.offered}")
        return "no such tool"


def _arguments(step: Step, tool: Tool) -> dict[str, Json] | None:
    """Return the arguments with which `tool` performs `step`, or None if it cannot."""
    match step:
        case Shell():
            return (
                shell_arguments(tool.schema, step.command)
                if SHELL_TOOLS.match(tool.name)
                else None
            )
        case Call():
            is_it = re.search(rf"(^|[^A-Za-z]){re.escape(step.tool)}$", tool.full_name)
            return complete(tool.schema, step.arguments) if is_it else None
        case ReadResource():
            given = {"server": step.server, "server_name": step.server, "uri": step.uri}
            return complete(tool.schema, given) if RESOURCE_TOOLS.match(tool.name) else None


def _searched(step: Step) -> str:
    match step:
        case Shell():
            return "shell"
        case Call():
            return step.tool.rpartition("__")[2]  # without the server
        case ReadResource():
            return "resource"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        """List the one model."""
        entry = {"id": "scripted-1", "object": "model", "type": "model", "created": 1}
        self._send_json({"object": "list", "data": [entry], "models": []})

    def do_POST(self) -> None:
        """Answer a request of the client."""
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        model = self.server.model  # type: ignore[attr-defined]
        if "count_tokens" in path or ":countTokens" in path:
            self._send_json({"input_tokens": 10, "totalTokens": 10})
            return
        dialect = dialect_of(path)
        if dialect is None:
            self._send_json({"error": {"message": "the model does not serve this"}}, 404)
            return
        answer = model.answer(dialect, body)
        if dialect.is_streamed(path, body):
            self._send_events(dialect.events(body, answer))
        else:
            self._send_json(dialect.whole(body, answer))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _send_json(self, value: Json, status: int = 200) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _send_events(self, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            is_named = isinstance(event, dict) and "type" in event
            head = f"event: {event['type']}\n" if is_named else ""
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{head}data: {data}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    """Accepts on a socket that another part bound, possibly in another network namespace."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, model: ScriptedModel) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.model = model

    def handle_error(self, request: object, address: object) -> None:
        """Ignore a client that hung up; report everything else on stderr."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, address)  # type: ignore[arg-type]
