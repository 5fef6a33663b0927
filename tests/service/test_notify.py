"""What the supervisor is told, over real sockets."""

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
from support.supervising import Supervisor, abstract_supervisor, supervisor


@pytest.fixture
def line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Supervisor, ServiceNotifier]]:
    with supervisor(tmp_path) as listening:
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with make_service_notifier() as telling:
            yield listening, telling


def test_each_thing_that_is_told_has_the_words_of_sd_notify(
    line: tuple[Supervisor, ServiceNotifier],
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


def test_a_reload_is_told_with_its_moment_and_its_end_whatever_comes_of_it(
    line: tuple[Supervisor, ServiceNotifier],
) -> None:
    listening, telling = line
    before = time.monotonic_ns() // 1000
    with suppress(ZeroDivisionError), telling.reload():
        raise ZeroDivisionError
    told = listening.hear()
    assert told["RELOADING"] == "1"
    assert before <= int(told["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert listening.hear() == {"READY": "1"}


def test_a_status_is_one_line_whatever_it_holds(line: tuple[Supervisor, ServiceNotifier]) -> None:
    listening, telling = line
    telling.status("a\nREADY=0\x1b[2J")
    assert list(listening.hear()) == ["STATUS"]


@pytest.mark.skipif(sys.platform == "darwin", reason="abstract names are Linux's")
def test_a_name_outside_the_file_system_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with abstract_supervisor() as listening:
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with make_service_notifier() as telling:
            telling.ready()
        assert listening.hear() == {"READY": "1"}


def test_the_variables_are_no_childs(
    line: tuple[Supervisor, ServiceNotifier], monkeypatch: pytest.MonkeyPatch
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
def test_a_beat_is_half_of_the_watchdogs_time_if_it_is_ours(
    line: tuple[Supervisor, ServiceNotifier],
    monkeypatch: pytest.MonkeyPatch,
    usec: str,
    pid: str,
    beat: float | None,
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", line[0].address)
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    with make_service_notifier() as telling:
        assert telling.beat == beat


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_where_nobody_listens_nobody_is_told(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    telling = make_service_notifier()
    assert not telling.is_heard
    assert telling.beat is None
    telling.ready()
    telling.close()


def test_a_supervisor_that_is_not_there_is_noted_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nowhere"))
    assert not make_service_notifier().is_heard
    assert "cannot reach" in caplog.text


def test_one_that_has_gone_meanwhile_is_noted_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.close()
    with ServiceNotifier(ours) as telling:
        telling.ready()
    assert "cannot notify" in caplog.text


def test_an_expected_failure_is_told_and_a_bug_is_not(
    line: tuple[Supervisor, ServiceNotifier], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening, _ = line
    for error in (ZeroDivisionError(), BadConfig("config.toml: line 3")):
        monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
        with suppress(ZeroDivisionError, BadConfig), make_service_notifier():
            raise error
    assert listening.hear() == {"STATUS": "config.toml: line 3"}


def test_after_its_end_nothing_is_told(line: tuple[Supervisor, ServiceNotifier]) -> None:
    _, telling = line
    telling.close()
    telling.ready()
    assert not telling.is_heard
