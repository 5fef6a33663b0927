"""Real processes that use a folder, or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rootsd.processes.activity import folders_in_use
from support.repositories import raw

pytestmark = pytest.mark.needs("linux")

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def _process(
    *arguments: str | Path, program: str = "", code: str = WAIT, cwd: Path
) -> Iterator[None]:
    """A Python that waits, under another name if `program` is given."""
    process = subprocess.Popen(
        [program or sys.executable, "-c", code, *arguments],
        executable=sys.executable, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.stdin.close()


def test_the_folder_among_the_arguments_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def no_descriptors(path: bytes) -> list[bytes]:
        if path.endswith(b"/fd"):
            raise PermissionError
        return listdir(path)

    assert not folders_in_use([raw(tmp_path / "one")])
    with _process("copy", "one", cwd=tmp_path):
        assert folders_in_use([raw(tmp_path / "one")])
        assert not folders_in_use([raw(tmp_path / "one-more")])
        monkeypatch.setattr(os, "listdir", no_descriptors)
        assert folders_in_use([raw(tmp_path / "one")]), "also of an unreadable one"


def test_a_rootsd_command_does_not_use_the_folder_that_it_names(tmp_path: Path) -> None:
    with _command("rootsd", "approve", "one", cwd=tmp_path):
        assert not folders_in_use([raw(tmp_path / "one")])
    with _command("timeout", "9", "/usr/bin/rootsd", "approve", "one", cwd=tmp_path):
        assert not folders_in_use([raw(tmp_path / "one")])
    with _command("other", "approve", "one", cwd=tmp_path):
        assert folders_in_use([raw(tmp_path / "one")])
    with _process("clone", "https://example.org/rootsd", "one", program="git", cwd=tmp_path):
        assert folders_in_use([raw(tmp_path / "one")])


@contextmanager
def _command(name: str, *arguments: str, cwd: Path) -> Iterator[None]:
    """Run a script of this name, which waits, as Python runs the installed one."""
    script = cwd / name
    script.write_text(WAIT)
    command = [sys.executable, "-I", "-S", str(script), *arguments]
    with subprocess.Popen(command, cwd=cwd, stdin=-1, stdout=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        process.stdin.close()


def test_a_tool_with_its_working_directory_inside_counts_and_an_editor_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "one" / "sub").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    with (
        _process(program="tar", cwd=tmp_path / "one" / "sub"),
        _process(program="vim", cwd=tmp_path / "two"),
    ):
        folders = [raw(tmp_path / name) for name in ("one", "two")]
        assert folders_in_use(folders) == {folders[0]}


def test_a_clone_with_this_destination(tmp_path: Path) -> None:
    sources = {
        "one": "https://example.org/a/one.git",
        "two": "git@host:two",
        "three": "/up/three/",
    }
    with ExitStack() as stack:
        for source in sources.values():
            stack.enter_context(_process("clone", source, program="git", cwd=tmp_path))
        folders = [raw(tmp_path / name) for name in (*sources, "four")]
        assert folders_in_use(folders) == {*folders[:3]}


def test_a_file_open_for_writing_below_counts_and_one_call_covers_many_folders(
    tmp_path: Path,
) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    (tmp_path / "three" / "file").touch()
    folders = {name: raw(tmp_path / name) for name in ("one", "two", "three", "four")}
    code = f"kept = open('two/file', 'w'), open('three/file'); {WAIT}"
    with _process("copy", "one", code=code, cwd=tmp_path):
        assert folders_in_use(folders.values()) == {folders["one"], folders["two"]}


def test_without_folders_no_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "listdir")
    assert folders_in_use([]) == frozenset()
