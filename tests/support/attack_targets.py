"""The folders, sockets, and processes that attacks on the wall aim at."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
)
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.kernel.supervision import Layer as CellLayer
from rootsd.wall.kernel.supervision import Network
from support.confine_attacks import PROTECTED_NAMES
from support.walls import Interpreter, Wall

_IPC_PRIVATE, _IPC_CREAT, _IPC_RMID = 0, 0o1000, 0
_OPEN_GONE = """
os.chdir('{gone}')
FOLDER = os.open('{gone}', os.O_RDONLY)
PLACE = os.open('{gone}', os.O_PATH)
FILE = os.open('{gone}/file', os.O_RDONLY)
"""


def _give(listener: socket.socket, fd: int) -> None:
    """Send a descriptor to each program that connects."""
    with suppress(OSError):  # the listener was shut down
        while True:
            with listener.accept()[0] as connection, suppress(OSError):
                socket.send_fds(connection, [b"x"], [fd])


class AttackTargets:
    """A user's files below `base`, which is outside the view's temporary folders, and programs
    outside the wall.

    `values` fills in the attacks' lines.
    """

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self._stack = ExitStack()
        self.home = self.base / "home"
        self.root, self.read_only = self.base / "root", self.base / "read-only"
        self.pending, self.gone = self.base / "pending", self.base / "gone"
        self.tree, self.checkout = self.base / "tree", self.base / "checkout"
        self.forged, self.claimed = self.base / "forged", self.base / "claimed"
        self._make_folders()
        self._make_worktrees()
        victim = self._start_victim()
        abstract = f"rootsd-attack-{os.getpid()}"
        display = Path(f"/tmp/rootsd-display-{os.getpid()}")
        self._stack.callback(display.unlink)
        for address in (
            *map(os.fspath, (
                self.pending / "socket", self.gone / "socket", display, self.home / ".ssh/agent",
                self.home / ".gnupg/S.gpg-agent", self.home / ".docker/docker.sock",
                self.base / "runtime/ctl/control.sock",
            )),
            "\0" + abstract,
        ):  # fmt: skip
            self._bind(socket.SOCK_STREAM, address).listen(64)
        for address in (os.fspath(self.pending / "datagrams"), f"\0{abstract}-datagrams"):
            self._bind(socket.SOCK_DGRAM, address)
        folder = os.open(self.pending, os.O_PATH)
        self._stack.callback(os.close, folder)
        process = os.pidfd_open(victim.pid)
        self._stack.callback(os.close, process)
        for name, fd in (("give-folder", folder), ("give-process", process)):
            giver = self._bind(socket.SOCK_STREAM, os.fspath(self.root / name))
            giver.listen(64)
            threading.Thread(target=_give, args=(giver, fd), daemon=True).start()
            self._stack.callback(giver.shutdown, socket.SHUT_RDWR)
        server = self._stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        server6 = self._stack.enter_context(
            socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=64)
        )
        shared = Path(f"/dev/shm/rootsd-attack-{os.getpid()}")
        shared.write_text("secret")
        self._stack.callback(shared.unlink)
        temporary = Path(f"/var/tmp/rootsd-attack-{os.getpid()}")
        temporary.write_text("secret")
        self._stack.callback(temporary.unlink)
        library = ctypes.CDLL(None)
        segment = 0x52440000 + os.getpid()
        number = library.shmget(segment, 4096, _IPC_CREAT | 0o600)
        self._stack.callback(library.shmctl, number, _IPC_RMID, None)
        number = library.msgget(segment, _IPC_CREAT | 0o600)
        self._stack.callback(library.msgctl, number, _IPC_RMID, None)
        number = library.semget(segment, 1, _IPC_CREAT | 0o600)
        self._stack.callback(library.semctl, number, 0, _IPC_RMID)
        self.values = {
            "base": self.base, "home": self.home, "root": self.root, "read_only": self.read_only,
            "pending": self.pending, "gone": self.gone, "victim": victim.pid,
            "abstract": abstract, "port": server.getsockname()[1], "temporary": temporary,
            "segment": segment, "port6": server6.getsockname()[1], "shared": shared,
            "display": display, "tree": self.tree, "checkout": self.checkout,
            "claimed": self.claimed,
        }  # fmt: skip

    def _start_victim(self) -> subprocess.Popen[bytes]:
        """Start a process outside that waits in the pending folder."""
        victim = subprocess.Popen(
            [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.pending,
        )  # fmt: skip
        assert victim.stdin is not None
        assert victim.stdout is not None
        victim.stdout.readline()
        self._stack.callback(victim.wait)
        self._stack.callback(victim.kill)
        self._stack.callback(victim.stdin.close)
        self._stack.callback(victim.stdout.close)
        return victim

    def fill(self, line: str) -> str:
        """Return a line of the table with the paths of these targets."""
        for name, value in self.values.items():
            line = line.replace("{" + name + "}", str(value))
        return line

    def wall(
        self,
        name: str,
        without: Iterable[CellLayer] = (),
        network: Network = Network.SHARED,
        protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED,
    ) -> Wall:
        """Return a wall whose program is in the folder that was taken away."""
        wall = Wall(
            self.base / "state" / name, self.home, [*self.roots(), self.gone_root()],
            without=without, network=network, protection=protection,
        )  # fmt: skip
        self._stack.enter_context(wall)
        wall.run(self.fill(_OPEN_GONE))
        report = wall.order(OrderKind.REMOVE, paths=[self.gone])
        assert not report.change.failed
        return wall

    def outside(self) -> Interpreter:
        """Return the same program without any wall."""
        return self._stack.enter_context(
            Interpreter(self.home, env={**os.environ, "HOME": str(self.home)})
        )

    def roots(self) -> list[ConfinedRoot]:
        denied = frozenset({os.fsencode(self.root / "denied")})
        return [
            ConfinedRoot(os.fsencode(self.root), Access.READ_WRITE, denied=denied),
            ConfinedRoot(os.fsencode(self.read_only), Access.READ),
            *(
                ConfinedRoot(
                    os.fsencode(tree), Access.READ_WRITE, shared_git=os.fsencode(checkout)
                )
                for tree, checkout in (
                    (self.tree, self.checkout),
                    (self.forged, self.claimed),
                )
            ),
        ]

    def gone_root(self) -> ConfinedRoot:
        return ConfinedRoot(os.fsencode(self.gone), Access.READ_WRITE)

    def _make_folders(self) -> None:
        for folder in (self.home, self.root, self.read_only, self.pending, self.gone):
            folder.mkdir()
        (self.home / "bin").mkdir(parents=True)
        (self.base / "runtime" / "ctl").mkdir(parents=True)
        (self.base / "runtime" / "decisions.db").write_text("secret")
        for name in (".ssh/id_ed25519", ".npmrc", ".bashrc", ".gitconfig", "bin/tool"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text("_authToken=abcdef\n" if name == ".npmrc" else "")
        for name in (
            ".aws/credentials", ".netrc", ".git-credentials", ".kube/config",
            ".docker/config.json",
            ".bash_history", ".config/gh/hosts.yml", ".gnupg/private-keys-v1.d/key",
            ".mozilla/cookies.sqlite", ".config/git/credentials", ".config/git/config",
        ):  # fmt: skip
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text("secret")
        (self.pending / "key").write_text("secret")
        (self.root / "link").symlink_to(self.pending)
        (self.read_only / "file").write_text("text")
        (self.read_only / "other").write_text("text")
        (self.gone / "file").write_text("text")
        (self.gone / "inner").mkdir()
        for folder in (self.pending, self.gone):
            shutil.copy(shutil.which("true") or "/bin/true", folder / "program")
        subprocess.run(["git", "init", "-q", self.root], check=True, capture_output=True)
        (self.root / "denied" / "inner").mkdir(parents=True)
        (self.root / "denied" / "key").write_text("secret")
        (self.root / "denied" / ".git").write_text("gitdir: ../.git/modules/denied\n")
        for name in (
            ".git/hooks/post-merge", ".git/modules/sub/config", ".git/modules/sub/HEAD",
            ".git/modules/denied/HEAD", ".envrc", ".mcp.json", ".vscode/settings.json",
            ".claude/settings.json",
        ):  # fmt: skip
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        for name in PROTECTED_NAMES:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        for name in ("plain", "team-hooks", "nested"):
            (self.root / name).mkdir()
        (self.root / "shared.gitconfig").write_text("")
        (self.root / "rules").write_text("")
        (self.root / ".continue").symlink_to("rules")
        os.link(self.root / ".envrc", self.root / "second-name")
        for words in (
            ("init", "-q", "nested"), ("config", "core.hooksPath", "team-hooks"),
            ("config", "include.path", "../shared.gitconfig"),
        ):  # fmt: skip
            subprocess.run(["git", "-C", self.root, *words], check=True, capture_output=True)

    def _make_worktrees(self) -> None:
        """Make a worktree of a checkout that is no root, and a forged one of another checkout."""
        for checkout, tree in ((self.checkout, self.tree), (self.claimed, self.base / "real")):
            subprocess.run(["git", "init", "-q", checkout], check=True, capture_output=True)
            (checkout / "key").write_text("secret")
            (checkout / ".git" / "hooks").mkdir(exist_ok=True)
            for words in (
                ("commit", "-q", "--allow-empty", "-m", "1"),
                ("worktree", "add", "-q", os.fspath(tree)),
            ):
                subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True)
        self.forged.mkdir()
        # The entry of the real worktree links back to that one.
        (self.forged / ".git").write_bytes((self.base / "real" / ".git").read_bytes())

    def _bind(self, kind: socket.SocketKind, address: str) -> socket.socket:
        bound = self._stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        bound.bind(address)
        return bound

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
