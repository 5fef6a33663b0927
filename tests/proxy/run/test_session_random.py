"""Random messages, valid and damaged: unless they are about roots, they pass byte for byte."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.session import RunSession
from rootsd.wire.jsonrpc import (
    Batch,
    ErrorResponse,
    Malformed,
    Response,
    parse_repaired,
    parse_strict,
)
from support.bridges import HANG_GUARD_S, META_2026, environment, fault, request
from support.damaged_messages import damaged
from support.mcp_harness import FakeSource, root
from support.run_proxy import command
from support.run_session_harness import API, SessionHarness, call, call_2026
from support.sizes import Sizes
from support.threaded_publisher import published

METHODS = (
    "completion/complete", "elicitation/create", "logging/setLevel", "notifications/message",
    "notifications/progress", "ping", "prompts/get", "resources/read", "resources/subscribe",
    "root/list", "rooted", "sampling/createMessage", "server/discover", "tools/call", "tools/list",
    "x/y", "notifications/tools/list_changed", "notifications/cancelled", "",
)  # fmt: skip
ATOMS = (
    "1e400",
    "1.10",
    "-0",
    "12345678901234567890123",
    "null",
    "true",
    '"\\ud800"',
    '"\\/"',
    '"é\\n"',
    '""',
)
IDS = ("0", "-1", "7", '""', '"zero"', '"\\u0061"', "9007199254740991", '"é"')


def value(chance: random.Random, depth: int = 0) -> str:
    """Return random JSON text, with unusual spacing and escapes."""
    kind = chance.random()
    if depth > 3 or kind < 0.6:
        return chance.choice(ATOMS)
    space = chance.choice(("", " ", "\t"))
    some = [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind < 0.8:
        return f"[{space}{(',' + space).join(some)}{space}]"
    keys = chance.sample(("a", "id", "method", "result", "params", "uri", "é"), len(some))
    members = [f'{space}"{key}":{each}' for key, each in zip(keys, some, strict=True)]
    return f"{{{','.join(members)}}}"


def message(chance: random.Random) -> str:
    """Return a random valid message with its members in random order."""
    members = ['"jsonrpc":"2.0"']
    kind = chance.randrange(4)
    if kind != 0:
        members.append(f'"id":{chance.choice(IDS)}')
    if kind < 2:
        members.append(f'"method":{json.dumps(chance.choice(METHODS))}')
        if chance.random() < 0.8:
            members.append(f'"params":{params(chance)}')
    elif kind == 2:
        members.append(f'"result":{value(chance)}')
    else:
        members.append(f'"error":{{"code":-1,"message":"é","data":{value(chance)}}}')
    chance.shuffle(members)
    space = chance.choice(("", " "))
    return f"{space}{{{space}{f',{space}'.join(members)}{space}}}{space}"


def params(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return f'{{"x":{value(chance)}}}'
    meta = {**META_2026, "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    return json.dumps({"_meta": meta, "name": "é"})


def line(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return f"[{','.join(message(chance) for _ in range(chance.randint(1, 4)))}]".encode()
    return message(chance).encode()


def a_harness() -> SessionHarness:
    """A session in the middle: the server has its roots."""
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.shake_hands({"sampling": {}, "elicitation": {}})
    harness.list_roots()
    return harness


def ask_for(harness: SessionHarness, said: bytes) -> None:
    """Let the server send the request that the client is about to answer with `said`."""
    message = parse_strict(said)
    for each in message.members if isinstance(message, Batch) else (message,):
        if isinstance(each, Response | ErrorResponse):
            harness.server(request(each.id, "sampling/createMessage"))
    harness.raw_to_client()


def test_valid_messages_pass_byte_for_byte(sizes: Sizes) -> None:
    chance = random.Random(8)  # noqa: S311 - to be reproducible is its purpose
    harness = a_harness()
    for _ in range(sizes.pick(test=400, check=10_000, soak=30_000)):
        said = line(chance)
        ask_for(harness, said)
        harness.client(said)
        assert harness.raw_to_server() == said + b"\n"
        said = line(chance)
        harness.server(said)
        assert harness.raw_to_client() == said + b"\n"


def test_a_2026_request_gets_only_the_capability(sizes: Sizes) -> None:
    chance = random.Random(9)  # noqa: S311 - to be reproducible is its purpose
    harness = a_harness()
    declared = b'"roots": {}'
    for _ in range(sizes.pick(test=300, check=10_000, soak=30_000)):
        said = line(chance).replace(declared, b"")
        ask_for(harness, said)
        harness.client(said)
        passed = harness.raw_to_server()
        assert passed.replace(b'"roots":{}', b"") == said + b"\n"


def is_about_roots(said: bytes) -> bool:
    """Return whether the proxy may change a valid line."""
    words = (b"roots", b"\\u", b"initialize", b"clientCapabilities", b"inputRequests")
    return any(word in said for word in words)


UNREADABLE = fault(None, -32700, "cannot be read")


def is_whole(said: bytes) -> bool:
    message = parse_strict(said)
    members = message.members if isinstance(message, Batch) else (message,)
    return not any(isinstance(each, Malformed) for each in members)


DAMAGED: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda chance: json.loads(call_2026(chance.randrange(9), requestState="rootsd1.W10=")),
    lambda chance: json.loads(call(chance.randrange(9), "roots/list")),
    lambda _: {"jsonrpc": "2.0", "id": 0, "method": "roots/list"},
    lambda _: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": [1, "x"]}},
    lambda _: {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {
            "resultType": "input_required",
            "inputRequests": {"a": {"method": "roots/list"}},
        },
    },
]


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_damaged_message_passes_byte_for_byte_or_not_at_all(side: str, sizes: Sizes) -> None:
    chance = random.Random(10)  # noqa: S311 - to be reproducible is its purpose
    harness = a_harness()
    speak = harness.client if side == "client" else harness.server
    hear = harness.raw_to_server if side == "client" else harness.raw_to_client
    untouched = refused = 0
    for _ in range(sizes.pick(test=600, check=10_000, soak=30_000)):
        said = damaged(chance, chance.choice(DAMAGED)(chance)).replace(b"\n", b"")
        if side == "client" and is_whole(said):
            ask_for(harness, said)
        speak(said)
        harness.wait(6.0)  # longer than any server is waited for
        heard = hear()
        if b"initialize" in heard:
            harness.server(UNREADABLE)
        assert all(is_whole(each) for each in heard.splitlines()), said
        harness.raw_to_client(), harness.raw_to_server()
        if not is_whole(said):
            refused += 1
            passed = [json.loads(each) for each in heard.splitlines()]
            is_repaired = side == "server" and heard == parse_repaired(said)[0] + b"\n"
            is_refused = all("error" in each for each in passed)
            assert said.lstrip()[:1] == b"[" or is_repaired or is_refused, said
        elif not is_about_roots(said):
            untouched += 1
            assert heard == said + b"\n"
        assert harness.session.backlog == 0, said
        harness.out.restart_requested = False
    assert untouched > 20 < refused


def test_this_test_detects_a_session_that_reserializes(
    monkeypatch: pytest.MonkeyPatch, sizes: Sizes
) -> None:
    pass_on = RunSession._to_server

    def printed(self: RunSession, said: bytes | None) -> None:
        pass_on(self, said and json.dumps(json.loads(said)).encode())

    monkeypatch.setattr(RunSession, "_to_server", printed)
    with pytest.raises((AssertionError, ValueError)):
        test_valid_messages_pass_byte_for_byte(sizes)


def test_messages_pass_real_pipes_byte_for_byte(sizes: Sizes) -> None:
    """In front of `cat` every line goes both ways."""
    chance = random.Random(11)  # noqa: S311 - to be reproducible is its purpose
    count = sizes.pick(test=400, check=10_000, soak=30_000)
    # An open request would be answered when `cat` ends; notices are not.
    notices = (b'{"jsonrpc":"2.0","method":"x","params":{"x":%s}}' % value(chance).encode()
               for _ in range(count))  # fmt: skip
    data = b"\n".join(notices) + b"\n"
    with published(FakeSource(root("/src/api"))):
        done = subprocess.run(
            command("cat"), input=data, capture_output=True, env=environment(),
            timeout=10 * HANG_GUARD_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == data
