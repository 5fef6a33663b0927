"""A notification over a real session bus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.system.desktop import DesktopUnavailable, is_available, send_notification
from support.fake_desktop import NotificationServer, desktop, session_bus

pytestmark = pytest.mark.needs("dbus-daemon")
BUS = "DBUS_SESSION_BUS_ADDRESS"


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NotificationServer]:
    with desktop(tmp_path) as screen:
        monkeypatch.setenv(BUS, screen.address)
        yield screen


def test_a_notification_has_no_button(screen: NotificationServer) -> None:
    send_notification("2 new projects are pending", "rootsd review")
    name, replaces, _, summary, body, actions, _, _ = screen.notices.get(timeout=30)
    assert (name, replaces, actions) == ("rootsd", 0, [])
    assert (summary, body) == ("2 new projects are pending", "rootsd review")


def test_a_programs_text_is_escaped(screen: NotificationServer) -> None:
    send_notification("a\x1b[2J", '<a href="x">api</a> & \u202e')
    summary, body = screen.next()
    assert summary.isprintable()
    assert body.startswith('&lt;a href="x"&gt;api&lt;/a&gt; &amp; ')
    assert "\u202e" not in body


def test_a_bus_without_a_notification_server_is_not_a_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_bus(tmp_path) as address:
        monkeypatch.setenv(BUS, address)
        with pytest.raises(DesktopUnavailable):
            send_notification("a", "b")


@pytest.mark.parametrize("address", ["unix:path=/nowhere/bus", "tcp:host=localhost", "nonsense"])
def test_without_a_bus_there_is_no_desktop(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv(BUS, address)
    with pytest.raises(DesktopUnavailable):
        send_notification("a", "b")


def test_the_installed_extra_is_detected() -> None:
    assert is_available()
