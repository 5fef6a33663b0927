"""The router: `rootsd/hello`, `roots/list`, batches, and hostile lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.errors import Busy
from rootsd.core.model import ProjectKind
from rootsd.mcp.responses import MAX_BATCH_MESSAGES
from support.bridges import META_2026
from support.list_roots_output import listed as listed_in
from support.mcp_harness import FakeSource, Peer, connected, root

API = root("/src/api", tags=("work",))
META = {"rootsd/kind": "git", "rootsd/access": "read-write", "rootsd/tags": ["work"]}


async def test_a_peer_that_lists_roots_gets_mcp_roots_and_then_notifications() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.write(b'{"method":"roots/list","jsonrpc":"2.0","id":0}')
        assert await peer.hear() == {
            "jsonrpc": "2.0",
            "id": 0,
            "result": {"roots": [{"uri": "file:///src/api", "name": "api", "_meta": META}]},
        }
        source.publish()
        assert await peer.hear() == {
            "jsonrpc": "2.0",
            "method": "notifications/roots/list_changed",
        }
        assert (await peer.ask("roots/list"))["result"] == {"roots": []}


async def test_the_roots_that_a_run_proxy_reports_are_observed_with_escaped_names() -> None:
    async with connected(FakeSource(root("/src/api"))) as peer:
        await peer.say("rootsd/told", {"roots": 2, "names": ["api", "b\x1b[2J"]})
        await peer.say("rootsd/told", {"roots": "x"})
        assert "result" in await peer.ask("roots/list")
        ((roots, names),) = peer.seen.reported
        assert (roots, names[0]) == (2, "api")
        assert "\x1b" not in names[1]


async def test_a_failing_source_is_an_error_with_a_remedy() -> None:
    source = FakeSource(API)
    source.error = Busy("the store is being restored", "rootsd status")
    async with connected(source) as peer:
        error = (await peer.ask("roots/list"))["error"]
    assert error == {
        "code": -32603,
        "message": "the store is being restored",
        "data": {"reason": "busy", "remedy": "rootsd status"},
    }


@pytest.mark.parametrize("era", ["handshake", "2026"])
async def test_a_bug_is_logged_and_fails_its_own_request_only_without_details(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.shake_hands()
        ask = peer.ask_2026 if era == "2026" else peer.ask
        source.error = ZeroDivisionError("secret")
        error = (await ask("tools/call", {"name": "list_roots"}))["error"]
        source.error = None
        assert "result" in await ask("tools/call", {"name": "list_roots"})
    reason = "a bug in rootsd; see its log"
    assert error == {"code": -32603, "message": "internal error", "data": {"reason": reason}}
    assert "answering tools/call failed" in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text


@pytest.mark.parametrize("method", ["a\x1b/b", "prompts/list", "logging/setLevel", "roots/set"])
async def test_unknown_methods_are_errors_with_a_reason(method: str) -> None:
    shown = method.replace("\x1b", "\\u{1b}")
    async with connected(FakeSource()) as peer:
        await peer.shake_hands()
        for ask in (peer.ask, peer.ask_2026):
            error = (await ask(method, {"level": "info"}))["error"]
            assert error["code"] == -32601
            reason = f"{shown} is not available in the protocol revision of this request"
            assert error["data"] == {"reason": reason}


def batch(*members: object) -> bytes:
    return json.dumps(members).encode()


def call(id_: object, method: str, params: object = None) -> dict[str, Any]:
    more = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id_, "method": method, **more}


NOTICE = {"jsonrpc": "2.0", "method": "x"}


async def test_a_batch_is_answered_in_one_line() -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.shake_hands("2025-03-26")
        listing = call("c", "tools/call", {"name": "list_roots"})
        await peer.write(
            batch(call("a", "ping"), NOTICE, 7, call("b", "roots/list"), listing, call("d", "x/y"))
        )
        answers: Any = await peer.hear()
        assert sorted(answer["id"] or "" for answer in answers) == ["", "a", "b", "c", "d"]
        errors = {each["id"]: each["error"]["code"] for each in answers if "error" in each}
        assert errors == {None: -32600, "d": -32601}
        assert (await peer.ask("ping"))["id"] == 1


@pytest.mark.parametrize(
    ("members", "ids"),
    [([7, [], {}], [None] * 3), ([7, NOTICE], [None]), ([call("a", "ping")], ["a"])],
)
async def test_each_request_of_a_batch_has_an_answer(
    members: list[object], ids: list[str]
) -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.write(batch(*members))
        answers: Any = await peer.hear()
        assert [each["id"] for each in answers] == ids


async def test_a_batch_of_notifications_has_no_answer() -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.write(batch(NOTICE, NOTICE), batch({**NOTICE, "id": 1, "method": "ping"}))
        answers: Any = await peer.hear()
        assert [each["id"] for each in answers] == [1]


async def test_a_batch_waits_for_its_slowest_request_and_delays_no_other_request() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.shake_hands("2025-03-26")
        request = {"name": "request_root", "arguments": {"path": "/src/web", "reason": "r"}}
        await peer.write(batch(call("slow", "tools/call", request), call("a", "ping")))
        assert (await peer.ask("ping"))["id"] == 1
        source.publish(API, root("/src/web"))
        answers: Any = await peer.hear()
        while not isinstance(answers, list):  # the notification of the change
            answers = await peer.hear()
        assert [each["id"] for each in answers] == ["a", "slow"]


async def test_a_canceled_request_is_missing_from_the_answer_to_its_batch() -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.shake_hands("2025-03-26")
        request = {"name": "request_root", "arguments": {"path": "/src/web", "reason": "r"}}
        await peer.write(batch(call("slow", "tools/call", request), call("a", "ping")))
        assert (await peer.ask("ping"))["id"] == 1
        await peer.say("notifications/cancelled", {"requestId": "slow"})
        answers: Any = await peer.hear()
        assert [each["id"] for each in answers] == ["a"]


async def test_a_batch_of_too_many_messages_is_one_error() -> None:
    async with connected(FakeSource(API)) as peer:
        most = [call(number, "ping") for number in range(MAX_BATCH_MESSAGES)]
        await peer.write(batch(*most))
        answers: Any = await peer.hear()
        assert len(answers) == MAX_BATCH_MESSAGES
        await peer.write(batch(*most, NOTICE))
        assert (await peer.hear())["error"]["code"] == -32600


async def test_batch_answers_above_the_size_limit_become_errors() -> None:
    many = tuple(root(f"/src/{'x' * 200}{number}") for number in range(5_000))
    async with connected(FakeSource(*many)) as peer:
        await peer.write(batch(*(call(number, "roots/list") for number in range(20))))
        answers: Any = await peer.hear()
    assert [each["id"] for each in answers] == list(range(20))
    refused = ["too large" in each.get("error", {}).get("message", "") for each in answers]
    assert refused == sorted(refused)
    assert 0 < sum(refused) < 20


VERSION, CAPABILITIES = META_2026


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "server/discover"])
@pytest.mark.parametrize(
    ("meta", "missing"),
    [
        (None, [VERSION, CAPABILITIES]),
        ({}, [VERSION, CAPABILITIES]),
        (7, [VERSION, CAPABILITIES]),
        ({VERSION: "2026-07-28"}, [CAPABILITIES]),
        ({CAPABILITIES: {}}, [VERSION]),
        ({"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}}, [*META_2026]),
    ],
)
async def test_an_error_names_the_required_meta_keys_that_are_missing(
    method: str, meta: object, missing: list[str]
) -> None:
    params = {} if meta is None else {"_meta": meta}
    async with connected(FakeSource(API)) as peer:
        for asked in (params, None) if meta is None else (params,):
            error = (await peer.ask(method, asked))["error"]
            assert (error["code"], error["data"]["missing"]) == (-32602, missing)
            assert all(key in error["message"] for key in missing)


@pytest.mark.parametrize("key", [CAPABILITIES, "io.modelcontextprotocol/clientInfo"])
async def test_meta_of_the_wrong_type_is_an_error(key: str) -> None:
    async with connected(FakeSource(API)) as peer:
        answer = await peer.ask("tools/list", {"_meta": {**META_2026, key: 7}})
        assert answer["error"]["code"] == -32602
        assert f"{key} is not an object" in answer["error"]["message"]


async def test_after_a_handshake_meta_is_needed_only_if_a_part_of_it_is_there() -> None:
    async with connected(FakeSource(API)) as peer:
        assert (await peer.ask("tools/list"))["error"]["code"] == -32602
        await peer.shake_hands()
        assert "result" in await peer.ask("tools/list")
        assert "result" in await peer.ask("tools/list", {"_meta": {"progressToken": 7}})
        error = (await peer.ask("tools/list", {"_meta": {CAPABILITIES: {}}}))["error"]
        assert (error["code"], error["data"]["missing"]) == (-32602, [VERSION])
        error = (await peer.ask("server/discover"))["error"]
        assert error["code"] == -32602
        error = (await peer.ask("resources/read", {"uri": 7}))["error"]
        assert (error["code"], error["data"]) == (-32602, "")


HOSTILE: list[tuple[bytes, Any, int]] = [
    (b"{", None, -32700),
    (b"[" * 60_000, None, -32700),
    (b"[]", None, -32600),
    (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', 4, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":4,"method":["ping"]}', 4, -32600),
    (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[]}', 4, -32602),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"\\ud800"}}', 4, -32600),
    (b'{"jsonrpc":"2.0","id":"\\udfff","method":"ping"}', "\udfff", -32600),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":7}}', 4, -32602),
    (b'{"jsonrpc":"2.0","id":4,"method":"initialize"}', 4, -32602),
]


@pytest.mark.parametrize(("line", "id_", "code"), HOSTILE)
async def test_hostile_lines_are_answered_and_the_connection_stays_open(
    line: bytes, id_: object, code: int
) -> None:
    async with connected(FakeSource()) as peer:
        await peer.write(line)
        answer = await peer.hear()
        assert (answer["id"], answer["error"]["code"]) == (id_, code)
        assert (await peer.ask("ping", id_="after"))["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  \r",
        b'{"jsonrpc":"2.0","id":4,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":7}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress"}',
    ],
)
async def test_lines_that_need_no_answer_get_none(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(FakeSource()) as peer:
        await peer.shake_hands()
        await peer.write(line)
        assert (await peer.ask("ping", id_="after"))["id"] == "after"
    assert not caplog.records, "a peer must not be able to fill the log"


async def test_ids_keep_their_type_and_a_whole_surrogate_pair_is_allowed() -> None:
    async with connected(FakeSource()) as peer:
        for id_ in (0, "0", "", -1, 2**70):
            await peer.say("ping", id_=id_)
            assert (await peer.hear())["id"] == id_
        await peer.write(b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00","method":"ping"}')
        assert (await peer.hear())["id"] == "\N{GRINNING FACE}"


async def test_an_open_id_cannot_be_used_again_until_it_is_canceled() -> None:
    wanted = {"notifications": {"resourcesListChanged": True}, "_meta": META_2026}
    async with connected(FakeSource()) as peer:
        await peer.ask("subscriptions/listen", wanted, id_=5)
        assert (await peer.ask_2026("tools/list", id_=5))["error"]["code"] == -32600
        await peer.say("notifications/cancelled", {"requestId": 5})
        assert "tools" in (await peer.ask_2026("tools/list", id_=5))["result"]


async def test_the_number_of_open_streams_is_bounded() -> None:
    wanted = {"notifications": {"resourcesListChanged": True}, "_meta": META_2026}
    async with connected(FakeSource()) as peer:
        for number in range(16):
            await peer.ask("subscriptions/listen", wanted, id_=number)
        assert (await peer.ask("subscriptions/listen", wanted, id_=99))["error"]["code"] == -32603
        assert "tools" in (await peer.ask_2026("tools/list", id_=100))["result"]


async def test_many_requests_at_once_are_all_answered() -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.shake_hands()
        for number in range(500):
            await peer.say("ping", id_=number)
        answered = {(await peer.hear())["id"] for _ in range(500)}
    assert answered == set(range(500))


async def test_a_hello_is_answered_and_names_the_client() -> None:
    async with connected(FakeSource()) as peer:
        answer = await peer.ask("rootsd/hello", {"version": 1, "client": "my editor"}, id_="h")
        assert (answer["id"], answer["result"]["version"]) == ("h", 1)
        await peer.shake_hands()
        assert peer.seen.names == ["my editor"]


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {"version": 0},
        {"version": 1, "client": 7},
        {"version": 1, "scope": {"names": "api"}},
        {"version": 1, "scope": {"cwd": "src"}},
        {"version": 1, "scope": {"cwd": "/src\0"}},
        {"version": 1, "scope": {"any_uri": "yes"}},
        {"version": 2, "unheard_of": True},
    ],
)
async def test_an_invalid_hello_is_an_error(params: object) -> None:
    async with connected(FakeSource(API)) as peer:
        error = (await peer.ask("rootsd/hello", params))["error"]
        assert error["code"] == -32602
        assert error["data"]["version"] == 1


WEB = root("/src/web")
DOCS = root("https://a.example/v1", name="docs", kind=ProjectKind.URI)


@pytest.mark.parametrize(
    ("scope", "listed", "mcp_roots"),
    [
        ({"names": ["web", "nobody"]}, ["web"], ["web"]),
        ({"tags": ["work"]}, ["api"], ["api"]),
        ({"names": ["web"], "tags": ["work"]}, ["api", "web"], ["api", "web"]),
        ({"cwd": "/link/lib"}, ["web"], ["web"]),
        ({"cwd": "/"}, [], []),
        ({"any_uri": True}, ["api", "docs", "web"], ["api", "docs", "web"]),
        ({"names": ["docs"]}, ["docs"], []),
        ({"names": ["docs"], "any_uri": True}, ["docs"], ["docs"]),
    ],
)
async def test_the_scope_of_a_hello_applies_to_every_answer(
    scope: dict[str, Any], listed: list[str], mcp_roots: list[str]
) -> None:
    source = FakeSource(API, DOCS, WEB)
    source.links[b"/link"] = b"/src/web"
    async with connected(source) as narrow, connected(source) as wide:
        assert "result" in await narrow.ask("rootsd/hello", {"version": 1, "scope": scope})
        assert len(narrow.seen.scopes) == 1
        roots = (await narrow.ask("roots/list"))["result"]["roots"]
        assert [each["name"] for each in roots] == mcp_roots
        found = (await narrow.ask_2026("resources/list"))["result"]["resources"]
        assert [each["name"] for each in found] == ["approved", *listed]
        tool = (await narrow.ask_2026("tools/call", {"name": "list_roots"}))["result"]
        assert list(listed_in(tool)) == listed
        text = (await narrow.ask_2026("resources/read", {"uri": "roots://approved"}))["result"]
        shown = json.loads(text["contents"][0]["text"])["roots"]
        assert [each["name"] for each in shown] == mcp_roots
        everything = (await wide.ask("roots/list"))["result"]["roots"]
        assert [each["name"] for each in everything] == ["api", "web"]


async def test_a_connection_is_not_notified_of_roots_outside_its_scope() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"names": ["web"]}})
        await peer.ask("roots/list")
        source.publish()
        assert "result" in await peer.ask("ping")
        source.publish(WEB)
        assert (await peer.hear())["method"] == "notifications/roots/list_changed"
        assert len((await peer.ask("roots/list"))["result"]["roots"]) == 1


async def test_a_hello_after_other_requests_is_an_error() -> None:
    async with connected(FakeSource()) as peer:
        await peer.ask("ping")
        assert (await peer.ask("rootsd/hello", {"version": 1}))["error"]["code"] == -32600


@pytest.mark.parametrize("meta", [None, {}, {VERSION: "2026-07-28"}, {VERSION: 7}, META_2026])
async def test_an_unknown_method_is_not_found_also_without_a_handshake(
    meta: dict[str, object] | None,
) -> None:
    params = {} if meta is None else {"_meta": dict(meta)}
    async with connected(FakeSource()) as peer:
        for method in ("no/such", "roots/unknown", "prompts/list", "logging/setLevel"):
            assert (await peer.ask(method, params))["error"]["code"] == -32601
        assert (await peer.ask("tools/list", {}))["error"]["code"] == -32602, "a known one"


async def test_a_message_right_after_initialize_finds_the_handshake_done() -> None:
    client = {"name": "a test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    async with connected(FakeSource()) as peer:
        lines = (call(1, "initialize", hello), call(2, "tools/list"))
        await peer.write(*(json.dumps(line).encode() for line in lines))
        answers = [await peer.hear(), await peer.hear()]
        assert [each["id"] for each in answers if "result" in each] == [1, 2]


@pytest.mark.parametrize("leaf", [b'"\\ud800"', b"1"])
@pytest.mark.parametrize("method", [b"ping", b"tools/call", b"rootsd/hello", b"no/such"])
async def test_no_depth_of_nesting_ends_the_connection(leaf: bytes, method: bytes) -> None:
    async with connected(FakeSource()) as peer:
        await peer.shake_hands()
        for depth in range(0, 3_000, 37):
            nested = b"[" * depth + leaf + b"]" * depth
            await peer.write(
                b'{"jsonrpc":"2.0","id":4,"method":"%b","params":{"a":%b}}' % (method, nested)
            )
            assert (await peer.hear()).keys() >= {"jsonrpc", "id"}
        assert (await peer.ask("ping", id_="after"))["result"] == {}


BETA = root("/src/beta")


async def listed_names(peer: Peer) -> list[str]:
    return [each["name"] for each in (await peer.ask("roots/list"))["result"]["roots"]]


async def test_a_session_moves_to_the_workspace_of_another_root() -> None:
    source = FakeSource(root("/src/api"), BETA, root("/src/beta/wt", of="/src/beta"))
    async with connected(source) as peer:
        scope = {"workspace": "/src/api"}
        await peer.ask("rootsd/hello", {"version": 1, "scope": scope})
        assert await listed_names(peer) == ["api"]
        moved = await peer.ask("rootsd/move", {"folders": ["/src/beta/lib"]})
        assert moved["result"]["outside"] == []
        assert moved["result"]["start"]["anchor"] == "/src/beta"
        assert await listed_names(peer) == ["beta", "wt"]
        await peer.ask("rootsd/move", {"folders": ["/src/beta/wt", "/src/api"]})
        assert await listed_names(peer) == ["api", "wt"]


@pytest.mark.parametrize("folder", ["/src/new", "/src", "/"])
async def test_a_move_to_a_folder_in_no_root_changes_nothing_and_proposes_it_once(
    folder: str,
) -> None:
    source = FakeSource(root("/src/api"), BETA)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"workspace": "/src/api"}})
        for _ in range(2):
            moved = await peer.ask("rootsd/move", {"folders": [folder]})
            assert moved["result"] == {"outside": [folder], "start": None}
        assert await listed_names(peer) == ["api"]
    assert [path for path, *_ in source.requests] == [folder.encode()]


async def test_a_session_that_is_told_its_place_again_keeps_the_roots_approved_since() -> None:
    api, later = root("/src/api"), replace(BETA, approval=6)
    source = FakeSource(api)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"workspace": "/src/api"}})
        folders = ["/src/api", "/src/new"]
        await peer.ask("rootsd/move", {"folders": folders})
        source.publish(api, later)
        await peer.ask("rootsd/move", {"folders": folders})
        assert await listed_names(peer) == ["api", "beta"]


async def test_a_move_without_folders_leads_back_to_the_start() -> None:
    source = FakeSource(root("/src/api"), BETA)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"workspace": "/home"}})
        assert await listed_names(peer) == ["api", "beta"], "no project contained /home"
        await peer.ask("rootsd/move", {"folders": ["/src/api"]})
        assert await listed_names(peer) == ["api"]
        assert (await peer.ask("rootsd/move", {"folders": []}))["result"]["outside"] == []
        assert await listed_names(peer) == ["api", "beta"]


@pytest.mark.parametrize("scope", [{}, {"names": ["api"]}], ids=["all", "named"])
async def test_a_move_never_changes_a_scope_without_a_folder(scope: dict[str, Any]) -> None:
    source = FakeSource(root("/src/api"), BETA)
    async with connected(source) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": scope})
        before = await listed_names(peer)
        assert (await peer.ask("rootsd/move", {"folders": ["/src/beta"]}))["result"][
            "start"
        ] is None
        assert await listed_names(peer) == before


@pytest.mark.parametrize("params", [None, {}, {"folders": "x"}, {"folders": ["src"]}])
async def test_an_invalid_move_is_an_error(params: object) -> None:
    async with connected(FakeSource(API)) as peer:
        assert (await peer.ask("rootsd/move", params))["error"]["code"] == -32602


async def test_a_move_marks_another_workspace_for_a_connection_with_every_root() -> None:
    source = FakeSource(API, BETA)
    async with connected(source) as peer:
        for folder, marked in (("/src/beta", "beta"), ("/src/api", "api")):
            await peer.ask("rootsd/move", {"folders": [folder]})
            tool = (await peer.ask_2026("tools/call", {"name": "list_roots"}))["result"]
            lines = tool["content"][0]["text"].splitlines()
            marks = [line.split(":")[0] for line in lines if "(in this workspace)" in line]
            assert marks == [f"- {marked}"]
