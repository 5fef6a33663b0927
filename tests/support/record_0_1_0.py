"""Make the files in `release_0_1_0` with the real code of version 0.1.0.

That code is commit 0b7db95, the last one of 22 November. Run it once, on Linux:

    git worktree add /tmp/rootsd-0.1.0-code 0b7db95
    make -C /tmp/rootsd-0.1.0-code .venv/.ready
    python3 tests/support/record_0_1_0.py /tmp/rootsd-0.1.0-code/.venv/bin/python

It uses the folder /tmp/rootsd-0.1.0, whose paths the recorded store contains, and writes:

* `config.toml`: a configuration with every key that 0.1.0 knew.
* `state.tar.gz`: the state folder after a session with every kind of decision, and its backups.
* `decisions.json`: the same decisions, as the commands of 0.1.0 print them.
* `units.json`: the texts of the systemd units and of the launchd agent, by name.
* `bridge.jsonl`, `run.jsonl`: the lines that a bridge and a run proxy exchanged with the daemon.

The client entries in `home` are not recorded. 0.1.0 had no `rootsd connect`, so people pasted
them from docs/CLIENTS.md and from the README of that version.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = Path("/tmp/rootsd-0.1.0")
OUT = Path(__file__).parent / "release_0_1_0"
DAEMON, PROXY = TOP / "daemon", TOP / "proxy"
SRC = TOP / "home/src"
HANG_GUARD_S = 60
LONG = f"{24 * 365 * 10}h"
CONFIG = f"""\
[approval]
guard = "off"
agents = ["my-agent"]
markers = ["MY_AGENT_RUNS"]

[roots]
refuse = ["{TOP}/home/vault"]
allow = ["{TOP}/home/.config/nvim"]

[sessions]
max_connections = 500
max_connections_per_process = 32

[[parent]]
path = "{SRC}"
depth = 5
skip = ["tmp-*", "old"]
nested = "vcs"
project_files = ["Justfile", "!go.mod"]

[[parent]]
path = "{TOP}/home/more"
"""
SERVER = """\
import json, sys
last = {}
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        say({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {},
             "serverInfo": {"name": "s", "version": "1"}}})
    elif message.get("method") == "notifications/initialized":
        say({"id": "r", "method": "roots/list"})
    elif message.get("id") == "r":
        last = message["result"]
    elif "method" in message and "id" in message:
        say({"id": message["id"], "result": {"content": [], "structuredContent": last}})
