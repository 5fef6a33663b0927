"""The typed client of the control socket."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rootsd.cli.answers import control_client
from rootsd.cli.text import terminal
from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.guard_setting import Guard
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.guard import SetGuardRequest
from rootsd.wire.projects import CheckQuery, ShowQuery
from rootsd.wire.request import ControlRequest
from rootsd.wire.scans import ScanProgressItem, ScanRequest
from support.fake_daemon import FakeDaemon, Objection, a_scan, a_status
from support.polling import HANG_GUARD


def test_a_request_gets_its_answer(daemon: FakeDaemon) -> None:
    daemon.answers["check"] = {"published": False}
    assert control_client.call(CheckQuery("/src")) == {"published": False}
    assert daemon.requests == [("check", {"path": "/src"})]


def test_progress_is_passed_on(daemon: FakeDaemon) -> None:
    daemon.answers["scan"] = a_scan()
    daemon.notices = [{"folders": n, "projects": 0, "parent": "/src"} for n in range(3)]
    seen: list[ScanProgressItem] = []
    assert control_client.call(ScanRequest(), seen.append)["projects"] == 3
    assert [notice["folders"] for notice in seen] == [0, 1, 2]
    assert control_client.call(ScanRequest()) == a_scan()


@pytest.mark.parametrize("request_", [StatusQuery(), ShowQuery("/", ("*",)), ScanRequest()])
def test_a_daemon_that_says_nothing_is_given_up(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, request_: ControlRequest
) -> None:
    monkeypatch.setattr(control_client, "RESPONSE_TIMEOUT_S", 1e-9)
    given_up = threading.Event()
    daemon.answers[request_.method] = lambda _: {"waited": given_up.wait(HANG_GUARD)}
    with pytest.raises(DaemonUnreachable, match="does not answer"):
        control_client.call(request_)
    given_up.set()


def test_an_error_is_raised_with_its_code(daemon: FakeDaemon) -> None:
    daemon.answers["status"] = Objection(ErrorCode.REFUSED, "an agent asked", "in your terminal")
    with pytest.raises(RootsdError, match="an agent asked") as caught:
        control_client.call(StatusQuery())
    assert (caught.value.code, caught.value.remedy) == (ErrorCode.REFUSED, "in your terminal")


def test_without_a_daemon_the_next_command_is_named() -> None:
    assert not control_client.is_running()
    with pytest.raises(DaemonUnreachable) as caught:
        control_client.call(StatusQuery())
    assert caught.value.remedy == "rootsd up"


def test_a_socket_that_accepts_connections_is_a_daemon(daemon: FakeDaemon) -> None:
    assert control_client.is_running()


def test_a_verbose_call_prints_the_request(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["check"] = {}
    control_client.call_verbose(CheckQuery("/src\x1b"))
    said = capsys.readouterr().err
    assert said.startswith(f"sent to the daemon: check {json.dumps({'path': '/src' + chr(27)})} (")
    assert "\x1b" not in said


def test_a_long_socket_path_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 20) / ("path" * 20)
    monkeypatch.setenv("ROOTSD_DIR", str(folder))
    with FakeDaemon(folder) as daemon:
        daemon.answers["status"] = a_status()
        assert control_client.call(StatusQuery())["revision"] == 7


def _challenging(params: dict[str, Any]) -> dict[str, Any]:
    if "typed" not in params:
        objection = Objection(ErrorCode.REFUSED, "confirm it")
        objection.data["challenge"] = {"terminal": "pts/7"}
        raise objection
    return {"guard": params["typed"]}


def test_the_typed_word_answers_the_challenge_on_the_same_connection(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["set-guard"] = _challenging
    monkeypatch.setattr(terminal, "typed_word", lambda: "bada")
    assert control_client.call(SetGuardRequest(Guard.OFF)) == {"guard": "bada"}
    assert daemon.asked("set-guard") == [{"guard": "off"}, {"guard": "off", "typed": "bada"}]


def test_a_challenge_of_an_older_daemon_is_a_refusal(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def older(params: dict[str, Any]) -> dict[str, Any]:
        objection = Objection(ErrorCode.REFUSED, "confirm it")
        objection.data["challenge"] = {"lines": ["guard off"], "word": "bada"}
        raise objection

    daemon.answers["set-guard"] = older
    monkeypatch.setattr(terminal, "typed_word", lambda: "bada")
    with pytest.raises(RootsdError, match="confirm it"):
        control_client.call(SetGuardRequest(Guard.OFF))
    assert len(daemon.asked("set-guard")) == 1


def test_without_a_terminal_the_order_is_refused(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["set-guard"] = _challenging
    monkeypatch.setattr(terminal, "typed_word", lambda: None)
    for policy in control_client.PromptPolicy:
        with pytest.raises(RootsdError, match="confirm it") as caught:
            control_client.call(SetGuardRequest(Guard.OFF), prompt_policy=policy)
        assert caught.value.code is ErrorCode.REFUSED
    assert daemon.asked("set-guard") == [{"guard": "off"}] * 2
