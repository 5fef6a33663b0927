"""Messages to the supervisor, over real sockets."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rootsd.core.errors import BadConfig
from rootsd.service.notify import ServiceNotifier, make_service_notifier
from support.notify_socket import NotifySocket, abstract_supervisor, supervisor


@pytest.fixture
def line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[NotifySocket, ServiceNotifier]]:
    with supervisor(tmp_path) as listening:
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with make_service_notifier() as telling:
            yield listening, telling


def test_each_message_has_the_text_of_sd_notify(
    line: tuple[NotifySocket, ServiceNotifier],
) -> None:
    listening, telling = line
    telling.ready()
    assert listening.hear() == {"READY": "1"}
    telling.status("3 published")
    assert listening.hear() == {"STATUS": "3 published"}
    telling.alive()
    assert listening.hear() == {"WATCHDOG": "1"}
    telling.stopping()
    assert listening.hear() == {"STOPPING": "1"}


def test_a_reload_is_reported_at_its_start_and_at_its_end(
    line: tuple[NotifySocket, ServiceNotifier],
) -> None:
    listening, telling = line
    before = time.monotonic_ns() // 1000
    with suppress(ZeroDivisionError), telling.reload():
        raise ZeroDivisionError
    told = listening.hear()
    assert told["RELOADING"] == "1"
    assert before <= int(told["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert listening.hear() == {"READY": "1"}


def test_a_status_is_always_one_line(
    line: tuple[NotifySocket, ServiceNotifier],
) -> None:
    listening, telling = line
    telling.status("a\nREADY=0\x1b[2J")
    assert list(listening.hear()) == ["STATUS"]


@pytest.mark.skipif(sys.platform == "darwin", reason="abstract names are Linux's")
def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with abstract_supervisor() as listening:
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with make_service_notifier() as telling:
            telling.ready()
        assert listening.hear() == {"READY": "1"}


def test_child_processes_do_not_get_the_variables(
    line: tuple[NotifySocket, ServiceNotifier], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening, _ = line
    monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    make_service_notifier().close()
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(os.environ)


@pytest.mark.parametrize(
    ("usec", "pid", "beat"),
    [
        ("3000000", "", 1.5),
        ("3000000", "own", 1.5),
        ("3000000", "1", None),
        ("0", "", None),
        ("soon", "", None),
        ("", "", None),
    ],
)
def test_a_heartbeat_is_due_after_half_of_the_watchdogs_time(
    line: tuple[NotifySocket, ServiceNotifier],
    monkeypatch: pytest.MonkeyPatch,
    usec: str,
    pid: str,
    beat: float | None,
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", line[0].address)
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    with make_service_notifier() as telling:
        assert telling.heartbeat_s == beat


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_without_a_supervisor_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    telling = make_service_notifier()
    assert not telling.is_connected
    assert telling.heartbeat_s is None
    telling.ready()
    telling.close()


def test_a_missing_supervisor_is_logged_without_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nowhere"))
    assert not make_service_notifier().is_connected
    assert "cannot reach" in caplog.text


def test_a_supervisor_that_disappeared_is_logged_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.close()
    with ServiceNotifier(ours) as telling:
        telling.ready()
    assert "cannot notify" in caplog.text


def test_an_expected_failure_is_reported_and_a_bug_is_not(
    line: tuple[NotifySocket, ServiceNotifier], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening, _ = line
    for error in (ZeroDivisionError(), BadConfig("config.toml: line 3")):
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with suppress(ZeroDivisionError, BadConfig), make_service_notifier():
            raise error
    assert listening.hear() == {"STATUS": "config.toml: line 3"}


def test_after_its_end_nothing_is_sent(line: tuple[NotifySocket, ServiceNotifier]) -> None:
    _, telling = line
    telling.close()
    telling.ready()
    assert not telling.is_connected
