"""Other watchers, each in its own process: watchdog, watchfiles, watchman, and those of Node.

The libraries of Node take part if they are installed, as the newest ones are by
`npm install --prefix build/bench @parcel/watcher chokidar`.

`python tests/bench/peers.py watchdog|watchfiles FOLDER` watches FOLDER and everything below it,
prints `ready SECONDS` once it does, and drops its events as cheaply as its library allows. It ends
at the end of its standard input.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

HANG_GUARD_S = 300
NODE_LIBRARIES = ("@parcel/watcher", "chokidar")
_NODE_MODULES = Path(__file__).parent.parent.parent / "build" / "bench" / "node_modules"


@dataclass(frozen=True, slots=True)
class Peer:
    """A watcher at work: its process, and how long it took from start to watching."""

    pid: int
    start_s: float


def with_watchdog(folder: str) -> None:
    """Watch as a careful user of watchdog does: with a filter.

    Without one it is told of its own listing of the folders, and never catches up.
    """
    from watchdog.events import (  # noqa: PLC0415 - each peer pays for itself alone
        DirCreatedEvent,
        DirDeletedEvent,
        DirMovedEvent,
        FileCreatedEvent,
        FileDeletedEvent,
        FileMovedEvent,
        FileSystemEventHandler,
    )
    from watchdog.observers import Observer  # noqa: PLC0415

    wanted = [
        DirCreatedEvent, DirDeletedEvent, DirMovedEvent,
        FileCreatedEvent, FileDeletedEvent, FileMovedEvent,
    ]  # fmt: skip
    begin = time.perf_counter()
    observer = Observer()
    observer.schedule(FileSystemEventHandler(), folder, recursive=True, event_filter=wanted)
    observer.start()
    _say_ready(begin)
    sys.stdin.read()
    observer.stop()
    observer.join()


def with_watchfiles(folder: str) -> None:
    """Watch with the library's own defaults."""
    from watchfiles import watch  # noqa: PLC0415 - each peer pays for itself alone

    stop = Event()
    begin = time.perf_counter()

    def end_with_stdin() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=end_with_stdin, daemon=True).start()
    changes = watch(folder, stop_event=stop, yield_on_timeout=True, rust_timeout=100)
    # The generator watches from its first step on; that takes one empty turn of 100 ms.
    next(changes)
    _say_ready(begin + 0.1)
    for _ in changes:
        pass


def _say_ready(begin: float) -> None:
    print(f"ready {time.perf_counter() - begin}", flush=True)


def node_version(name: str) -> str | None:
    """The version of a library of Node; None where it is not installed."""
    about = _NODE_MODULES / name / "package.json"
    return str(json.loads(about.read_text())["version"]) if about.exists() else None


@contextmanager
def library_peer(name: str, folder: Path) -> Iterator[Peer]:
    """A library of Python or of Node on `folder`, in a process of its own."""
    python = [sys.executable, __file__]
    node = ["node", str(Path(__file__).with_name("watch.cjs"))]
    process = subprocess.Popen(
        [*(node if name in NODE_LIBRARIES else python), name, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NODE_PATH": str(_NODE_MODULES)},
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready "):
            raise RuntimeError(f"{name} did not start: {process.communicate()[1][-500:]}")
        try:
            yield Peer(process.pid, float(line.split()[1]))
        finally:
            process.stdin.close()
            process.terminate()


class Watchman:
    """A watchman of its own on one folder, and what it tells of names in it."""

    def __init__(self, folder: Path, state: Path) -> None:
        state.mkdir(parents=True, mode=0o700)
        self._address = str(state / "sock")
        files = {"sockname": "sock", "statefile": "state", "logfile": "log", "pidfile": "pid"}
        options = [f"--{option}={state / file}" for option, file in files.items()]
        self._process = subprocess.Popen(
            ["watchman", "--foreground", *options], stdin=subprocess.DEVNULL
        )
        self.folder = str(folder)
        self.seen: dict[str, float] = {}
        self.trouble = ""
        self._socket = self._connect()
        self._lines = self._socket.makefile("rb")
        begin = time.perf_counter()
        self._request("watch", self.folder)
        # A query is answered only when all folders were crawled.
        self._request(
            "query",
            self.folder,
            {"path": [""], "fields": ["name"], "empty_on_fresh_instance": True},
        )
        self.peer = Peer(self._process.pid, time.perf_counter() - begin)

    def follow(self) -> None:
        """Note from now on when each name is told of for the first time."""
        self._request("subscribe", self.folder, "bench", {"fields": ["name"]})
        Thread(target=self._note, daemon=True).start()

    def when(self, name: str, patience: float = 5) -> float | None:
        """When the name, relative to the folder, was first told of; None if it is not in time."""
        deadline = time.perf_counter() + patience
        while name not in self.seen:
            if time.perf_counter() > deadline:
                return None
            Event().wait(0.01)
        return self.seen[name]

    def close(self) -> None:
        """End this watchman."""
        self._process.terminate()
        self._process.wait(HANG_GUARD_S)
        self._lines.close()
        self._socket.close()

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + HANG_GUARD_S
        while True:
            channel = socket.socket(socket.AF_UNIX)
            try:
                channel.connect(self._address)
            except OSError:
                channel.close()
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                Event().wait(0.01)
            else:
                return channel

    def _request(self, *words: object) -> dict[str, Any]:
        self._socket.sendall(json.dumps(words).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def _note(self) -> None:
        # Ends with the connection, which its owner closes.
        try:
            for line in self._lines:
                now = time.perf_counter()
                told = json.loads(line.decode(errors="replace"), strict=False)
                for name in told.get("files", ()):
                    self.seen.setdefault(name, now)
        except (OSError, ValueError) as error:
            self.trouble = str(error)


@contextmanager
def watchman(folder: Path, state: Path) -> Iterator[Watchman]:
    """A watchman of its own on `folder`, which keeps what it needs in `state`."""
    running = Watchman(folder, state)
    try:
        yield running
    finally:
        running.close()


def bearable(top: Path) -> None:
    """Take away the names that are not UTF-8: they end watchfiles, and watchman sends no JSON."""
    for path in (top / "odd").iterdir():
        try:
            os.fsencode(path).decode()
        except UnicodeDecodeError:
            shutil.rmtree(path)


def has_watchman() -> bool:
    """Whether watchman is installed."""
    return shutil.which("watchman") is not None


if __name__ == "__main__":
    {"watchdog": with_watchdog, "watchfiles": with_watchfiles}[sys.argv[1]](sys.argv[2])
    os._exit(0)
