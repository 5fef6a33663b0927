"""A guarded daemon for end-to-end tests, with agents and people who give it commands."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from support import fake_agent as agent_script
from support import lean_order
from support.person import Person, Resident
from support.process_launcher import ROOTSD, Completed, ProcessLauncher
from support.sizes import Sizes

KNOWN, UNKNOWN = "goose", "my-agent"
MARKER = {"GOOSE_TERMINAL": "1"}
LEAN_ORDER = [sys.executable, "-S", lean_order.__file__]
AGENT = Path(agent_script.__file__)
OWN_PROGRAMS = ("code", "cron", "holder", "sshd", "sshd-session", "xterm")
APPROVE = (*ROOTSD, "approve", "one")
TMUX = {"TMUX_TMPDIR": "/tmp"}


class Outcome(StrEnum):
    """The outcome of an attempt."""

    REFUSED = "refused"
    PASSED = "passed"
    ASKED_AND_PASSED = "asked for a word, typed it, passed"


class GuardedDaemon:
    """A daemon with the guard on, one project, programs under chosen names, and a process
    launcher.

    `approve` is the command of the attempts: see `lean_order`.
    """

    def __init__(
        self, person: Person, folder: Path, orders: Sequence[str], group: Path | None
    ) -> None:
        self.person = person
        self.approve = (*orders, "approve", "one")
        self._events_before = 0
        self._folder = folder
        environment = {**person.environment(), "TERM": "xterm", "NO_COLOR": "1"}
        environment["PYTHON"] = sys.executable
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        # The pid keeps a server that a killed run left behind from serving the next run.
        server = f"{folder.name}-{os.getpid()}"
        environment |= {**TMUX, "TMUX_SERVER": server}
        self.launcher = ProcessLauncher(folder, environment, group)
        self.tmux = ("tmux", "-L", server, "-f", "/dev/null")

    @property
    def line(self) -> str:
        """The command of the attempts, for a shell."""
        return shlex.join(self.approve)

    def own(self, name: str) -> Path:
        """Return where a person's own program of this name is, which the guard knows."""
        return self._folder / "own" / name

    def script(self, name: str, text: str) -> tuple[str, str]:
        """Return the words that run `text` as a person's own program of this name."""
        self.own(name).write_text(text)
        return sys.executable, str(self.own(name))

    def allow_own_programs(self) -> None:
        """Let a person allow the programs that stand for those of a desktop, with one word."""
        self.own("").mkdir()
        ours = (lean_order.__file__, *map(str, map(self.own, OWN_PROGRAMS)))
        asked = self.launcher.run_on_terminal(
            *LEAN_ORDER, "allow", *ours, typed=[("to go on: ", "{word}\n")]
        )
        assert asked.status == 0, asked.output

    def named(self, name: str) -> Path:
        """Return a Python interpreter with this program name."""
        program = self._folder / name
        if not program.exists():
            program.symlink_to(os.path.realpath(sys.executable))
        return program

    def outcome(self, completed: Completed) -> Outcome:
        """Return the outcome of an approval, and revoke it."""
        (item,) = self.person.items("ls")
        if item["verdict"] != "approved":
            assert item["verdict"] == "pending", completed.output
            return Outcome.REFUSED
        self.launcher.run_on_terminal(*ROOTSD, "forget", "one")
        asked = " to go on: " in completed.output
        return Outcome.ASKED_AND_PASSED if asked else Outcome.PASSED

    def begin(self) -> None:
        """Begin a test: the person looks at the refusals before it, and `log` omits them."""
        self.launcher.run_on_terminal(*ROOTSD, "status")
        self._events_before = len(self.person.items("log"))

    def log(self) -> list[dict[str, str]]:
        """Return the events of the history, in this test if it has called `begin`."""
        return self.person.items("log")[self._events_before :]

    def typed_into_bash(self, *lines: str) -> Completed:
        """Type lines into a shell on its own terminal."""
        typed = [("$ ", f"{line}\n") for line in lines]
        return self.launcher.run_on_terminal(
            "bash", "--norc", "-i", typed=[*typed, ("$ ", "exit\n")], PS1="$ "
        )


def orders(sizes: Sizes) -> Sequence[str]:
    """Return the program of the attempts at this size."""
    return sizes.pick(test=LEAN_ORDER, check=ROOTSD, soak=ROOTSD)


@contextmanager
def guarded_daemon(
    folder: Path, orders: Sequence[str] = ROOTSD, group: Path | None = None
) -> Iterator[GuardedDaemon]:
    """Run a guarded daemon. If `group` is given, its processes are in that control group."""
    person = Resident(folder, guard="agents")
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("one", "pending")
    scene = GuardedDaemon(person, folder, orders, group)
    with scene.launcher:
        scene.allow_own_programs()
        yield scene
    person.run("down")
