"""The question about who is at work, through a real helper."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.helper.client import NoAnswer, UnavailableHelper
from rootsd.helper.protocol import TASK_SPECS, HelperTask
from rootsd.helper.questions import ask_folders_in_use
from support.helping import helper_on
from support.repos import raw


class Late(UnavailableHelper):
    """A helper that is there and does not know."""

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        raise NoAnswer("late")


@pytest.mark.needs("linux")
def test_those_are_told_on_which_a_process_is_at_work(tmp_path: Path) -> None:
    made, other = raw(tmp_path / "one"), raw(tmp_path / "two")
    waits = "import sys; print('ready', flush=True); sys.stdin.read()"
    with (
        helper_on(TASK_SPECS[HelperTask.FOLDERS_IN_USE]) as helper,
        subprocess.Popen(
            [sys.executable, "-c", waits, "copy", made],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as copying,
    ):  # fmt: skip
        assert copying.stdin is not None
        assert copying.stdout is not None
        assert copying.stdout.readline() == b"ready\n"
        assert ask_folders_in_use(helper, [made, other]) == {made}
        copying.stdin.close()


def test_without_a_helper_nobody_is_seen() -> None:
    assert ask_folders_in_use(UnavailableHelper("a test"), [b"/one"]) == frozenset()


def test_where_it_cannot_tell_all_may_be_worked_on() -> None:
    assert ask_folders_in_use(Late("a test"), [b"/one"]) == {b"/one"}
