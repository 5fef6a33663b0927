"""Restoring a session at another daemon, line by line. Every id is answered once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.errors import DaemonUnreachable
from rootsd.proxy.bridge.session import BridgeOutput, BridgeSession, ProtocolVersionMismatch
from rootsd.wire.hello import MOVE_METHOD, Hello, ScopeRefused
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES
from rootsd.wire.requested_scope import RequestedScope
from support.bridges import INITIALIZE, META_2026, fault, notice, reply, request

Message = dict[str, Any]
ACCEPTED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"resources": {"listChanged": True, "subscribe": True}},
}
API = "roots://root/api"
GONE = DaemonUnreachable("gone", "rootsd up")


def messages(lines: bytes) -> list[Message]:
    return [json.loads(line) for line in lines.splitlines()]


def in_one_line(lines: bytes) -> list[Message]:
    """Return the messages of a line that answers a whole batch."""
    answers: list[Message] = json.loads(lines)
    return answers


def methods(lines: bytes) -> list[str]:
    return [message["method"] for message in messages(lines)]


def say(session: BridgeSession, *lines: bytes, forwarded: bool = True) -> None:
    for line in lines:
        session.from_client(line.rstrip(b"\n"), forwarded=forwarded)


def hear(session: BridgeSession, *lines: bytes) -> tuple[bytes, bytes]:
    """Return what goes to the client and to the daemon after `lines` of the daemon."""
    steps = [session.from_daemon(line.rstrip(b"\n")) for line in lines]
    return b"".join(step.to_client for step in steps), b"".join(step.to_daemon for step in steps)


def answer_all(session: BridgeSession, asked: bytes, **results: object) -> tuple[bytes, bytes]:
    """Answer all requests in the lines `asked`, with the result for their method, if any."""
    return hear(
        session,
        *(
            reply(message["id"], results.get(message["method"].replace("/", "_"), {}))
            for message in messages(asked)
            if "id" in message
        ),
    )


def initialized() -> BridgeSession:
    session = BridgeSession()
    say(session, request(0, "initialize", INITIALIZE))
    assert hear(session, reply(0, ACCEPTED))[0]
    say(session, notice("notifications/initialized"))
    return session


def moved(session: BridgeSession) -> bytes:
    """Lose the daemon, initialize the next one, and return what it gets after that."""
    session.connection_lost()
    asked = messages(session.connected().to_daemon)
    assert [message["method"] for message in asked] == ["initialize"]
    assert not session.forwards
    return hear(session, reply(asked[0]["id"], ACCEPTED))[1]


def test_only_queued_requests_go_to_the_first_daemon_without_a_hello() -> None:
    session = BridgeSession()
    assert session.forwards
    assert session.connected() == (b"", b"")
    session = BridgeSession()
    say(session, request(1, "ping"), request(2, "unheard/of"), forwarded=False)
    assert not session.is_full
    say(session, *(request(f"{n}", "ping") for n in range(254)), forwarded=False)
    assert session.is_full
    sent = session.connected().to_daemon
    assert sent.startswith(request(1, "ping") + request(2, "unheard/of"))


def test_an_unfinished_handshake_stays_unfinished() -> None:
    session = BridgeSession()
    say(session, request(0, "initialize", INITIALIZE))
    hear(session, reply(0, ACCEPTED))
    assert moved(session) == b""
    assert session.forwards


def test_an_unanswered_handshake_is_replayed_unchanged() -> None:
    session = BridgeSession()
    say(session, request(0, "initialize", INITIALIZE))
    session.connection_lost()
    assert session.connected().to_daemon == request(0, "initialize", INITIALIZE)
    assert hear(session, reply(0, ACCEPTED))[0]


def test_a_refused_handshake_is_not_replayed() -> None:
    session = BridgeSession()
    say(session, request(0, "initialize", INITIALIZE))
    hear(session, fault(0, -32602))
    session.connection_lost()
    assert session.connected().to_daemon == b""


def test_only_active_subscriptions_are_replayed() -> None:
    session = initialized()
    for id_, uri in ((1, "a"), (2, "b"), (3, "c")):
        say(session, request(id_, "resources/subscribe", {"uri": uri}))
    hear(session, reply(1, {}), fault(2, -32002), reply(3, {}))
    say(session, request(4, "resources/unsubscribe", {"uri": "c"}))
    hear(session, reply(4, {}))
    told = messages(moved(session))
    assert [message.get("params", {}).get("uri") for message in told] == [None, "a"]


def test_changes_are_announced_once_after_all_subscriptions_are_back() -> None:
    session = initialized()
    say(session, request(1, "resources/subscribe", {"uri": API}), request(2, "roots/list"))
    hear(session, reply(1, {}), reply(2, {"roots": []}))
    subscribe, listed = [line for line in messages(moved(session)) if "id" in line]
    assert hear(session, reply(subscribe["id"], {}))[0] == b""
    assert methods(hear(session, reply(listed["id"], {"roots": []}))[0]) == [
        "notifications/roots/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    assert hear(session, reply(7, {}))[0] == reply(7, {})


def test_a_failed_subscription_is_retried_when_resources_change() -> None:
    session = initialized()
    say(session, request(1, "resources/subscribe", {"uri": API}))
    hear(session, reply(1, {}))
    subscribe = messages(moved(session))[1]
    news, _ = hear(session, fault(subscribe["id"], -32002))
    assert methods(news) == [
        "notifications/resources/list_changed", "notifications/resources/updated",
    ]  # fmt: skip
    changed = notice("notifications/resources/list_changed")
    forwarded, asked = hear(session, changed)
    assert forwarded == changed
    assert messages(asked)[0]["params"] == {"uri": API}
    news, _ = answer_all(session, asked)
    assert messages(news)[0]["params"] == {"uri": API}
    assert hear(session, changed) == (changed, b"")


def test_cancelled_requests_are_not_replayed() -> None:
    session = BridgeSession()
    say(session, request(1, "ping"), request("1", "ping"), request(2, "ping"))
    say(session, notice("notifications/cancelled", {"requestId": 1}))
    say(session, notice("notifications/cancelled", {"requestId": None}))
    session.connection_lost()
    assert session.connected().to_daemon == request("1", "ping") + request(2, "ping")


def test_members_of_a_batch_are_replayed_one_by_one() -> None:
    session = BridgeSession()
    members = [request(1, "ping"), request(2, "tools/list"), b"7", notice("n"), request(3, "x/y")]
    say(session, b"[" + b",".join(member.strip() for member in members) + b"]")
    hear(session, reply(2, {}))
    assert (
        session.connection_lost() == b""
    )  # 3 is not asked again, and its answer waits for that to 1
    assert [message["id"] for message in messages(session.connected().to_daemon)] == [1]
    answers = in_one_line(hear(session, reply(1, {}))[0])
    assert [answer["id"] for answer in answers] == [None, 2, 3, 1]


def batch(*members: bytes) -> bytes:
    return b"[" + b",".join(member.strip() for member in members) + b"]\n"


def test_the_answer_to_a_batch_passes_unchanged_and_completes_its_requests() -> None:
    session = BridgeSession()
    say(session, batch(request(1, "ping"), request(2, "ping"), notice("n")))
    answers = batch(reply(2, {}), reply(1, {}))
    assert hear(session, answers) == (answers, b"")
    assert not session.awaits_answers


@pytest.mark.parametrize("forwarded", [True, False])
def test_answers_to_a_replayed_batch_reach_the_client_in_one_line(*, forwarded: bool) -> None:
    session = BridgeSession()
    asked = batch(request(1, "ping"), b"7", request(2, "ping"), request(3, "ping"))
    say(session, asked, forwarded=forwarded)
    session.connection_lost()
    session.connected()
    assert hear(session, reply(3, {})) == (b"", b"")
    assert hear(session, reply(1, {})) == (b"", b"")
    answers = in_one_line(
        session.from_client(
            notice("notifications/cancelled", {"requestId": 2}).strip(), forwarded=True
        )
    )
    assert [each["id"] for each in answers] == [None, 3, 1]
    assert not session.awaits_answers


def test_the_bridges_own_errors_join_the_answers_of_a_batch() -> None:
    session = BridgeSession()
    say(session, batch(request(1, "ping"), request(2, "x/y")))
    assert (
        session.connection_lost() == b""
    )  # 2 may not be asked again, and 1 still lacks its answer
    answers = in_one_line(session.fail_all(GONE))
    assert [each["id"] for each in answers] == [2, 1]


@pytest.mark.parametrize("members", [(b"7",), (b"7", notice("n"))])
def test_a_batch_without_requests_is_answered_without_a_daemon(members: tuple[bytes, ...]) -> None:
    answers = in_one_line(BridgeSession().from_client(batch(*members).strip(), forwarded=False))
    assert [each["error"]["code"] for each in answers] == [-32600]


def test_a_request_that_is_too_long_to_keep_is_not_replayed() -> None:
    session = BridgeSession()
    long = request(1, "resources/read", {"uri": "x" * 70_000})
    say(session, long)
    assert [message["id"] for message in messages(session.connection_lost())] == [1]
    say(session, long, forwarded=False)
    step = session.connected()
    assert messages(step.to_client)[0]["error"]["message"].startswith("the request is too long")
    assert step.to_daemon == b""


@pytest.mark.parametrize("hello", [Hello(client="x"), Hello(scope=RequestedScope(any_uri=True))])
def test_a_hello_without_a_scope_delays_nothing(hello: Hello) -> None:
    """An older daemon does not know it."""
    session = BridgeSession(hello)
    say(session, request(1, "ping"), forwarded=False)
    step = session.connected()
    assert methods(step.to_daemon) == ["rootsd/hello", "ping"]
    asked, _ = messages(step.to_daemon)
    assert session.forwards
    assert hear(session, reply(1, {}), fault(asked["id"], -32601)) == (reply(1, {}), b"")


def test_requests_wait_until_each_daemon_confirms_the_scope() -> None:
    session = BridgeSession(Hello(scope=RequestedScope(names=("api",))))
    say(session, request(0, "initialize", INITIALIZE), forwarded=False)
    start = {"anchor": "a", "approvals": 7, "added": []}
    for begun in (None, start):  # the next daemon learns when the session began
        assert not session.forwards
        hello = session.connected().to_daemon
        assert methods(hello) == ["rootsd/hello"]
        assert messages(hello)[0]["params"].get("start") == begun
        _, asked = answer_all(session, hello, rootsd_hello={"version": 1, "start": start})
        assert methods(asked) == ["initialize"]
        answer_all(session, asked, initialize=ACCEPTED)
        assert session.forwards
        session.connection_lost()


def test_a_scope_is_kept_even_if_the_next_daemon_refuses_it() -> None:
    session = BridgeSession(Hello(scope=RequestedScope(tags=("work",))))
    answer_all(session, session.connected().to_daemon)
    session.connection_lost()
    asked = messages(session.connected().to_daemon)[0]
    with pytest.raises(ScopeRefused, match="no such thing"):
        hear(session, fault(asked["id"], -32602, "no such thing"))


@pytest.mark.parametrize("answer", [{"protocolVersion": "2024-11-05"}, {}])
def test_a_different_protocol_version_is_an_error(answer: Message) -> None:
    session = initialized()
    session.connection_lost()
    asked = messages(session.connected().to_daemon)[0]
    with pytest.raises(ProtocolVersionMismatch):
        hear(session, reply(asked["id"], answer))


def test_a_stream_awaits_an_answer_only_until_it_is_open() -> None:
    session = BridgeSession()
    say(session, request(5, "subscriptions/listen", {"notifications": {}}))
    assert session.awaits_answers
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": 5}}
    hear(session, notice("notifications/subscriptions/acknowledged", meta))
    assert not session.awaits_answers
    assert session.fail_all(GONE) == b""
    assert reply(5, {}) == hear(session, reply(5, {}))[0]


def test_a_stream_is_reopened_under_its_id_and_then_changes_are_announced() -> None:
    session = BridgeSession()
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": [API]}
    listen = request("s", "subscriptions/listen", {"_meta": META_2026, "notifications": wanted})
    meta = {"io.modelcontextprotocol/subscriptionId": "s"}
    told = {"_meta": meta, "notifications": wanted}
    opened = notice("notifications/subscriptions/acknowledged", told)
    say(session, listen)
    assert hear(session, opened) == (opened, b"")
    session.connection_lost()
    assert session.connected().to_daemon == listen
    news = messages(hear(session, opened)[0])
    assert [(each["method"], each["params"]["_meta"]) for each in news] == [
        ("notifications/resources/list_changed", meta),
        ("notifications/resources/updated", meta),
    ]
    assert news[1]["params"]["uri"] == API


def test_an_oversized_line_is_answered_without_an_id() -> None:
    answer = messages(BridgeSession().refuse_oversized_line(1000))[0]
    assert answer["id"] is None
    assert answer["error"]["code"] == -32600


IDS = st.integers(0, 5) | st.sampled_from(["0", "1", "rootsd", "é"])
CALLS = st.sampled_from(["ping", "resources/list", "unheard/of", "subscriptions/listen"])
EVENTS = st.one_of(
    st.tuples(st.just("ask"), IDS, CALLS),
    st.tuples(st.just("answer"), st.integers(0, 9), st.none()),
    st.tuples(st.sampled_from(["lose", "fail"]), st.none(), st.none()),
)


class _World:
    """A client that sends requests, and daemons that answer and are lost."""

    def __init__(self) -> None:
        self.session = initialized()
        self.asked: list[object] = []
        self.answered: list[object] = []
        self.at_daemon: list[object] = []
        self.connected = True

    def client_hears(self, lines: bytes) -> None:
        self.answered += [line["id"] for line in messages(lines) if "id" in line]

    def ask(self, id_: object, method: str) -> None:
        if id_ in self.asked:
            return  # a client uses an id once
        self.asked.append(id_)
        say(self.session, request(id_, method), forwarded=self.connected)
        if self.connected:
            self.at_daemon.append(id_)

    def answer(self, index: int) -> None:
        if self.connected and self.at_daemon:
            id_ = self.at_daemon.pop(index % len(self.at_daemon))
            self.client_hears(hear(self.session, reply(id_, {}))[0])

    def lose(self) -> None:
        if self.connected:
            self.connected = False
            self.at_daemon.clear()
            self.client_hears(self.session.connection_lost())

    def give_up_and_connect(self) -> None:
        if not self.connected:
            self.client_hears(self.session.fail_all(GONE))
            self.connect()

    def connect(self) -> None:
        step = self.session.connected()
        self.client_hears(step.to_client)
        asked = messages(step.to_daemon)
        to_client, more = hear(self.session, reply(asked[0]["id"], ACCEPTED))
        self.client_hears(to_client)
        self.at_daemon += [line["id"] for line in messages(more) if "id" in line]
        self.connected = True


@given(st.lists(EVENTS, max_size=40))
def test_every_id_is_answered_once_across_any_losses(events: list[tuple[str, Any, Any]]) -> None:
    world = _World()
    for kind, first, second in events:
        match kind:
            case "ask":
                world.ask(first, second)
            case "answer":
                world.answer(first)
            case "lose":
                world.lose()
            case _:
                world.give_up_and_connect()
    if not world.connected:
        world.connect()
    while world.at_daemon:
        world.answer(0)
    assert sorted(map(repr, world.answered)) == sorted(map(repr, world.asked))
    assert not world.session.awaits_answers


def called_2026(id_: int, **more: object) -> bytes:
    """Return a call of a client of MCP 2026-07-28 with roots, without its newline."""
    meta = {**META_2026, "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    return request(id_, "tools/call", {"name": "list_roots", "_meta": meta, **more})[:-1]


def placed(session: BridgeSession, id_: int, *folders: str) -> tuple[bytes, bytes]:
    """Return what the daemon gets before a call, and the call, once the client was asked."""
    asked, line = session.ask_place(called_2026(id_), 0.0)
    assert line == b""
    (question,) = messages(asked.to_client)
    answers = {key: {"roots": [{"uri": f"file://{each}"} for each in folders]}
               for key in question["result"]["inputRequests"]}  # fmt: skip
    state = question["result"]["requestState"]
    again = called_2026(id_ + 1, inputResponses=answers, requestState=state)
    output, line = session.ask_place(again, 0.0)
    assert output.to_client == b""
    return output.to_daemon, line


def test_the_daemon_learns_where_a_session_works_before_a_call() -> None:
    session = BridgeSession()
    move, line = placed(session, 1, "/src/a%20b", "/src/lib")
    assert messages(move)[0]["params"] == {"folders": ["/src/a b", "/src/lib"]}
    assert messages(line)[0]["params"].keys() == {"name", "_meta"}
    assert placed(session, 3, "/src/a%20b", "/src/lib")[0] == b"", "it knows that"
    assert methods(session.connected().to_daemon)[-1] == "rootsd/move", "the next daemon, too"


def told_place(line: bytes) -> list[list[str]]:
    """Return the folders in the requests about the place of the session."""
    return [each["params"]["folders"] for each in messages(line) if each["method"] == MOVE_METHOD]


@pytest.mark.parametrize(
    "not_moved",
    [lambda id_: reply(id_, {"outside": ["/src/new"]}), lambda id_: fault(id_, -32603)],
    ids=["outside", "error"],
)
def test_a_place_that_the_daemon_does_not_take_is_told_again(
    not_moved: Callable[[object], bytes],
) -> None:
    session = BridgeSession()
    move, _ = placed(session, 1, "/src/new")
    hear(session, not_moved(messages(move)[0]["id"]))
    move, _ = placed(session, 3, "/src/new")
    assert told_place(move) == [["/src/new"]]
    hear(session, reply(messages(move)[0]["id"], {"outside": [], "start": None}))
    assert placed(session, 5, "/src/new")[0] == b"", "it was approved meanwhile"


def test_the_next_daemon_learns_a_place_that_the_last_one_took_in_part() -> None:
    session = initialized()
    move, _ = placed(session, 1, "/src/api", "/src/new")
    hear(session, reply(messages(move)[0]["id"], {"outside": ["/src/new"]}))
    session.connection_lost()
    (again,) = messages(session.connected().to_daemon)
    _, asked = hear(session, reply(again["id"], ACCEPTED))
    assert told_place(asked) == [["/src/api", "/src/new"]]


def test_a_client_that_closes_its_folders_is_back_where_it_began() -> None:
    session = BridgeSession()
    assert placed(session, 1)[0] == b"", "it is there"
    placed(session, 3, "/src/api")
    assert told_place(placed(session, 5)[0]) == [[]]


def test_a_place_that_is_heard_during_a_restoration_delays_no_notification() -> None:
    session = initialized()
    session.connection_lost()
    (again,) = messages(session.connected().to_daemon)
    assert placed(session, 1, "/src/api")[0] == b"", "the daemon has yet to answer the handshake"
    _, asked = hear(session, reply(again["id"], ACCEPTED))
    assert told_place(asked) == [["/src/api"]]
    assert methods(answer_all(session, asked)[0]) == ["notifications/resources/list_changed"]


def test_no_more_folders_are_told_than_the_daemon_reads() -> None:
    session = BridgeSession()
    folders = [f"/src/{number:0100}" for number in range(2_000)]
    move, _ = placed(session, 1, *folders)
    (told,) = told_place(move)
    assert told == folders[: len(told)]
    assert MAX_REQUEST_BYTES * 0.9 < len(move) <= MAX_REQUEST_BYTES + 1
    assert placed(session, 3, "/" + "x" * MAX_REQUEST_BYTES)[0] == b""
    session.connection_lost()
    assert told_place(session.connected().to_daemon) == []


def older_session() -> BridgeSession:
    """Return the session of a client with roots that speaks MCP 2025-11-25."""
    session = BridgeSession()
    say(session, request(0, "initialize", {"capabilities": {"roots": {}}}))
    say(session, notice("notifications/initialized"))
    return session


def called(session: BridgeSession, line: bytes, now: float = 0.0) -> tuple[BridgeOutput, bytes]:
    return session.ask_place(line[:-1], now)


def test_each_call_of_an_older_client_waits_for_an_answer_to_a_later_question() -> None:
    session = older_session()
    first, second, third = (request(number, "tools/call", {"name": "x"}) for number in (1, 2, 3))
    asked, line = called(session, first)
    (question,) = messages(asked.to_client)
    assert (question["method"], line) == ("roots/list", b"")
    assert called(session, second) == called(session, third) == (BridgeOutput(), b"")
    assert called(session, request(4, "ping")) == (BridgeOutput(), request(4, "ping"))
    assert called(session, notice("notifications/cancelled", {"requestId": 3})) == (
        BridgeOutput(),
        b"",
    )
    said, line = called(session, reply(question["id"], {"roots": [{"uri": "file:///a%20b"}]}))
    assert (messages(said.to_daemon)[0]["params"], line) == ({"folders": ["/a b"]}, first)
    (question,) = messages(said.to_client)
    said, line = called(session, reply(question["id"], {"roots": [{"uri": "file:///c"}]}))
    assert (messages(said.to_daemon)[0]["params"], line) == ({"folders": ["/c"]}, second)
    assert said.to_client == b""
    assert called(session, reply(question["id"], {"roots": []})) == (BridgeOutput(), b"")


def test_a_call_of_an_older_client_that_answers_no_more_gets_an_error() -> None:
    session = older_session()
    asked, _ = called(session, request(1, "tools/call", {"name": "x"}))
    called(session, reply(messages(asked.to_client)[0]["id"], {"roots": [{"uri": "file:///a"}]}))
    asked, _ = called(session, request(2, "tools/call", {"name": "x"}))
    assert session.tick(0.9) == (BridgeOutput(), b"")
    assert session.deadline == 1.0
    said, lines = session.tick(1.0)
    (error,) = messages(said.to_client)
    assert (error["id"], "did not answer" in error["error"]["message"], lines) == (2, True, b"")
    late = reply(messages(asked.to_client)[0]["id"], {"roots": [{"uri": "file:///a"}]})
    assert called(session, late)[1] == b""
    assert (session.deadline, session.awaits_answers) == (math.inf, True), "of initialize"


def test_the_calls_of_an_older_client_that_never_answers_are_held_once() -> None:
    session = older_session()
    calls = [request(number, "tools/call", {"name": "x"}) for number in (1, 2, 3)]
    for call in calls[:2]:
        called(session, call)
    assert session.tick(1.0) == (BridgeOutput(), calls[0] + calls[1])
    assert called(session, calls[2]) == (BridgeOutput(), calls[2])


def call_of(id_: object, **arguments: object) -> bytes:
    return request(id_, "tools/call", {"name": "x", **arguments})


def test_the_calls_of_a_slow_client_are_held_again_once_it_has_answered() -> None:
    session = older_session()
    asked, _ = called(session, call_of(1))
    assert session.tick(1.0)[1] == call_of(1)
    assert called(session, call_of(2), 5.0) == (BridgeOutput(), call_of(2))
    late = reply(messages(asked.to_client)[0]["id"], {"roots": [{"uri": "file:///a"}]})
    said, line = called(session, late, 9.0)
    assert (told_place(said.to_daemon), line) == ([["/a"]], b"")
    asked, line = called(session, call_of(3), 9.0)
    assert (methods(asked.to_client), line) == (["roots/list"], b"")


def test_a_client_whose_first_answer_is_an_error_is_asked_again() -> None:
    session = older_session()
    asked, _ = called(session, call_of(1))
    (question,) = messages(asked.to_client)
    assert called(session, fault(question["id"], -32603)) == (BridgeOutput(), call_of(1))
    asked, line = called(session, call_of(2))
    assert line == b""
    (question,) = messages(asked.to_client)
    said, line = called(session, reply(question["id"], {"roots": [{"uri": "file:///a"}]}))
    assert (told_place(said.to_daemon), line) == ([["/a"]], call_of(2))


def test_a_batch_answers_the_question_and_cancels_held_calls() -> None:
    session = older_session()
    asked, _ = called(session, call_of(1))
    called(session, call_of(2))
    cancelled = batch(notice("notifications/cancelled", {"requestId": 1}))
    assert called(session, cancelled) == (BridgeOutput(), cancelled)
    (question,) = messages(asked.to_client)
    answer = batch(reply(question["id"], {"roots": [{"uri": "file:///a"}]}), call_of(3))
    said, lines = called(session, answer)
    assert (told_place(said.to_daemon), lines) == ([["/a"]], answer)
    assert methods(said.to_client) == ["roots/list"]
    assert session.tick(1.0)[0].to_client, "call 2 is still held"


def test_held_calls_are_bounded_in_number_and_size() -> None:
    session = older_session()
    size = len(call_of(1000, text=""))
    longest = MAX_REQUEST_BYTES + 1 - size
    for number in range(1000, 1015):
        called(session, call_of(number, text="x" * longest))
    for id_, length, reason in ((1015, longest, "too many"), (1016, longest + 1, "too long")):
        said, line = called(session, call_of(id_, text="x" * length))
        (error,) = messages(said.to_client)
        assert (error["id"], reason in error["error"]["message"], line) == (id_, True, b"")
    session = older_session()
    for number in range(256):
        called(session, call_of(number))
    said, _ = called(session, call_of(256))
    assert "too many calls" in messages(said.to_client)[0]["error"]["message"]


def test_a_second_call_with_the_id_of_a_held_one_is_refused() -> None:
    session = older_session()
    called(session, call_of(1))
    said, line = called(session, call_of(1, text="the second"))
    (error,) = messages(said.to_client)
    assert ("still open" in error["error"]["message"], line) == (True, b"")
    assert session.tick(1.0)[1] == call_of(1)


def test_a_client_without_roots_is_not_asked() -> None:
    session = BridgeSession()
    for line in (request(1, "tools/call", {"name": "x"}), request(2, "ping")):
        assert session.ask_place(line[:-1], 0.0) == (BridgeOutput(), line)
