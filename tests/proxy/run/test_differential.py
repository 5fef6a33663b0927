"""A server that words its requests so that a careless client finds what the proxy misses.

The client here accepts anything: it repairs bytes, splits lines at any break, ignores case, and
answers everything that could be a roots request, with folders that nobody approved. None of these
folders may reach the server.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rootsd.proxy.run import input_required, session
from rootsd.proxy.run.loop import ClientOutput
from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.router import MessageRouter
from rootsd.wire.jsonrpc import Malformed, parse, parse_strict
from support.bridges import request
from support.run_session_harness import API, SessionHarness, call, call_2026
from support.sizes import Sizes

PRIVATE = "/home/her/private"
ROOTS = {"roots": [{"uri": f"file://{PRIVATE}", "name": "private"}]}
ABOUT_ROOTS = re.compile(r"roots\W{0,8}list", re.IGNORECASE)
AN_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|[^,{}\[\]\s]+)', re.IGNORECASE)
PAD = "x" * 20_000  # longer than a line that is read whole
STREAM = "x" * 70_000  # longer than a line that is waited for

Mutation = Callable[[random.Random, str], bytes]


class Careless:
    """A client that answers whatever could be a question about roots."""

    def __init__(self) -> None:
        self._number = 1000

    def read(self, data: bytes) -> Iterator[bytes]:
        """Return the lines that it answers to these bytes."""
        for errors in ("ignore", "replace", "surrogateescape"):
            for line in re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]", data.decode(errors=errors)):
                yield from self._read_line(line)

    def _read_line(self, line: str) -> Iterator[bytes]:
        if "list" not in line:  # of no use to it
            return
        try:
            value = json.loads(line.strip("\ufeff\0 "))
        except (ValueError, RecursionError):
            value = None
        if value is not None:
            yield from self._read_value(value)
        if ABOUT_ROOTS.search(line.replace("\\u006f", "o")):
            for found in {*AN_ID.findall(line), "null"}:
                yield b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (
                    found.encode(errors="replace"), json.dumps(ROOTS).encode(),
                )  # fmt: skip

    def _read_value(self, value: Any, depth: int = 0) -> Iterator[bytes]:  # noqa: ANN401
        if depth > 20:
            return
        if isinstance(value, list):
            for each in value:
                yield from self._read_value(each, depth + 1)
        if not isinstance(value, dict):
            return
        low = {key.casefold(): each for key, each in value.items()}
        if is_about_roots(low):
            id_ = low.get("id")
            for mine in (id_, int(id_) if isinstance(id_, float) and abs(id_) < 1e9 else None):
                yield json.dumps({"jsonrpc": "2.0", "id": mine, "result": ROOTS}).encode()
                yield json.dumps([{"jsonrpc": "2.0", "id": mine, "result": ROOTS}]).encode()
        wanted = low.get("inputrequests")
        if isinstance(wanted, dict):
            yield self._again(wanted, low.get("requeststate"))
        for each in value.values():
            yield from self._read_value(each, depth + 1)

    def _again(self, wanted: dict[str, Any], state: object) -> bytes:
        self._number += 1
        answers = {key: ROOTS for key, each in wanted.items() if each}
        more: dict[str, Any] = {} if state is None else {"requestState": state}
        return call_2026(self._number, roots=True, inputResponses=answers, **more)


def is_about_roots(low: dict[str, Any]) -> bool:
    method = low.get("method")
    return isinstance(method, str) and bool(ABOUT_ROOTS.search(method))


def questions(chance: random.Random) -> str:
    """A line of the server that is about roots, in order."""
    wanted = {"r": {"method": "roots/list"}}
    if chance.random() < 0.3:
        wanted["e"] = {"method": "elicitation/create"}
    asks = {"resultType": "input_required", "inputRequests": wanted, "requestState": "s"}
    message = chance.choice(
        [
            {"jsonrpc": "2.0", "id": chance.randrange(9), "method": "roots/list"},
            {"jsonrpc": "2.0", "id": chance.randrange(9), "method": "roots/list", "params": {}},
            {"jsonrpc": "2.0", "id": chance.randrange(9), "result": asks},
            {"id": "c", "jsonrpc": "2.0", "result": asks},
        ]
    )
    text = json.dumps(message, separators=chance.choice([(",", ":"), (", ", ": ")]))
    return f"[{text}]" if chance.random() < 0.15 else text


def replaced(old: str, *new: str) -> Mutation:
    return lambda chance, text: text.replace(old, chance.choice(new), 1).encode()


def inserted(*what: bytes) -> Mutation:
    """Put bytes somewhere; most of all into the words that matter."""

    def insert(chance: random.Random, text: str) -> bytes:
        line = text.encode()
        words = [found.start() for found in re.finditer(rb"oots|list|method|id\"|jsonrpc", line)]
        at = (
            chance.choice(words)
            if words and chance.random() < 0.7
            else chance.randrange(len(line))
        )
        return line[:at] + chance.choice(what) + line[at:]

    return insert


def padded(pad: str) -> Mutation:
    """Make it so long that it may pass without being read whole."""

    def pad_out(chance: random.Random, text: str) -> bytes:
        hidden = chance.choice(
            [text, text.replace("oots", "\\u006fots"), text.replace("oo", "o\xffo")]
        )
        line = chance.choice(
            [
                f'{{"result":{{"x":"{pad}","y":{hidden}}},"jsonrpc":"2.0","id":"c"}}',
                f'{{"jsonrpc":"2.0","id":"c","result":{{"x":"{pad}"}},{hidden[1:]}',
                f'{{"jsonrpc":"2.0","id":"c","result":{{"resultType":"complete","x":"{pad}",'
                f'"resultType":"input_required","inputRequests":{{"r":{{"method":"roots/list"}}}}}}}}',
                f'{{"jsonrpc":"2.0","id":"c","result":"{pad}"}}\r{hidden}',
            ]
        )
        return line.encode("latin-1", errors="replace")

    return pad_out


def flipped(chance: random.Random, line: bytes) -> bytes:
    """Flip a bit here and there."""
    return bytes(c ^ (chance.random() < 0.02) << chance.randrange(8) for c in line)


MUTATIONS: list[Mutation] = [
    lambda _, text: text.encode(),
    replaced('"id":', '"id":1.5,"x":', '"id":null,"x":', '"id":{},"x":', '"id":[0],"x":', '"ID":'),
    replaced('"id":', '"id":true,"x":', '"id":1e3,"x":', '"id":12345678901234567890123,"x":'),
    replaced('"id":', '"id":0,"id":', '"id":"\\ud800","id":', '"x":', '"id":-0.0,"x":'),
    replaced('"2.0"', '"1.0"', "2.0", "null", '"2.0","jsonrpc":"2.0"', '"2.0\\u0000"'),
    replaced('"jsonrpc"', '"JSONRPC"', '"jsonrpc2"', '"x"'),
    replaced('"method"', '"Method"', '"method":"ping","method"', '"result":1,"method"'),
    replaced("roots/list", "Roots/List", "roots/list ", "roots\\/list\\u0000", "roots//list"),
    replaced("roots/list", "roots/list\\ud800", "ro\\u006fts/list", "roots\u2215list"),
    replaced("{}", "[]", "7", '"x"', "true", '{"n":' + "9" * 5000 + "}", '{"n":NaN}'),
    replaced("{}", '{"n":' + "[" * 900 + "]" * 900 + "}", '{"n":1e999}', '{"a":1,"a":2}'),
    replaced("input_required", "INPUT_REQUIRED", "complete", "x"),
    replaced('"resultType":', '"x":', '"resulttype":'),
    replaced('"inputRequests":', '"InputRequests":', '"inputRequests":{},"inputRequests":'),
    replaced('"inputRequests":{', '"inputRequests":{"a":[{"method":"roots/list"}],'),
    inserted(b"\xff", b"\xc1\xb2", b"\xed\xa0\x80", b"\0", b"\r", b"\xef\xbb\xbf"),
    inserted(b"\r", b"\xe2\x80\xa8", b"\x85", b"\x0b", b"\\", b"\\x6f", b"//", b"/**/", b"\t"),
    lambda _, text: b"\xef\xbb\xbf" + text.encode(),
    lambda _, text: text.encode() + b"\r" + text.encode(),
    lambda _, text: b'{"jsonrpc":"2.0","id":"c","result":[\r' + text.encode() + b"\r]}",
    lambda _, text: b'{"jsonrpc":"2.0","method":"n","params":{"a":\r' + text.encode() + b"\r}}",
    lambda _, text: f"[{text},[{text}],{text}]".encode(),
    lambda _, text: f'{{"jsonrpc":"2.0","id":3,"method":"x","params":{{"a":{text}}}}}'.encode(),
    lambda chance, text: flipped(chance, text.encode()),
    lambda _, text: text.encode("utf-16"),
    padded(PAD),
    padded(STREAM),
]  # fmt: skip


class Trial:
    """One run proxy between such a server and such a client; `leaks` is what the server learnt."""

    def __init__(self, era: str) -> None:
        self.harness = SessionHarness(API, profile=ServerProfile.SILENT)
        if era == "handshake":
            self.harness.shake_hands({"sampling": {}})
        self.harness.list_roots() if era == "handshake" else None
        self.era = era
        self.client = Careless()
        self.heard = bytearray()
        self.leaks: list[bytes] = []
        self.down = ClientOutput(self.harness.session, self.harness.out, self._hear)

    def say(self, line: bytes, chance: random.Random) -> None:
        """The client has a call open, and answers what else the server asked; now the server says
        this, in parts."""
        made = call("c") if self.era == "handshake" else call_2026("c", roots=True)
        self.harness.client(made)
        self.harness.server(request(chance.randrange(9), "sampling/createMessage", {}))
        at = chance.randrange(len(line) + 1)
        for part in (line[:at], line[at:] + b"\n"):
            self.down.take(part)
            self.down.flush()
        for _ in range(3):  # what it answers may lead to more
            self.harness.client()
            self.down.flush()
            heard, self.heard = bytes(self.heard), bytearray()
            for answer in self.client.read(heard):
                self.harness.client(answer)
            told = self.harness.raw_to_server()
            if PRIVATE.encode() in told.replace(b"\\/", b"/"):
                self.leaks.append(line)

    def _hear(self, data: bytes | bytearray) -> int:
        self.heard += data
        return len(data)


def leaks(sizes: Sizes, era: str) -> int:
    chance = random.Random(17)  # noqa: S311 - to be reproducible is its purpose
    trial = Trial(era)
    found = 0
    for number in range(sizes.pick(test=250, check=6_000, soak=18_000)):
        if number % 50 == 0:
            found += len(trial.leaks)
            trial = Trial(era)
        mutate = MUTATIONS[number % len(MUTATIONS)]
        trial.say(mutate(chance, questions(chance)).replace(b"\n", b""), chance)
    return found + len(trial.leaks)


@pytest.mark.parametrize("era", ["handshake", "2026"])
def test_no_encoding_of_a_question_leaks_a_folder(era: str, sizes: Sizes) -> None:
    assert leaks(sizes, era) == 0


@pytest.mark.parametrize("era", ["handshake", "2026"])
def test_checking_the_clients_lines_is_enough(
    era: str, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a line of the server that passes unread cannot bring a folder to it."""
    pass_on_all_of_the_server(monkeypatch)
    assert leaks(sizes, era) == 0


@pytest.mark.parametrize("era", ["handshake", "2026"])
def test_this_test_detects_a_proxy_that_trusts_its_client(
    era: str, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_on_all_of_the_server(monkeypatch)
    monkeypatch.setattr(input_required, "looks_like_roots_result", lambda _: False)
    monkeypatch.setattr(MessageRouter, "_take_server_id", lambda _, id_: id_)
    assert leaks(sizes, era) > 0


def pass_on_all_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and pass on the server's lines unchecked."""
    careful = MessageRouter.from_server

    def careless(self: MessageRouter, line: bytes, message: Any, now: float) -> bytes | None:  # noqa: ANN401
        found = careful(self, line, message, now)
        return line if isinstance(message, Malformed) else found

    monkeypatch.setattr(MessageRouter, "from_server", careless)
    monkeypatch.setattr(MessageRouter, "_refuse_roots_question", lambda *_: None)
    monkeypatch.setattr(input_required, "is_malformed_question", lambda _: False)
    strict = parse_strict

    def of_client(line: bytes) -> Any:  # noqa: ANN401
        return strict(line) if PRIVATE.encode() in line else parse(line)

    monkeypatch.setattr(session, "parse_strict", of_client)
