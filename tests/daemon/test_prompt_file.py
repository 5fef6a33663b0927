"""The file for shell prompts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.inputs import ProjectGone, ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.core.throttle import TokenBucket
from rootsd.daemon.prompt_file import TAG_LIMIT, PromptFile, plain_tag, prompt_line
from rootsd.places.runtime_dir import RuntimeDir
from support.control_harness import ControlHarness
from support.ledger_harness import SOURCES
from support.polling import until
from support.sample_decisions import PERSON, identity, project

PID = os.getpid()


class Scene:
    """A ledger with one pending project, and its file below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.ledger = ControlHarness(project(1)).world.ledger
        self.folder = folder
        self.now = 0.0
        self.keeper = PromptFile(
            self.ledger, lambda: RuntimeDir(os.fsencode(self.folder)), clock=lambda: self.now,
            limit=TokenBucket(burst=3, per_second=1.0),
        )  # fmt: skip

    def text(self) -> str | None:
        file = self.folder / "prompt"
        return file.read_text() if file.exists() else None

    async def find(self, number: int) -> None:
        path = SOURCES + b"/p%d" % number
        await self.ledger.observe([ProjectObserved(path, ProjectKind.GIT, identity(number))])

    async def set_focus(self, tag: str | None) -> None:
        note = SettingChange(FocusRecord(tag), PERSON, ChangeVerb.FOCUS_SET)
        await self.ledger.change_focus(note, lambda focus: focus.for_new_sessions(tag))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self.keeper.keep)
            await self.until(f"{PID} 1\n")
            yield
            group.cancel_scope.cancel()

    async def until(self, line: str | None) -> None:
        await to_thread.run_sync(until, lambda: self.text() == line)


async def test_the_file_has_the_pending_projects_and_the_focus(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with scene.running():
        found = (tmp_path / "prompt").stat()
        assert stat.S_IMODE(found.st_mode) == 0o600
        await scene.find(2)
        await scene.until(f"{PID} 2\n")
        await scene.set_focus("work")
        await scene.until(f"{PID} 2 work\n")
    assert os.listdir(tmp_path) == []


async def test_it_is_replaced_as_a_whole_and_only_if_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompt.new").write_text("left by a daemon that crashed")
    (tmp_path / "prompt").write_text("1 99 old\n")
    written = list[str]()
    replace = os.replace

    def record(source: bytes, target: bytes) -> None:
        written.append(Path(os.fsdecode(source)).read_text())
        replace(source, target)

    monkeypatch.setattr(os, "replace", record)
    scene = Scene(tmp_path)
    scene.keeper = PromptFile(scene.ledger, lambda: RuntimeDir(os.fsencode(tmp_path)))
    async with scene.running():
        await scene.ledger.observe([ProjectGone(SOURCES + b"/unknown")])
        await scene.set_focus("work")
        await scene.until(f"{PID} 1 work\n")
        await scene.set_focus("work")
        await scene.find(2)
        await scene.until(f"{PID} 2 work\n")
    assert written == [f"{PID} 1\n", f"{PID} 1 work\n", f"{PID} 2 work\n"]


async def test_many_changes_are_written_together(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with scene.running():
        for number in (2, 3):
            await scene.find(number)
            await scene.until(f"{PID} {number}\n")
        await scene.find(4)
        await anyio.wait_all_tasks_blocked()
        assert scene.text() == f"{PID} 3\n"  # three writes were free, and no time has passed
        await scene.find(5)
        scene.now = 1.0
        await scene.until(f"{PID} 5\n")


async def test_the_file_follows_the_sockets_to_another_folder(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "first")
    scene.folder.mkdir()
    async with scene.running():
        scene.folder = tmp_path / "second"
        await scene.find(2)  # the folder is not there yet: prompts show nothing
        await anyio.wait_all_tasks_blocked()
        scene.folder.mkdir()
        await scene.find(3)
        await scene.until(f"{PID} 3\n")
    assert os.listdir(scene.folder) == []


HOSTILE = (
    "$(touch x)",
    "`x`",
    "%F{red}",
    "a\\u@h",
    "!!",
    "a b",
    "[x](y)",
    "#(x)",
    "\x1b[2J",
    "\u202e",
)


@pytest.mark.parametrize("tag", HOSTILE)
def test_a_tag_has_nothing_that_a_shell_expands_in_a_prompt(tag: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_._+@:-]+", plain_tag(tag))
    assert prompt_line(1, 0, tag) == f"1 0 {plain_tag(tag)}\n"


@given(st.text(min_size=1))
def test_any_tag_is_one_short_word(tag: str) -> None:
    plain = plain_tag(tag)
    assert plain.isprintable()
    assert len(plain) == min(len(tag), TAG_LIMIT)
    assert not set(plain) & set("\\$`%!()[]{}<>'\"#;&|*?~^= \n")


def test_letters_of_all_scripts_stay() -> None:
    assert plain_tag("日本-é.2") == "日本-é.2"
