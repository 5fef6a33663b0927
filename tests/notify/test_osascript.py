"""Notifications on a Mac, with a program in place of `osascript`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.notify.notification import DesktopNotification, DesktopUnavailable
from rootsd.notify.osascript import OsascriptDesktop

HOSTILE = '" & (do shell script "touch /tmp/x") & "'


def a_program(folder: Path, script: str) -> OsascriptDesktop:
    program = folder / "osascript"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return OsascriptDesktop(str(program))


async def test_text_of_others_is_an_argument_and_not_a_part_of_the_script(tmp_path: Path) -> None:
    desktop = a_program(tmp_path, f"printf '%s\\0' \"$@\" >{tmp_path}/words")
    await desktop.show(DesktopNotification("1 new project is pending", (HOSTILE, "-e x\x1b[2J")))
    *script, summary, body, end = (tmp_path / "words").read_text().split("\0")
    assert end == ""
    assert script[::2] == ["-e"] * 3
    assert "touch" not in "".join(script)
    assert summary == "1 new project is pending"
    assert body == f"{HOSTILE}\n-e x\\u{{1b}}[2J"


async def test_the_desktop_names_the_app_that_needs_permission() -> None:
    assert (await OsascriptDesktop().describe()).startswith("Script Editor (")


@pytest.mark.parametrize("script", ["echo 'not allowed' >&2; exit 1", "exit 3"])
async def test_a_failure_is_reported(tmp_path: Path, script: str) -> None:
    with pytest.raises(DesktopUnavailable, match=r"not allowed|status 3"):
        await a_program(tmp_path, script).show(DesktopNotification("a", ("b",)))


async def test_without_the_program_there_is_no_desktop(tmp_path: Path) -> None:
    with pytest.raises(DesktopUnavailable):
        await OsascriptDesktop(str(tmp_path / "none")).show(DesktopNotification("a", ("b",)))
