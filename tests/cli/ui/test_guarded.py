"""The guard judges the commands of the screen, on a real terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.cli.ui.daemon_turns import CHALLENGE_NOTICE
from support.guarded_daemon import GuardedDaemon, guarded_daemon
from support.process_launcher import ROOTSD

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[GuardedDaemon]:
    with guarded_daemon(tmp_path) as scene:
        yield scene


def test_a_person_types_the_word_and_comes_back_to_the_screen(scene: GuardedDaemon) -> None:
    run = scene.launcher.run_on_terminal
    assert run(*ROOTSD, "guard", "terminal").status == 0
    path = scene.person.parent / "one"
    # The challenge that was drawn over the screen comes first. It is not the one to answer.
    second = (
        f"{CHALLENGE_NOTICE}\r\n\r\r\ndeny {path}\r\r\n"
        "Confirm this command, because the guard asks every time.\r\r\nType "
    )
    typed = [("Pending 1", "d"), (second, "{word}\n"), ("Denied ", "q")]
    assert run(*ROOTSD, "ui", typed=typed).status == 0
    (item,) = scene.person.items("ls")
    assert item["verdict"] == "denied"
    assert scene.log()[-1]["actor"] == "challenge confirmed"
