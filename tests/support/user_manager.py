"""A real `systemd --user` for a test, with its own user and an empty home. Nothing stays
afterwards.

Everything happens in its own namespaces (`user_manager.sh`), and `run` enters them. The setup
needs root. The programs inside run as an ordinary user without capabilities.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.user_commands import UserCommands

UID = 64001
HOME = Path("/home/user")
RUNTIME = Path(f"/run/user/{UID}")
ENVIRONMENT = HOME / ".local/share/pipx/venvs/rootsd"
LINK = HOME / ".local/bin/rootsd"
HANG_GUARD_S = 120
_STAGE = Path(__file__).with_suffix(".sh")
_numbers = itertools.count(1)

Finished = subprocess.CompletedProcess[str]


@dataclass(slots=True)
class UserManager:
    """A running manager. `inside` is a process in its namespaces."""

    inside: int
    uid: int = UID
    commands: UserCommands = field(init=False)

    def __post_init__(self) -> None:
        python = self.command(str(ENVIRONMENT / "bin/python"))
        self.commands = UserCommands(python, str(LINK))

    def command(
        self, *words: str, environment: dict[str, str] | None = None, uid: int = UID
    ) -> list[str]:
        """The words that run `words` as the user, or as another one in the same home, with the
        environment of a login shell."""
        variables = {
            "HOME": str(HOME),
            "USER": "user",
            "LANG": "C.UTF-8",
            "PATH": f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin",
            "XDG_RUNTIME_DIR": str(RUNTIME),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environment or {}),
        }
        return [
            "nsenter", f"--target={self.inside}", "--mount", "--pid", "--cgroup", f"--wdns={HOME}",
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
            "env", "-i", *(f"{name}={value}" for name, value in variables.items()), *words,
        ]  # fmt: skip

    def run(
        self,
        *words: str,
        environment: dict[str, str] | None = None,
        said: str | None = None,
        uid: int = UID,
    ) -> Finished:
        """Run a program there, whatever comes of it; `said` is its standard input."""
        return subprocess.run(
            self.command(*words, environment=environment, uid=uid),
            input=said,
            stdin=subprocess.DEVNULL if said is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD_S,
        )

    def begin(self, *words: str, uid: int = UID) -> subprocess.Popen[str]:
        """Start a program there that says `ready` and stays until its input ends."""
        begun = subprocess.Popen(
            self.command(*words, uid=uid),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert begun.stdout
        assert begun.stdout.readline() == "ready\n"
        return begun

    def succeed(self, *words: str) -> str:
        """Run a program there and let it succeed; what it printed."""
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def rootsd(self, *words: str, environment: dict[str, str] | None = None) -> str:
        """Let `rootsd` with a verb succeed, and return what it printed, like `run_rootsd`."""
        done = self.run_rootsd(*words, environment=environment)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def published(self) -> list[str]:
        """Return the names of the published roots, without an MCP client. For the first such
        client, a daemon loads the MCP SDK, which takes longer than its start.
        """
        items = json.loads(self.rootsd("ls", "--published", "--json"))["items"]
        return [item["name"] for item in items]

    def run_rootsd(self, *words: str, environment: dict[str, str] | None = None) -> Finished:
        """Run `rootsd` with a verb, whatever comes of it, as a fork of a process that has loaded
        it. A test that is about the program uses `run`.
        """
        return self.commands.run(words, environment or {})

    def let_any_program_decide(self, folder: Path = HOME / ".config/rootsd") -> None:
        """Turn the guard off, because it does not know what starts the commands of a test.

        `folder` is that of a configuration which does not exist yet.
        """
        text = '[approval]\\nguard = "off"\\n'
        self.succeed("sh", "-c", f"mkdir -p {folder} && printf '{text}' >{folder}/config.toml")

    def systemctl(self, *words: str) -> str:
        """`systemctl --user`, which succeeds."""
        return self.succeed("systemctl", "--user", *words)

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value").strip()

    def path(self, inside: Path) -> Path:
        """Where a path of the user is seen from out here, by root."""
        return Path(f"/proc/{self.inside}/root{inside}")


@contextmanager
def user_manager(kept: Sequence[Path], *variables: str) -> Iterator[UserManager]:
    """Run a manager. The folders `kept` are readable inside at their own paths."""
    group = f"rootsd-test-{os.getpid()}-{next(_numbers)}"
    stage = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--cgroup", "--kill-child", "--mount-proc",
         "bash", str(_STAGE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TEST_UID": str(UID), "GROUP": group,
             "KEPT": " ".join(str(folder) for folder in kept), "MORE": " ".join(variables)},
    )  # fmt: skip
    try:
        assert stage.stdout
        assert stage.stdout.readline() == b"ready\n", "systemd --user does not come up"
        (inside,) = Path(f"/proc/{stage.pid}/task/{stage.pid}/children").read_text().split()
        user = UserManager(int(inside))
        user.let_any_program_decide()
        try:
            yield user
        finally:
            user.commands.close()
    finally:
        stage.communicate(timeout=HANG_GUARD_S)
        _remove_group(group)


def interpreter_folders() -> list[Path]:
    """Return the folders that a Python like ours needs, and the packages of our environment."""
    packages = next(Path(entry) for entry in sys.path if entry.endswith("/site-packages"))
    return [Path(sys.base_prefix), packages] if sys.base_prefix != "/usr" else [packages]


def _remove_group(name: str) -> None:
    """Remove the control group, from the leaves up."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            mounted = Path(line.split()[4])
            own = next(
                line.removeprefix("0::").strip()
                for line in Path("/proc/self/cgroup").read_text().splitlines()
                if line.startswith("0::")
            )
            top = mounted / own.lstrip("/") / name
            for folder in sorted(top.rglob("*/"), key=lambda path: -len(path.parts)):
                if folder.is_dir():
                    folder.rmdir()
            if top.is_dir():
                top.rmdir()
            return
