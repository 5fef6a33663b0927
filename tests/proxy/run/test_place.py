"""Calls go to the folder where the session works, which its client says before each call."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.root_policies import ClientRootsPolicy
from rootsd.proxy.run.roots import RootFolder, WallState
from support.bridges import fault, notice, reply, request
from support.run_session_harness import (
    API,
    DOCS,
    WEB,
    FollowingHarness,
    SessionHarness,
    call,
    call_2026,
)

HAS_ROOTS = {"roots": {"listChanged": True}}
REPORT = ClientRootsPolicy.REPORT
CODEX = {"name": "codex-mcp-client", "version": "0.171.0"}


def started(*words: str, here: bytes | None = b"/src/api") -> SessionHarness:
    """Return a session in /src/api whose client has roots, with two approved roots."""
    harness = FollowingHarness(
        API, WEB, words=words or ("server",), here=here, use=REPORT, profile=ServerProfile.SILENT
    )
    harness.shake_hands(HAS_ROOTS)
    return harness


def ids(harness: SessionHarness) -> list[object]:
    """Return the ids of the calls that the server got since the last look."""
    return [each["id"] for each in harness.to_server() if each.get("method") == "tools/call"]


def error(harness: SessionHarness, id_: object) -> str:
    """Return the error that the client got for a call."""
    (answer,) = [each for each in harness.to_client() if each.get("id") == id_]
    text: str = answer["error"]["message"]
    return text


def test_no_call_passes_before_the_client_has_said_where_it_works() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    assert ids(harness) == []
    harness.open("/src/api")
    assert ids(harness) == [1]
    assert harness.moves == [], "the session has not moved"


def test_an_answer_serves_no_call_that_came_after_its_question() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    (question,) = harness.to_client()
    harness.client(call(2), call(3))
    harness.client(reply(question["id"], {"roots": [{"uri": "file:///src/api"}]}))
    assert ids(harness) == [1]
    harness.open("/src/api")
    assert ids(harness) == [2, 3], "one question for all that came before it"


def test_a_server_with_its_folder_in_the_command_is_restarted_at_the_new_place() -> None:
    harness = started("server", "{root}")
    assert harness.launch.words == ("server", "/src/api")
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/web/lib")
    assert ids(harness) == []
    assert harness.another().words == ("server", "/src/web")
    (handshake,) = harness.to_server()
    harness.server(reply(handshake["id"], {"protocolVersion": "2025-11-25", "capabilities": {}}))
    assert ids(harness) == [1]
    assert harness.moves == [("/src/web/lib",)]


def test_a_server_that_never_asks_for_roots_starts_in_the_new_place() -> None:
    harness = started()
    harness.open("/src/api")
    harness.wait(1)
    harness.client(call(1))
    harness.open("/src/web")
    assert harness.another().folder == "/src/web"


def test_a_server_that_reads_roots_hears_of_the_move_before_the_call() -> None:
    harness = started()
    harness.open("/src/api")
    assert harness.list_roots() == ["/src/api", "/src/web"]
    harness.client(call(1))
    harness.open("/src/web")
    (told,) = harness.to_server()
    assert told["method"] == "notifications/roots/list_changed"
    assert harness.list_roots(1) == ["/src/web", "/src/api"]
    assert ids(harness) == [1]


def test_a_server_that_reads_roots_and_keeps_its_command_hears_of_an_added_folder() -> None:
    harness = started("server", "{root}")
    harness.open("/src/api")
    harness.list_roots()
    harness.approve(API, WEB, DOCS)
    (told,) = harness.to_server()
    assert told["method"] == "notifications/roots/list_changed"


def test_a_call_for_the_new_place_waits_for_the_calls_at_the_old_one() -> None:
    harness = started("server", "{root}")
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api")
    harness.client(call(2))
    harness.open("/src/web")
    assert ids(harness) == [1]
    assert harness.moves == []
    harness.server(reply(1, {}))
    assert harness.another().words == ("server", "/src/web")


def test_a_call_for_the_new_place_is_refused_while_the_server_stays_busy() -> None:
    harness = started("server", "{root}")
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api")
    harness.client(call(2))
    harness.open("/src/web")
    harness.wait(2)
    assert "busy at the old place" in error(harness, 2)
    assert ids(harness) == [1]


def test_a_client_that_does_not_answer_in_a_second_gets_an_error() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    harness.wait(1)
    assert "did not answer within a second" in error(harness, 1)
    assert ids(harness) == []


def test_a_client_that_answers_with_an_error_gets_an_error() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    (question,) = harness.to_client()
    harness.client(fault(question["id"], -32603, "no window"))
    assert "no window" in error(harness, 1)
    assert ids(harness) == []


def test_a_client_that_has_no_such_method_stays_where_it_began() -> None:
    harness = started()
    harness.client(call(1))
    for _ in range(2):
        *_, question = harness.to_client()
        harness.client(fault(question["id"], -32601))
    assert ids(harness) == [1]


def test_a_place_that_is_not_approved_gets_no_call_until_a_person_approves_it() -> None:
    harness = started()
    harness.open("/src/api")
    for number in (1, 2):
        harness.client(call(number))
        harness.open("/src/docs")
        assert error(harness, number) == (
            "the session works in /src/docs, which is not approved; try: rootsd approve /src/docs"
        )
    assert ids(harness) == []
    harness.approve(API, WEB, DOCS)
    harness.client(call(3))
    harness.open("/src/docs")
    assert harness.another().folder == "/src/docs"
    assert len(harness.moves) == 3


def test_an_added_folder_that_is_not_approved_is_said_once() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api", "/src/docs")
    assert "has added /src/docs" in error(harness, 1)
    harness.client(call(2))
    harness.open("/src/api", "/src/docs")
    assert ids(harness) == [2]


def test_another_folder_at_the_same_place_is_a_move() -> None:
    for words in (("server", "{root}"), ("server",)):
        harness = started(*words)
        harness.open("/src/api")
        harness.client(call(1))
        harness.open("/src/api")
        assert ids(harness) == [1]
        harness.server(reply(1, {}))
        harness.disk.replaced[b"/src/api"] += 1
        harness.approve(API, WEB)  # the daemon has seen it
        harness.client(call(2))
        harness.open("/src/api")
        harness.another()
        assert harness.moves == [("/src/api",)]


def test_only_the_first_answer_to_a_question_counts() -> None:
    harness = started("server", "{root}")
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api")
    harness.client(call(2))
    (question,) = harness.to_client()
    for path in ("/src/web", "/src/api"):
        harness.client(reply(question["id"], {"roots": [{"uri": f"file://{path}"}]}))
    harness.server(reply(1, {}))
    assert harness.moves == [("/src/web",)]


def test_a_session_with_thousands_of_folders_gets_an_error_and_goes_on() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api", *(f"/src/{number}" for number in range(10_000)))
    assert "too many folders" in error(harness, 1)
    harness.client(call(2))
    harness.open("/src/api", *(f"/src/api/{number}" for number in range(10)))
    assert ids(harness) == [2]


def test_a_call_in_a_folder_that_is_gone_gets_an_error() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/src/api/gone")
    assert error(harness, 1) == (
        "the session works in /src/api/gone, which is gone; try: open a folder again"
    )
    harness.client(call(2))
    harness.open("/src/api")
    assert ids(harness) == [2]


@pytest.mark.parametrize("first", [API, WEB])
def test_a_server_that_keeps_its_first_root_is_restarted_at_the_new_place(
    first: RootFolder,
) -> None:
    harness = FollowingHarness(API, WEB, here=b"/src/api", use=REPORT)
    harness.shake_hands(HAS_ROOTS)
    assert harness.list_roots() == ["/src/api", "/src/web"]
    harness.client(call(1))
    harness.open("/src/api", "/src/web")
    assert ids(harness) == [1]
    harness.server(reply(1, {}))
    harness.client(call(2))
    harness.open(*(each.text for each in (first, API, WEB)))
    harness.wait(5.0)  # it does not ask again
    if first is API:  # the control: the session has not moved
        assert ids(harness) == [2]
    else:
        harness.another()


def test_a_server_keeps_a_root_that_its_wall_has_taken_away() -> None:
    harness = FollowingHarness(API, WEB, here=b"/src/api", use=REPORT)
    harness.session.wall_changed(behind_a_wall(API, WEB), 0, harness.now)
    harness.shake_hands(HAS_ROOTS)
    harness.server(request("r", "roots/list"))
    harness.session.wall_changed(behind_a_wall(API, WEB), 1, harness.now)
    harness.wait(1.0)
    harness.client(call(1))
    harness.open("/src/api")
    harness.server(reply(1, {}))
    harness.client(call(2))
    harness.open("/src/web")
    harness.session.wall_changed(behind_a_wall(WEB), 0, harness.now)
    harness.wait(5.0)  # it does not ask again
    harness.another()


def behind_a_wall(*folders: RootFolder) -> WallState:
    """Return a wall that shows these roots."""
    view = tuple(ConfinedRoot(each.path, Access.READ_WRITE, name=each.name) for each in folders)
    return WallState(view, frozenset(each.path for each in folders))


def test_a_folder_that_is_gone_does_not_make_an_added_one_the_place() -> None:
    harness = started()
    harness.open("/src/api")
    harness.client(call(1))
    harness.open("/gone", "/src/web")
    assert "works in /gone" in error(harness, 1)


def test_a_session_outside_all_projects_stays_there_until_it_moves() -> None:
    harness = started("server", "{root}", here=b"/home/me")
    for number, where in enumerate(["/home/me", "/src/web", "/home/me"], start=1):
        harness.open(where)
        harness.client(call(number))
        harness.open(where)
        if number > 1:
            harness.another()
            (handshake,) = harness.to_server()
            harness.server(reply(handshake["id"], {"capabilities": {}}))
        assert ids(harness) == [number]
        harness.server(reply(number, {}))
    assert harness.launch.words == ("server", "/src/api")
    assert harness.moves == [("/src/web",), ()]


def test_a_session_in_a_root_does_not_stay_there_while_its_client_is_elsewhere() -> None:
    harness = started()
    harness.open("/src/docs")
    harness.client(call(1))
    harness.open("/src/docs")
    assert "works in /src/docs" in error(harness, 1)


def test_a_call_of_another_agent_goes_where_that_agent_works() -> None:
    harness = started("server", "{root}")
    harness.open("/src/api")
    harness.notes["toolu_1"] = b"/src/web"
    harness.client(call(1, _meta={"claudecode/toolUseId": "toolu_1"}))
    harness.open("/src/api")
    assert harness.another().words == ("server", "/src/web")
    assert harness.moves == [("/src/web", "/src/api")]


def asked_2026(harness: SessionHarness, id_: int) -> str:
    """Return the state of the question that a call of 2026-07-28 gets first."""
    harness.client(call_2026(id_, roots=True))
    (answer,) = harness.to_client()
    assert answer["id"] == id_
    assert answer["result"]["inputRequests"] == {"rootsd-place": {"method": "roots/list"}}
    state: str = answer["result"]["requestState"]
    return state


def test_a_call_of_2026_comes_again_with_its_place() -> None:
    harness = FollowingHarness(
        API, WEB, words=("server", "{root}"), here=b"/src/api", use=REPORT,
        profile=ServerProfile.SILENT,
    )  # fmt: skip
    state = asked_2026(harness, 1)
    assert harness.to_server() == []
    told = {"rootsd-place": {"roots": [{"uri": "file:///src/web"}]}}
    harness.client(call_2026(2, roots=True, inputResponses=told, requestState=state))
    assert harness.another().words == ("server", "/src/web")
    (passed,) = harness.to_server()
    assert passed["id"] == 2
    assert passed["params"].keys() == {"name", "arguments", "_meta"}


def test_a_call_of_2026_without_its_place_does_not_pass() -> None:
    harness = FollowingHarness(API, WEB, here=b"/src/api", use=REPORT)
    for number, told in enumerate([{}, {"rootsd-place": {"roots": [{"uri": "file:///x"}]}}]):
        state = asked_2026(harness, number)
        harness.client(call_2026(9, roots=True, inputResponses=told, requestState=state))
        assert error(harness, 9)
    assert ids(harness) == []


def test_a_server_cannot_forge_the_question_about_the_place() -> None:
    harness = FollowingHarness(API, WEB, here=b"/src/api", use=REPORT)
    told = {"rootsd-place": {"roots": [{"uri": "file:///src/web"}]}}
    harness.client(call_2026(1, roots=True, inputResponses=told, requestState="rootsd1.x"))
    assert harness.moves == []


def codex_call(id_: int, here: str, *writable: str) -> bytes:
    """Return a call of Codex in the folder `here`."""
    entries = [
        {"path": {"type": "path", "path": path}, "access": "write"}
        for path in (here, *writable, f"{here}/.git")
    ]
    state = {
        "sandboxCwd": f"file://{here}",
        "permissionProfile": {"file_system": {"entries": entries}},
    }
    meta = {"codex/sandbox-state": state, "codex/sandbox-state-meta": state, "callId": "c"}
    return call(id_, _meta=meta)


def codex(capabilities: dict[str, Any]) -> tuple[SessionHarness, dict[str, Any]]:
    """Return a session of Codex, and the capabilities of the server that Codex sees."""
    harness = FollowingHarness(
        API,
        WEB,
        words=("server", "{root}"),
        here=b"/src/api",
        use=REPORT,
        profile=ServerProfile.SILENT,
    )
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CODEX}
    harness.client(request(0, "initialize", params))
    harness.to_server()
    harness.server(reply(0, {"protocolVersion": "2025-06-18", "capabilities": capabilities}))
    (answer,) = harness.to_client()
    harness.client(notice("notifications/initialized"))
    harness.to_server()
    seen: dict[str, Any] = answer["result"]["capabilities"]
    return harness, seen


def test_codex_says_in_each_call_where_it_works() -> None:
    harness, seen = codex({"tools": {}})
    assert seen["experimental"]["codex/sandbox-state"] == {"version": "1.0.0"}
    harness.client(codex_call(1, "/src/api", "/src/docs"))
    (passed,) = harness.to_server()
    assert passed["params"]["_meta"] == {"callId": "c"}, "the server asked for none of it"
    harness.server(reply(1, {}))
    harness.client(codex_call(2, "/src/web"))
    assert harness.another().words == ("server", "/src/web")
    assert harness.moves == [("/src/api", "/src/docs"), ("/src/web",)]


def test_a_server_that_asks_codex_for_its_state_gets_it() -> None:
    own = {"codex/sandbox-state": {"version": "1.0.0"}}
    harness, seen = codex({"experimental": own})
    assert seen["experimental"].keys() == {"codex/sandbox-state", "codex/sandbox-state-meta"}
    harness.client(codex_call(1, "/src/api"))
    (passed,) = harness.to_server()
    assert "codex/sandbox-state" in passed["params"]["_meta"]


def test_other_clients_see_no_capability_of_codex() -> None:
    harness = FollowingHarness(API, here=b"/src/api")
    harness.client(request(0, "initialize", {"capabilities": {}, "clientInfo": {"name": "x"}}))
    harness.server(reply(0, {"capabilities": {"tools": {}}}))
    (answer,) = harness.to_client()
    assert answer["result"]["capabilities"] == {"tools": {}}


def test_a_daemon_that_does_not_answer_leaves_no_call_waiting() -> None:
    harness = started()
    harness.open("/src/api")
    harness.is_daemon_there = False
    harness.client(call(1))
    harness.open("/src/web")
    harness.wait(10)
    assert "rootsd does not answer" in error(harness, 1)


def test_a_session_that_stays_asks_nothing_before_a_call() -> None:
    harness = SessionHarness(API, here=b"/src/api", use=REPORT, profile=ServerProfile.SILENT)
    harness.shake_hands(HAS_ROOTS)
    harness.open("/src/api")
    harness.client(call(1))
    assert ids(harness) == [1]
    assert harness.to_client() == []
