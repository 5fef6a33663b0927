"""Servers that ask for roots in calls.

Those that ask in each call keep their process and state, and no call is held. Those that ask once
and keep the answer are restarted, at the next call after a change.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import pytest

from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile
from rootsd.proxy.run.roots import RootFolder
from support.bridges import fault, notice, reply, request
from support.mcp_harness import FakeSource, root
from support.run_proxy import run_proxy
from support.run_session_harness import API, DOCS, WEB, SessionHarness, call, call_2026, paths
from support.sizes import Sizes
from support.threaded_publisher import published

MAX_CALL_S = 0.05


def ask_in_call(harness: SessionHarness, id_: int) -> list[str]:
    """Make a call in which the server asks for roots. Return the paths that it gets."""
    harness.client(call(id_))
    (made,) = (each for each in harness.to_server() if "method" in each and "id" in each)
    assert made["id"] == id_, "it is not held"
    harness.server(request(0, "roots/list"))
    (answer,) = harness.to_server()
    harness.server(reply(id_, {}))
    assert [each["id"] for each in harness.to_client()] == [id_]
    return paths(answer["result"])


def test_a_server_that_is_known_to_ask_in_calls_is_neither_held_nor_restarted() -> None:
    harness = SessionHarness(API, WEB, profile=ServerProfile.IN_CALLS)
    harness.shake_hands()
    for id_, approved in enumerate(islice(cycle([(API,), (API, WEB), (), (WEB,)]), 100)):
        harness.announce()
        harness.approve(*approved)
        expected = [folder.text for folder in approved] or ["/run/nowhere"]
        assert ask_in_call(harness, id_) == expected
        assert not harness.out.restart_requested


QUESTION = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}


def use_2026(harness: SessionHarness, id_: int, *, asks: bool) -> bool:
    """Make a call of 2026-07-28, which the server answers after a question or without one.

    Return whether the server got it: otherwise the session wants another server.
    """
    harness.client(call_2026(id_))
    if harness.out.restart_requested:
        return False
    (made,) = harness.to_server()
    if asks:
        harness.server(reply(made["id"], QUESTION))
        (made,) = harness.to_server()
        assert "inputResponses" in made["params"]
    harness.server(reply(made["id"], {"resultType": "complete"}))
    assert [each["id"] for each in harness.to_client()] == [id_]
    return True


def use(harness: SessionHarness, id_: int, *, asks: bool, tool: str = "look") -> bool:
    """Do the same before 2026-07-28, where a change holds the call for a moment."""
    harness.client(call(id_, tool))
    harness.wait(0.25)
    if harness.out.restart_requested:
        return False
    (made,) = (each for each in harness.to_server() if "id" in each)
    if asks:
        harness.server(request("q", "roots/list"))
        assert [each["id"] for each in harness.to_server()] == ["q"]
    harness.server(reply(made["id"], {}))
    assert [each["id"] for each in harness.to_client()] == [id_]
    return True


def used(*approved: RootFolder) -> SessionHarness:
    """Return a session whose server has asked in its first call."""
    harness = SessionHarness(*approved)
    harness.shake_hands()
    assert use(harness, 1, asks=True)
    return harness


def restart(harness: SessionHarness) -> list[object]:
    """Start the next server, and return the ids that it gets after the handshake."""
    harness.raw_to_server()
    harness.another()
    (greeting,) = harness.to_server()
    assert greeting["method"] == "initialize", "the handshake is replayed"
    harness.server(reply(greeting["id"], {"capabilities": {}}))
    assert all("id" not in each for each in harness.to_client()), "the client gets no answer"
    return [each["id"] for each in harness.to_server() if "id" in each]


@pytest.mark.parametrize("make", [use, use_2026])
def test_a_server_that_asks_again_in_the_next_call_is_never_restarted(
    make: Callable[..., bool],
) -> None:
    harness = SessionHarness(API, WEB)
    if make is use:
        harness.shake_hands()
    assert make(harness, 1, asks=True)
    assert make(harness, 2, asks=True)
    assert harness.gate.profile is ServerProfile.IN_CALLS
    for number, approved in enumerate(islice(cycle([(API,), (API, WEB), ()]), 10), start=3):
        harness.approve(*approved)
        assert make(harness, number, asks=True)


@pytest.mark.parametrize("make", [use, use_2026])
def test_a_server_that_keeps_its_roots_is_restarted_after_each_change(
    make: Callable[..., bool],
) -> None:
    harness = SessionHarness(API, WEB)
    if make is use:
        harness.shake_hands()
    assert make(harness, 1, asks=True)
    assert make(harness, 2, asks=False)
    assert harness.gate.profile is not ServerProfile.IN_CALLS
    for number, approved in enumerate(((API,), (API, WEB), (API, DOCS)), start=1):
        harness.approve(*approved)
        assert not harness.out.restart_requested, "before a call there is no need"
        assert not make(harness, 10 * number, asks=False)
        if make is use:
            assert restart(harness) == [10 * number]
            harness.server(request("q", "roots/list"))
            (answer,) = harness.to_server()
            assert paths(answer["result"]) == [folder.text for folder in approved]
            harness.server(reply(10 * number, {}))
        else:
            harness.another()
            (made,) = harness.to_server()
            harness.server(reply(made["id"], QUESTION))
            (made,) = harness.to_server()
            (answer,) = made["params"]["inputResponses"].values()
            assert paths(answer) == [folder.text for folder in approved]
            harness.server(reply(made["id"], {"resultType": "complete"}))
        assert [each["id"] for each in harness.to_client()] == [10 * number]
        assert make(harness, 10 * number + 1, asks=False), "one change causes one restart"


@pytest.mark.parametrize("make", [use, use_2026])
def test_a_denial_after_a_single_question_reaches_the_very_next_call(
    make: Callable[..., bool],
) -> None:
    """Whether the server asks again is not known, and it must not read the folder once more."""
    harness = SessionHarness(API, WEB)
    if make is use:
        harness.shake_hands()
    assert make(harness, 1, asks=True)
    harness.approve(API)
    assert not make(harness, 2, asks=False)


def test_an_approval_after_a_single_question_causes_no_restart_until_it_is_needed() -> None:
    harness = used(API)
    harness.approve(API, WEB)
    assert use(harness, 2, asks=False), "it lacks a folder, which does no harm"
    assert not use(harness, 3, asks=False), "it does not ask again, so it has the old roots"


def test_a_failed_call_shows_that_roots_are_kept_only_after_a_change() -> None:
    harness = used(API)
    for id_, answer in ((2, reply(2, {"isError": True})), (3, fault(3, -32602))):
        harness.client(call(id_))
        harness.raw_to_server()
        harness.server(answer)
        harness.raw_to_client()
    assert harness.gate.may_ask_again, "they may have failed before the server needed its roots"
    harness.approve(API, WEB)
    harness.wait(0.25)
    harness.raw_to_server()
    harness.client(call(4))
    harness.raw_to_server()
    harness.server(reply(4, {"isError": True}))
    assert not use(harness, 5, asks=False)


def test_a_server_that_asks_until_its_start_succeeds_does_not_ask_in_each_call() -> None:
    """`@playwright/mcp` asks in each call, until it has found a browser."""
    harness = SessionHarness(API, WEB)
    harness.shake_hands()
    harness.wait(0.25)
    for id_, answer in enumerate(({"isError": True}, {"isError": True}, {}), start=1):
        harness.client(call(id_))
        harness.server(request("q", "roots/list"), reply(id_, answer))
    harness.raw_to_server()
    harness.approve(API)
    assert not use(harness, 4, asks=False)


def test_another_tool_shows_nothing() -> None:
    harness = used(API)
    assert use(harness, 2, asks=False, tool="other")
    assert harness.gate.may_ask_again
    assert use(harness, 3, asks=True, tool="other")
    assert harness.gate.may_ask_again, "this tool has asked for the first time"
    assert use(harness, 4, asks=True)
    assert harness.gate.profile is ServerProfile.IN_CALLS


def test_questions_in_calls_at_the_same_time_show_nothing() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands()
    harness.client(call(1))
    harness.wait(0.25)
    harness.client(call(2), call(3, "other"))
    harness.server(request("a", "roots/list"), request("b", "roots/list"))
    harness.server(reply(1, {}), reply(2, {}), reply(3, {}))
    assert harness.gate.may_ask_again
    harness.raw_to_client()
    harness.raw_to_server()
    assert use(harness, 4, asks=False)
    assert harness.gate.may_ask_again, "perhaps the other tool asked"
    assert use(harness, 5, asks=False, tool="other")
    assert not harness.gate.may_ask_again
    harness.approve(API)
    assert not use(harness, 6, asks=False)


def test_a_server_that_asks_now_and_then_never_counts_as_asking_in_each_call() -> None:
    harness = used(API, WEB)
    assert use(harness, 2, asks=False)
    for id_ in (3, 4):
        assert use(harness, id_, asks=True)
    harness.approve(API)
    assert not use(harness, 5, asks=False)


def test_what_one_server_asked_says_nothing_about_the_next_one() -> None:
    harness = used(API, WEB)
    harness.approve(API)
    assert not use(harness, 2, asks=False)
    assert restart(harness) == [2]
    harness.server(request("q", "roots/list"), reply(2, {}))
    harness.raw_to_server()
    harness.raw_to_client()
    assert harness.gate.may_ask_again
    harness.approve()
    assert not use(harness, 3, asks=False)


def test_a_cancelled_or_refused_call_shows_nothing() -> None:
    harness = used(API)
    harness.client(call(2), notice("notifications/cancelled", {"requestId": 2}))
    harness.server(reply(2, {}))
    assert harness.gate.may_ask_again


def test_a_question_after_a_change_is_no_question_of_a_call_in_flight() -> None:
    """`server-filesystem` asks after each change, also while it works."""
    harness = SessionHarness(API, WEB, profile=ServerProfile.EARLY)
    harness.shake_hands()
    harness.list_roots()
    harness.client(call("long"))
    harness.approve(API)
    harness.raw_to_server()
    assert harness.list_roots() == ["/src/api"]
    assert harness.gate.profile is ServerProfile.EARLY
    harness.approve()
    harness.wait(1.0)
    assert harness.gate.stale, "this time, it did not ask"


def test_control_a_server_that_is_trusted_after_one_question_keeps_a_denied_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trust(gate: ReadinessGate) -> None:
        gate.profile = ServerProfile.IN_CALLS
        gate.has_asked = True

    monkeypatch.setattr(ReadinessGate, "roots_requested_in_call", trust)
    monkeypatch.setattr(ReadinessGate, "keeps_roots", lambda _: None)
    with pytest.raises(AssertionError):
        test_a_denial_after_a_single_question_reaches_the_very_next_call(use)
    with pytest.raises(AssertionError):
        test_a_server_that_keeps_its_roots_is_restarted_after_each_change(use)


def test_a_deleted_folder_causes_no_restart() -> None:
    gone = WEB._replace(path=b"/src/web")
    harness = SessionHarness(API, gone)
    harness.shake_hands()
    harness.list_roots()
    harness.disk.links[b"/src/web"] = b"/gone"  # as if it had been removed
    harness.approve(API)
    harness.wait(1.0)
    harness.raw_to_server()
    harness.client(call(1))
    assert [each["id"] for each in harness.to_server()] == [1]
    del harness.disk.links[b"/src/web"]
    harness.client(call(2))
    assert harness.raw_to_server() == b""
    harness.server(reply(1, {}))
    assert harness.out.restart_requested, "something else is there now"


def test_a_real_server_keeps_its_process_and_state_and_answers_at_once(
    tmp_path: Path, sizes: Sizes
) -> None:
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    api, web = root(f"{tmp_path}/api"), root(f"{tmp_path}/web")
    rounds = sizes.pick(test=20, check=100, soak=300)
    with published(FakeSource(api, web)) as roots, run_proxy("--deaf") as client:
        client.shake_hands()
        first = client.call("first", "ask")
        took = []
        for number in range(rounds):
            approved = (api,) if number % 2 else (api, web)
            roots.set(*approved)
            client.say(notice("notifications/x"))
            begin = time.perf_counter()
            told = client.call(number, "ask")
            took.append(time.perf_counter() - begin)
            assert (told["pid"], told["count"]) == (first["pid"], number + 2)
            assert len(told["paths"]) == len(approved)
        assert client.leave() == 0
    assert statistics.median(took) <= MAX_CALL_S
    assert max(took) <= 0.24, "one was held"


def test_a_profile_is_used_in_the_next_session() -> None:
    with published(FakeSource(root("/src/api"))):
        for number in range(2):
            with run_proxy("--deaf") as client:
                client.shake_hands()
                begin = time.perf_counter()
                client.call(1, "ask")
                is_held = time.perf_counter() - begin >= 0.2
                assert is_held is (number == 0)
                client.process.kill()  # as clients do that are in a hurry


@pytest.mark.parametrize(
    ("method", "restarts"),
    [("resources/list", True), ("resources/templates/list", True), ("tools/list", False)],
)
def test_a_list_that_may_name_files_waits_for_a_restart_after_a_denial(
    method: str, *, restarts: bool
) -> None:
    harness = used(API, WEB)
    harness.approve(WEB)
    harness.client(request(2, method))
    harness.wait(0.25)
    assert harness.out.restart_requested is restarts
    assert [each["id"] for each in harness.to_server() if "id" in each] == [2] * (not restarts)
