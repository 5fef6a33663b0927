"""A folder is denied and approved again while a program works in it: the program goes on, or the
person reads what to do, and the same command works after that.
"""

from __future__ import annotations

import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from support.roots_publisher import RootsPublisher
from support.terminal_programs import SHELL, on_terminal

pytestmark = pytest.mark.needs("wall", "bash")

_PROMPT = r"in\$ "
_ADVICE = 'cd "$PWD"'
_WAIT_AND_MAKE = "echo waits; cat .go; echo made > result"


class Program(NamedTuple):
    """A program that says `waits`, reads the named pipe `.go`, and makes the file `result`."""

    typed: str
    file: str
    text: str


PROGRAMS = {
    "npm install": Program(
        "npm install --foreground-scripts --offline",
        "package.json",
        f'{{"name":"x","version":"1.0.0","scripts":{{"install":"{_WAIT_AND_MAKE}"}}}}',
    ),
    "a script": Program("sh script", "script", _WAIT_AND_MAKE),
}


class Session:
    """A shell behind the wall, on a terminal, in the folder `live`."""

    def __init__(self, publisher: RootsPublisher, folder: Path) -> None:
        self.folder = folder
        self._publisher = publisher
        self._root = ConfinedRoot(os.fsencode(folder), Access.READ_WRITE, name="live")
        publisher.publish(self._root)
        shell = ("env", "PS1=in$ ", *SHELL)
        words = (sys.executable, "-m", "rootsd", "confine", "--all", "--", *shell)
        self.terminal = on_terminal(words, folder)
        self.said(_PROMPT)

    def said(self, end: str) -> str:
        """Return what the terminal shows until `end`."""
        self.terminal.expect(end)
        return str(self.terminal.before)

    def deny(self) -> None:
        self._publisher.publish_and_wait()

    def approve(self) -> None:
        self._publisher.publish_and_wait(self._root)


@pytest.fixture
def session(tmp_path: Path, publisher: RootsPublisher) -> Iterator[Session]:
    (tmp_path / "live").mkdir()
    session = Session(publisher, tmp_path / "live")
    yield session
    session.terminal.close(force=True)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=name, marks=pytest.mark.needs("npm") if "npm" in name else ())
        for name, program in PROGRAMS.items()
    ],
)
def test_a_program_fails_the_person_reads_what_to_do_and_it_works_again(
    session: Session, program: Program
) -> None:
    (session.folder / program.file).write_text(program.text)
    os.mkfifo(session.folder / ".go")
    result = session.folder / "result"
    session.terminal.sendline(f"{program.typed}; echo status-$?")
    session.said(r"waits\r")
    with (session.folder / ".go").open("w"):
        session.deny()
        session.approve()
    said = session.said(r"status-[1-9]") + session.said(_PROMPT)
    assert _ADVICE in said
    assert not result.exists()
    session.terminal.sendline(f"{_ADVICE}; {program.typed}; echo status-$?")
    session.said(r"waits\r")
    (session.folder / ".go").open("w").close()
    session.said("status-0")
    assert result.read_text().strip() == "made"


def test_a_development_server_goes_on(session: Session) -> None:
    (session.folder / "page").write_text("text")
    session.terminal.sendline("python3 -u -m http.server --bind 127.0.0.1 0")
    session.said(r"port \d+")
    address = f"http://127.0.0.1:{str(session.terminal.after).split()[1]}/page"
    session.deny()
    with pytest.raises(HTTPError, match="404"):
        urllib.request.urlopen(address)
    session.approve()
    with urllib.request.urlopen(address) as answer:
        assert answer.read() == b"text"


@pytest.mark.needs("vim")
def test_an_editor_keeps_the_text_and_saves_it_in_the_folder_again(session: Session) -> None:
    file = session.folder / "text"
    file.write_text("before\n")
    session.terminal.sendline("vim -u NONE -i NONE text")
    session.said("before")
    session.deny()
    session.approve()
    session.terminal.send("ccafter\x1b:w\r")
    session.said(r"E\d+:")
    session.terminal.send("\r:cd $PWD\r:wq\r")
    assert _ADVICE in session.said(_PROMPT)
    assert file.read_text() == "after\n"
