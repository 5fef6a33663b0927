"""Servers that both official SDKs accept, although their lines are not strict JSON-RPC."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rootsd.proxy.run import client_queue, session
from rootsd.proxy.run.loop import ClientOutput
from rootsd.proxy.run.readiness import ServerProfile
from rootsd.wire.jsonrpc import Malformed, parse_repaired, parse_strict
from support.bridges import INITIALIZE, notice, reply, request
from support.run_session_harness import API, SessionHarness, call, call_2026

Message = dict[str, Any]

RESPONSES = [
    '{"jsonrpc":"2.0","id":"#","result":{"n":1}}',
    '{"jsonrpc":"2.0","id":"#.0","result":{"n":1}}',
    '{"jsonrpc":"2.0","id":#.0,"result":{"n":1}}',
    '{"jsonrpc":"2.0","id":#.000e0,"result":{"n":1}}',
    '{"jsonrpc":"2.0","id":#,"result":{"n":1},"error":null}',
    '{"jsonrpc":"2.0","id":#,"method":null,"params":null,"result":{"n":1},"error":null}',
    '{"jsonrpc":"2.0","id":#,"result":{"n":2},"result":{"n":1}}',
    '{"jsonrpc":"2.0","id":77,"id":#,"result":{"n":1}}',
    '{"jsonrpc":"2.0","id":#,"result":{"n":2,"n":1}}',
    '{"jsonrpc":"2.0","id":#,"ID":5,"result":{"n":1}}',
    '{"jsonrpc":"2.0","error":null,"result":{"n":1},"id":"#"}',
    '[{"jsonrpc":"2.0","id":"#","result":{"n":1},"error":null}]',
    '{"jsonrpc":"2.0",\r"id":#,"result":{"n":1}}',
]


def one(harness: SessionHarness) -> Message:
    """Return the one message that the client got, which every parser reads in the same way."""
    line = harness.raw_to_client()
    assert not isinstance(parse_strict(line.strip()), Malformed)
    found: Any = json.loads(line)
    answer: Message = found[0] if isinstance(found, list) else found
    return answer


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("id_", [0, 7])
def test_the_client_gets_its_own_id_and_one_meaning(response: str, id_: int) -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.client(request(id_, "initialize", INITIALIZE), request("next", "tools/list"))
    assert [each["id"] for each in harness.to_server()] == [id_]
    harness.server(response.replace("#", str(id_)).encode())
    answer = one(harness)
    assert (repr(answer["id"]), answer["result"]) == (repr(id_), {"n": 1})
    assert [each["id"] for each in harness.to_server()] == ["next"], "nothing is held any more"


@pytest.mark.parametrize("response", RESPONSES)
def test_this_test_detects_a_proxy_that_wants_strict_servers(
    response: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "parse_repaired", lambda line: (line, parse_strict(line)))
    monkeypatch.setattr("rootsd.wire.jsonrpc.same_id", lambda id_, _: id_)
    with pytest.raises((AssertionError, KeyError, ValueError, IndexError)):
        test_the_client_gets_its_own_id_and_one_meaning(response, 7)


def test_this_test_detects_a_line_with_a_second_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that passes on the line as the server wrote it leaves the choice to the client."""
    monkeypatch.setattr(session, "parse_repaired", lambda line: (line, parse_repaired(line)[1]))
    for response in RESPONSES:
        if response.count("result") == 2 or response.count('"n"') == 2:
            with pytest.raises(AssertionError):
                test_the_client_gets_its_own_id_and_one_meaning(response, 7)


@pytest.mark.parametrize(
    ("asked", "answered"), [(1, '"1"'), (1, "1.0"), ("1", "1"), ("1", "1.0"), (-3, '"-3"')]
)
def test_ids_match_by_value(asked: object, answered: str) -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.shake_hands()
    for made in (call(asked), call_2026(asked)):
        harness.client(made)
        harness.server(b'{"jsonrpc":"2.0","id":%s,"result":{}}' % answered.encode())
        assert repr(one(harness)["id"]) == repr(asked)
        assert not harness.session.pending_responses


def test_two_ids_with_one_value_stay_two() -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.shake_hands()
    harness.client(call(1), call("1"))
    for id_ in ("1", 1):
        harness.server(reply(id_, {}))
        assert harness.raw_to_client() == reply(id_, {})
    assert not harness.session.pending_responses


@pytest.mark.parametrize(
    "id_", ["1_0", "\uff11", "0x1", "1e0", "nan", "1.5", "--1", "1" * 400, ""]
)
def test_text_that_is_no_number_matches_no_number(id_: str) -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.shake_hands()
    harness.client(call(1), call(10))
    harness.server(reply(id_, {}))
    assert harness.raw_to_client() == reply(id_, {})
    assert harness.session.pending_responses == 2


