"""Servers that ask for roots in a call keep their process and state, and no call is held."""

from __future__ import annotations

import statistics
import time
from itertools import cycle, islice
from pathlib import Path

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.runtime_files import ServerProfileFile
from support.bridges import notice, reply, request
from support.mcp_harness import FakeSource, root
from support.run_proxy import SCRIPTED, run_proxy
from support.run_session_harness import API, WEB, SessionHarness, call, call_2026, paths
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


def test_it_gets_current_roots_even_if_they_were_outdated_at_the_call() -> None:
    harness = SessionHarness(API, WEB, profile=ServerProfile.IN_CALLS)
    harness.shake_hands()
    harness.announce()
    harness.is_daemon_there = False
    harness.client(call(1))
    harness.server(request(0, "roots/list"))
    assert [each["id"] for each in harness.to_server()] == [1]
    harness.approved, harness.is_daemon_there = (WEB,), True
    harness.client()
    (answer,) = (each for each in harness.to_server() if "result" in each)
    assert paths(answer["result"]) == ["/src/web"]


def test_a_request_by_result_counts_as_asking_in_a_call() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.server(
        reply(
            1, {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        )
    )
    assert harness.gate.profile is ServerProfile.IN_CALLS


def test_a_server_that_asked_only_once_is_restarted_to_drop_a_folder() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands()
    harness.list_roots()
    harness.approve(API, WEB, WEB._replace(path=b"/src/new"))
    harness.wait(1.0)
    harness.approve(API, WEB)  # it was never told of the new one
    harness.client(call(1))
    harness.raw_to_server()
    assert not harness.out.restart_requested
    harness.server(reply(1, {}))
    harness.approve(API)
    assert not harness.out.restart_requested, "before a call there is no need"
    harness.client(call(2))
    assert harness.out.restart_requested


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
    rounds = sizes.pick(test=100, check=100, soak=1_000)
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
    assert max(took) <= 0.9, "one was held"


def test_a_profile_is_used_in_the_next_session() -> None:
    with published(FakeSource(root("/src/api"))):
        for number in range(2):
            with run_proxy("--deaf") as client:
                client.shake_hands()
                begin = time.perf_counter()
                client.call(1, "ask")
                is_held = time.perf_counter() - begin >= 0.9
                assert is_held is (number == 0)
                client.process.kill()  # as clients do that are in a hurry


def test_a_profile_is_stored_by_its_value(tmp_path: Path) -> None:
    profiles = ServerProfileFile(bytes(tmp_path), SCRIPTED)
    for profile in ServerProfile:
        profiles.save(profile)
        assert profiles.load() is profile
