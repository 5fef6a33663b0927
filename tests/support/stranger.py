"""The machine of a stranger: an empty home, Python, git, and a shell, and nothing else.

bubblewrap makes it, like a container: its own files, processes, user, and no network. The stranger
sits at one terminal for the whole time, and types into one shell. So the daemon that a command
starts is still there for the next one.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pexpect

from support.documents import COLUMNS, without_escapes
from support.pipx_install import interpreter

HOME, USER, UID = "/home/you", "you", "1000"
WHEELS, EXTRA = "/wheels", "/opt"
HANG_GUARD_S = 180
_QUESTION_GUARD_S = 30
_ROWS = 40
# What is in /usr/bin, beside Python.
_PROGRAMS = (
    "bash", "cat", "git", "grep", "id", "ln", "ls", "mkdir", "mv", "readlink", "rm", "setsid",
    "sh", "stty", "touch", "uname",
)  # fmt: skip
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/root:/bin/sh\n{USER}:x:{UID}:{UID}::{HOME}:/bin/bash\n",
    "group": f"root:x:0:\n{USER}:x:{UID}:\n",
}
# The prompt holds the exit status. Without an echo of what is typed, all the rest is output.
_PROMPT = re.compile(r"@@(\d+)@@")
_QUIET_PROMPT = "stty -echo; PS1='@@$?@@'"


@dataclass(frozen=True, slots=True)
class Typed:
    """What a command printed, with the home folder as ~, and its exit status."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


class Stranger:
    """A person at a terminal of that machine, as a context manager.

    `home` is their home folder, seen from outside. `wheels` is a folder of wheels in place of a
    package index. `extra` is a folder of more files, at /opt. `more` are further words for
    bubblewrap, and `variables` are in the environment of the shell.
    """

    def __init__(
        self,
        home: Path,
        wheels: Path,
        extra: Path,
        more: Sequence[str] = (),
        **variables: str,
    ) -> None:
        self.home = home
        self._words = [*_machine(home, wheels, extra), *more]
        self._variables = {
            "HOME": HOME, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash", "TERM": "xterm",
            "LANG": "C.UTF-8", "PATH": f"{HOME}/.local/bin:{Path(interpreter()).parent}:/usr/bin",
            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": WHEELS, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **variables,
        }  # fmt: skip

    def __enter__(self) -> Self:
        for name, value in self._variables.items():
            self._words += ["--setenv", name, value]
        self._terminal = pexpect.spawn(
            "bwrap",
            [*self._words, "--", "bash", "--norc", "--noprofile", "--noediting"],
            dimensions=(_ROWS, COLUMNS),
            encoding="utf-8",
            timeout=HANG_GUARD_S,
        )
        self._terminal.sendline(_QUIET_PROMPT)
        self._terminal.expect(_PROMPT)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._terminal.close(force=True)

    def types(self, command: str, *answers: tuple[str, str]) -> Typed:
        """Type a command, and a key at each question, which is a part of the text before it.

        No command may fail with a traceback, whatever its exit status.
        """
        self._terminal.sendline(command)
        shown = ""
        for question, key in answers:
            self._terminal.expect_exact(question, timeout=_QUESTION_GUARD_S)
            shown += str(self._terminal.before) + question
            self._terminal.expect_exact("] ")
            shown += f"{self._terminal.before}] "
            self._terminal.send(key)
        self._terminal.expect(_PROMPT)
        shown += str(self._terminal.before)
        text = without_escapes(shown.replace("\r\n", "\n")).replace(HOME, "~")
        text = "".join(line.rpartition("\r")[2] for line in text.splitlines(keepends=True))
        assert "Traceback" not in text, text
        assert "bug in rootsd" not in text, text
        prompt = self._terminal.match
        assert isinstance(prompt, re.Match)
        return Typed(int(prompt[1]), text)

    def succeeds(self, command: str, *answers: tuple[str, str]) -> Typed:
        """Type a command that must succeed."""
        done = self.types(command, *answers)
        assert done.status == 0, f"$ {command}\n{done.text}"
        return done


def _machine(home: Path, wheels: Path, extra: Path) -> list[str]:
    """Return the words of bubblewrap for the files and namespaces of the machine."""
    accounts = extra.parent / "accounts"
    accounts.mkdir(exist_ok=True)
    for name, text in _ACCOUNTS.items():
        (accounts / name).write_text(text)
    words = [
        "--unshare-all", "--uid", UID, "--gid", UID, "--die-with-parent", "--clearenv",
        "--hostname", "stranger", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
        "--tmpfs", "/run", "--ro-bind", "/usr", "/usr", "--tmpfs", "/usr/bin",
        "--tmpfs", "/usr/sbin", "--tmpfs", "/usr/local",
    ]  # fmt: skip
    for folder in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if Path("/", folder).is_symlink():
            words += ["--symlink", f"usr/{folder}", f"/{folder}"]
        elif Path("/", folder).is_dir() and folder.startswith("lib"):
            words += ["--ro-bind", f"/{folder}", f"/{folder}"]
    # A link from elsewhere would not do: Python looks for its library beside that of `python3`.
    python = Path(interpreter())
    if sys.base_prefix != "/usr":
        words += ["--ro-bind", sys.base_prefix, sys.base_prefix, "--tmpfs", str(python.parent)]
    words += ["--ro-bind", str(python.resolve()), str(python)]
    words += ["--symlink", python.name, str(python.parent / "python3")]
    for name in _PROGRAMS:
        found = shutil.which(name)
        assert found is not None, name
        words += ["--ro-bind", str(Path(found).resolve()), f"/usr/bin/{name}"]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for name in _ACCOUNTS:
        words += ["--ro-bind", str(accounts / name), f"/etc/{name}"]
    places = {home: HOME, wheels: WHEELS, extra: EXTRA}
    for place, seen_as in places.items():
        words += ["--bind" if place == home else "--ro-bind", str(place), seen_as]
    return [*words, "--chdir", HOME]