@pytest.mark.parametrize(
    "response",
    [
        '{"jsonrpc":"2.0","id":{},"result":{}}',
        '{"jsonrpc":"2.0","id":null,"result":{}}',
        '{"jsonrpc":"2.0","result":{}}',
        '{"jsonrpc":"2.0","id":7.5,"result":{}}',
        '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}',
        '{"jsonrpc":"2.0","id":7.0,"result":NaN}',
        '{"jsonrpc":"2.0","id":7,"error":"no"}',
        '{"jsonrpc":"2.0","id":"7","error":null}',
        '{"jsonrpc":"2.0", "id": [7], "result":{',
        '{"jsonrpc":"1.0","id":7,"result":{}}',
        '{"id":"7","result":{}}',
        '{"jsonrpc":"2.0","id":99,"result":{}}',
        '{"result":' + "[" * 200 + "]" * 200 + ',"jsonrpc":"2.0","id":"7"}',
    ],
)
def test_a_response_that_cannot_go_on_holds_nothing(response: str) -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    harness.client(request(7, "initialize", INITIALIZE), request("next", "tools/list"))
    harness.raw_to_server()
    harness.server(response.encode())
    assert [each["id"] for each in harness.to_server()] == ["next"]
    answer = one(harness)
    if answer["id"] != 99:  # an id that nobody gave goes on as it is
        assert (answer["id"], "error" in answer) == (7, True)


def test_a_restarted_server_that_answers_the_handshake_wrongly_holds_nothing() -> None:
    harness = SessionHarness(API, words=("server", "{roots}"), profile=ServerProfile.SILENT)
    harness.shake_hands()
    harness.approve()
    harness.client(call(1))
    harness.another()
    assert [each["method"] for each in harness.to_server()] == ["initialize"]
    harness.server(b'{"jsonrpc":"2.0","id":{},"result":{}}')
    assert [each.get("id") for each in harness.to_server()] == [None, 1]


def test_a_request_of_the_server_gets_the_id_that_it_means() -> None:
    harness = SessionHarness(API)
    harness.shake_hands({"sampling": {}})
    harness.server(b'{"jsonrpc":"2.0","id":4.0,"method":"sampling/createMessage","params":null}')
    assert one(harness)["id"] == 4
    harness.client(b'{"jsonrpc":"2.0","id":4.0,"result":{"a":1,"a":2},"error":null}')
    (answer,) = harness.to_server()
    assert answer == {"jsonrpc": "2.0", "id": 4, "result": {"a": 2}}
    harness.server(b'{"jsonrpc":"2.0","id":5.0,"method":"roots/list","method":"roots/list"}')
    assert [each["id"] for each in harness.to_server()] == [5]


def test_long_responses_with_another_form_of_the_id_are_read_whole() -> None:
    harness = SessionHarness(API, profile=ServerProfile.SILENT)
    heard = bytearray()

    def write(data: bytes | bytearray) -> int:
        heard.extend(data)
        return len(data)

    down = ClientOutput(harness.session, harness.out, write)
    harness.client(request(0, "initialize", INITIALIZE))
    down.take(b'{"result":{},"jsonrpc":"2.0","id":"0"}\n')
    harness.client(notice("notifications/initialized"), call(7))
    down.take(b'{"result":"' + b"x" * 200_000)
    down.take(b'","jsonrpc":"2.0","id":"7"}\n')
    down.flush()
    assert [json.loads(line)["id"] for line in heard.splitlines()] == [0, 7]
    assert not harness.session.pending_responses


# Requests that the client has given up


def held(*lines: bytes) -> SessionHarness:
    """Return a session that holds a call for its server, with these lines behind it."""
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(call(1), *lines)
    return harness


def cancelled(id_: object) -> bytes:
    return notice("notifications/cancelled", {"requestId": id_})


def test_a_held_call_that_is_cancelled_never_runs() -> None:
    harness = held(request(2, "tools/list"), cancelled(1))
    assert [each["id"] for each in harness.to_server()] == [2], "it holds nothing any more"
    assert harness.raw_to_client() == b""
    harness.wait(5.0)
    assert harness.raw_to_server() == b""
    assert harness.session.backlog == 0


def test_this_test_detects_a_cancelled_call_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_queue.ClientQueue, "cancel", lambda *_: False)
    with pytest.raises(AssertionError):
        test_a_held_call_that_is_cancelled_never_runs()


@pytest.mark.parametrize("id_", [2, "1", None, True, {}])
def test_only_the_cancelled_call_is_removed(id_: object) -> None:
    harness = held(call(2), call(3), cancelled(id_))
    harness.wait(5.0)
    sent = [each["id"] for each in harness.to_server() if "id" in each]
    assert sent == ([1, 3] if id_ == 2 else [1, 2, 3])


def test_a_cancelled_member_of_a_held_batch_is_removed() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(b"[" + call(1).strip() + b"," + call(2).strip() + b"]", cancelled(2))
    harness.wait(5.0)
    assert harness.raw_to_server() == b"[" + call(1).strip() + b"]\n"
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(b"[" + call(1).strip() + b"]", request(2, "tools/list"), cancelled(1))
    assert [each["id"] for each in harness.to_server()] == [2]


def test_a_ping_does_not_wait_behind_a_held_call() -> None:
    harness = held(request(2, "tools/list"), request(3, "ping"))
    assert [each["id"] for each in harness.to_server()] == [3]
    harness.wait(5.0)
    assert [each["id"] for each in harness.to_server()] == [1, 2]


def test_a_request_that_is_cancelled_during_a_restart_is_not_sent_again() -> None:
    harness = SessionHarness(API, words=("server", "{roots}"), profile=ServerProfile.SILENT)
    harness.shake_hands()
    harness.client(request(1, "tools/list"))
    harness.approve()
    harness.client(call(2))
    harness.another()
    harness.client(cancelled(1))
    (again,) = [each for each in harness.to_server() if each.get("method") == "initialize"]
    harness.server(reply(again["id"], {}))
    assert [each["id"] for each in harness.to_server() if "id" in each] == [2]
