"""Servers that ask for roots within a call keep their process and state, and no call is held."""

from __future__ import annotations

import statistics
import time
from itertools import cycle, islice
from pathlib import Path

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.runtime_files import ServerProfileFile
from support.bridges import notice, reply, request
from support.publishing import FakeSource, root
from support.relaying import API, WEB, Desk, call, call_2026, paths
from support.relays import SCRIPTED, relay
from support.serving import published
from support.sizes import Sizes

MAX_CALL_S = 0.05


def ask_in_call(desk: Desk, id_: int) -> list[str]:
    """The client calls, and the server asks before it answers: the paths that it is told."""
    desk.client(call(id_))
    (made,) = (each for each in desk.to_server() if "method" in each and "id" in each)
    assert made["id"] == id_, "it is not held"
    desk.server(request(0, "roots/list"))
    (answer,) = desk.to_server()
    desk.server(reply(id_, {}))
    assert [each["id"] for each in desk.to_client()] == [id_]
    return paths(answer["result"])


def test_a_server_that_is_known_to_ask_in_calls_is_neither_held_nor_restarted() -> None:
    desk = Desk(API, WEB, profile=ServerProfile.IN_CALLS)
    desk.shake_hands()
    for id_, approved in enumerate(islice(cycle([(API,), (API, WEB), (), (WEB,)]), 100)):
        desk.announce()
        desk.approve(*approved)
        expected = [folder.text for folder in approved] or ["/run/nowhere"]
        assert ask_in_call(desk, id_) == expected
        assert not desk.out.restart_requested


def test_it_is_told_what_holds_even_where_that_is_in_doubt_when_it_is_called() -> None:
    desk = Desk(API, WEB, profile=ServerProfile.IN_CALLS)
    desk.shake_hands()
    desk.announce()
    desk.is_daemon_there = False
    desk.client(call(1))
    desk.server(request(0, "roots/list"))
    assert [each["id"] for each in desk.to_server()] == [1]
    desk.approved, desk.is_daemon_there = (WEB,), True
    desk.client()
    (answer,) = (each for each in desk.to_server() if "result" in each)
    assert paths(answer["result"]) == ["/src/web"]


def test_one_that_asks_by_its_answers_is_known_as_well() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.server(
        reply(
            1, {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        )
    )
    assert desk.gate.profile is ServerProfile.IN_CALLS


def test_one_that_asked_at_first_alone_is_started_again_for_a_folder_that_it_has() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands()
    desk.list_roots()
    desk.approve(API, WEB, WEB._replace(path=b"/src/new"))
    desk.wait(1.0)
    desk.approve(API, WEB)  # it was never told of the new one
    desk.client(call(1))
    desk.raw_to_server()
    assert not desk.out.restart_requested
    desk.server(reply(1, {}))
    desk.approve(API)
    assert not desk.out.restart_requested, "before a call there is no need"
    desk.client(call(2))
    assert desk.out.restart_requested


def test_a_server_that_keeps_a_folder_that_is_gone_is_not_started_again() -> None:
    gone = WEB._replace(path=b"/src/web")
    desk = Desk(API, gone)
    desk.shake_hands()
    desk.list_roots()
    desk.disk.links[b"/src/web"] = b"/gone"  # as if it had been removed
    desk.approve(API)
    desk.wait(1.0)
    desk.raw_to_server()
    desk.client(call(1))
    assert [each["id"] for each in desk.to_server()] == [1]
    del desk.disk.links[b"/src/web"]
    desk.client(call(2))
    assert desk.raw_to_server() == b""
    desk.server(reply(1, {}))
    assert desk.out.restart_requested, "something else is there now"


def test_a_real_server_keeps_its_process_and_state_and_answers_at_once(
    tmp_path: Path, sizes: Sizes
) -> None:
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    api, web = root(f"{tmp_path}/api"), root(f"{tmp_path}/web")
    rounds = sizes.pick(test=100, check=100, soak=1_000)
    with published(FakeSource(api, web)) as roots, relay("--deaf") as client:
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


def test_what_was_learnt_of_a_server_holds_for_its_next_session() -> None:
    with published(FakeSource(root("/src/api"))):
        for number in range(2):
            with relay("--deaf") as client:
                client.shake_hands()
                begin = time.perf_counter()
                client.call(1, "ask")
                is_held = time.perf_counter() - begin >= 0.9
                assert is_held is (number == 0)
                client.process.kill()  # as clients do that are in a hurry


def test_the_habit_is_kept_by_its_name(tmp_path: Path) -> None:
    profiles = ServerProfileFile(bytes(tmp_path), SCRIPTED)
    for profile in ServerProfile:
        profiles.save(profile)
        assert profiles.load() is profile
