"""The question which folders are in use, through a real helper."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.helper.client import NoAnswer, UnavailableHelper
from rootsd.helper.folders import ask_folders_in_use
from rootsd.helper.protocol import TASK_SPECS, HelperTask
from support.helper_process import helper_on
from support.repositories import raw


class Late(UnavailableHelper):
    """A helper that runs and has no answer."""

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        raise NoAnswer("late")


@pytest.mark.needs("linux")
def test_folders_that_a_process_uses_are_returned(tmp_path: Path) -> None:
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
        assert ask_folders_in_use(helper, {made: 1, other: 2}.keys()) == {made}
        copying.stdin.close()


def test_without_a_helper_no_folder_is_in_use() -> None:
    assert ask_folders_in_use(UnavailableHelper("a test"), [b"/one"]) == frozenset()


def test_without_an_answer_all_folders_may_be_in_use() -> None:
    assert ask_folders_in_use(Late("a test"), [b"/one"]) == {b"/one"}