"""
UNITS = """\
import json
from pathlib import Path
from rootsd.cli import units
state = Path("/home/ann/.local/state/rootsd")
settings = units.Settings(
    Path("/home/ann/.local/bin/rootsd"), {}, (state,), state / "stopped", state / "log/daemon.log",
    strict=True,
)
print(json.dumps({**units.systemd_units(settings), **units.launchd_agent(settings)}))
"""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "an editor", "version": "1"},
}


class Release:
    """The installed version 0.1.0, by its interpreter."""

    def __init__(self, python: str) -> None:
        self._python = python

    def environment(self, folder: Path | None) -> dict[str, str]:
        """Return a small environment; `folder` is ROOTSD_DIR."""
        names = {
            "HOME": str(TOP / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "Ann",
            "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.org",
        }  # fmt: skip
        return names if folder is None else {**names, "ROOTSD_DIR": str(folder)}

    def words(self, *arguments: str) -> list[str]:
        """Return the words that run rootsd."""
        return [self._python, "-P", "-m", "rootsd", *arguments]

    def run(self, *arguments: str, folder: Path | None = DAEMON) -> str:
        """Run a command, which must succeed, and return its output."""
        done = subprocess.run(
            self.words(*arguments), env=self.environment(folder), cwd=TOP / "home", text=True,
            capture_output=True, timeout=HANG_GUARD_S, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"rootsd {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def python(self, script: str, *arguments: str) -> str:
        """Run a script with the code of the release."""
        return subprocess.run(
            [self._python, "-c", script, *arguments], env=self.environment(None), check=True,
            capture_output=True, text=True, timeout=HANG_GUARD_S,
        ).stdout  # fmt: skip


def git(*arguments: str) -> None:
    """Run git."""
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def make_repository(path: Path) -> Path:
    """Make a repository with one commit, and an origin."""
    git("init", "-q", str(path))
    (path / "README").write_text("hello\n")
    git("-C", str(path), "add", "README")
    git("-C", str(path), "-c", "user.name=Ann", "-c", "user.email=a@b", "commit", "-qm", "first")
    git("-C", str(path), "remote", "add", "origin", f"https://example.org/acme/{path.name}")
    return path


def make_folders() -> None:
    """Make the home folder with its projects."""
    shutil.rmtree(TOP, ignore_errors=True)
    for folder in ("home/more", "home/vault", "home/.config/nvim", "daemon/config"):
        (TOP / folder).mkdir(parents=True, mode=0o700)
    (DAEMON / "config/config.toml").write_text(CONFIG)
    names = (
        "api", "web", "docs", "notes", "temp", "gone", "bad", "lib", "acme/one", "acme/two",
        "secret/key", "waits", "undone", "x/cafe\u0301", "y/caf\u00e9",
    )  # fmt: skip
    for name in names:
        make_repository(SRC / name)
    (SRC / "tool").mkdir()
    (SRC / "tool/Justfile").write_text("all:\n")
    git("-C", str(SRC / "lib"), "worktree", "add", "-q", str(SRC / "lib-before"))


def decide(release: Release) -> None:
    """Use 0.1.0 as a person does."""
    run = release.run
    run("up")
    run("rule", "add", "approve", f"{SRC}/acme/**")
    run("rule", "add", "deny", f"{SRC}/secret/**")
    run("rule", "add", "approve", f"{SRC}/removed/**")
    run("rule", "rm", "3")
    run("approve", str(SRC / "api"), "--as", "the-api", "--tag", "work", "--tag", "go")
    run("approve", str(SRC / "web"), "--tag", "work")
    run("approve", str(SRC / "docs"))
    run("approve", str(SRC / "notes"), "--read-only")
    run("approve", str(SRC / "temp"), "--for", LONG)
    run("approve", str(SRC / "gone"), "--tag", "kept")
    run("approve", str(SRC / "lib"))
    run("approve", str(SRC / "tool"))
    run("approve", str(SRC / "x/cafe\u0301"))
    run("approve", str(SRC / "y/caf\u00e9"))
    run("deny", str(SRC / "bad"))
    run("add", "https://api.example.com/v1")
    run("approve", "https://api.example.com/v1")
    run("add", str(TOP / "home/more"))
    run("deny", str(SRC / "undone"))
    run("undo")
    run("rename", "docs", "handbook")
    run("tag", "handbook", "text")
    run("focus", "work")
    git("-C", str(SRC / "lib"), "worktree", "add", "-q", str(SRC / "lib-after"))
    shutil.rmtree(SRC / "gone")
    make_repository(SRC / "gone")
    run("scan")


def decisions(release: Release) -> dict[str, Any]:
    """Return what 0.1.0 prints about its decisions."""
    words = {
        "projects": ("ls",), "pending": ("pending",), "rules": ("rule",),
        "log": ("log", "--last", "500"),
        "focus": ("focus",), "guard": ("guard",), "tags": ("tag",),
        "parents": ("parent",),
    }  # fmt: skip
    printed = {name: json.loads(release.run(*verb, "--json")) for name, verb in words.items()}
    return {**printed, "export": release.run("export")}


@contextmanager
def recorded(file: Path) -> Iterator[None]:
    """Pass connections on to the daemon, and write their lines to `file`."""
    address = PROXY / "run/pub/mcp.sock"
    address.parent.mkdir(parents=True, mode=0o700)
    os.chmod(PROXY, 0o700)
    os.chmod(PROXY / "run", 0o700)
    lines: list[str] = []

    def copy(source: socket.socket, target: socket.socket, side: str) -> None:
        for line in source.makefile("rb"):
            lines.append(json.dumps({side: json.loads(line)}, sort_keys=True))
            target.sendall(line)
        target.shutdown(socket.SHUT_WR)

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(str(DAEMON / "run/pub/mcp.sock"))
            for source, target, side in ((client, daemon, "proxy"), (daemon, client, "daemon")):
                threading.Thread(target=copy, args=(source, target, side), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield
    shutil.rmtree(PROXY)
    file.write_text("".join(f"{line}\n" for line in lines))


def converse(release: Release, cwd: Path, *arguments: str) -> None:
    """Be a client of `rootsd bridge` or `rootsd run`, until each request has its answer."""
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "list_roots", "arguments": {}}},
    ]
    with subprocess.Popen(
        release.words(*arguments), env=release.environment(PROXY), cwd=cwd,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        for request in requests:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            process.stdin.flush()
            while "id" in request:
                message = json.loads(process.stdout.readline())
                if message.get("method") == "roots/list":
                    folder = {"uri": SRC.joinpath("web").as_uri(), "name": "web"}
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"roots": [folder]}}
                    process.stdin.write(json.dumps(answer).encode() + b"\n")
                    process.stdin.flush()
                elif message.get("id") == request["id"]:
                    break
        process.stdin.close()
        process.wait(HANG_GUARD_S)


def main() -> None:
    """Make all files."""
    release = Release(sys.argv[1])
    OUT.mkdir(exist_ok=True)
    make_folders()
    (OUT / "config.toml").write_text(CONFIG)
    decide(release)
    server = TOP / "server.py"
    server.write_text(SERVER)
    with recorded(OUT / "bridge.jsonl"):
        converse(release, SRC / "api", "bridge", "--only", "tag:work", "--only", "cwd",
                 "--client", "an editor", "--any-uri")  # fmt: skip
    with recorded(OUT / "run.jsonl"):
        converse(release, SRC / "api", "run", "--", sys.executable, str(server))
    release.run("guard", "terminal")
    found = decisions(release)
    release.run("down")
    (OUT / "decisions.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    with tarfile.open(OUT / "state.tar.gz", "w:gz") as archive:
        archive.add(DAEMON / "state", "state")
    (OUT / "units.json").write_text(json.dumps(json.loads(release.python(UNITS)), indent=1) + "\n")


if __name__ == "__main__":
    main()
