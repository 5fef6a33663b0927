"""A notice, over a real session bus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.system.desktop import DesktopUnavailable, is_available, send_notification
from support.desktop import Desktop, desktop, session_bus

pytestmark = pytest.mark.needs("dbus-daemon")
BUS = "DBUS_SESSION_BUS_ADDRESS"


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    with desktop(tmp_path) as screen:
        monkeypatch.setenv(BUS, screen.address)
        yield screen


def test_a_notice_is_shown_with_no_button(screen: Desktop) -> None:
    send_notification("2 new projects wait", "rootsd review")
    name, replaces, _, summary, body, actions, _, _ = screen.notices.get(timeout=30)
    assert (name, replaces, actions) == ("rootsd", 0, [])
    assert (summary, body) == ("2 new projects wait", "rootsd review")


def test_what_a_program_wrote_cannot_be_markup_nor_deceive(screen: Desktop) -> None:
    send_notification("a\x1b[2J", '<a href="x">api</a> & \u202e')
    summary, body = screen.next()
    assert summary.isprintable()
    assert body.startswith('&lt;a href="x"&gt;api&lt;/a&gt; &amp; ')
    assert "\u202e" not in body


def test_a_bus_that_nobody_shows_notices_on_is_no_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_bus(tmp_path) as address:
        monkeypatch.setenv(BUS, address)
        with pytest.raises(DesktopUnavailable):
            send_notification("a", "b")


@pytest.mark.parametrize("address", ["unix:path=/nowhere/bus", "tcp:host=localhost", "nonsense"])
def test_no_bus_is_no_desktop(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv(BUS, address)
    with pytest.raises(DesktopUnavailable):
        send_notification("a", "b")


def test_the_extra_is_seen() -> None:
    assert is_available()
