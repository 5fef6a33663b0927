"""A server is tried once: it must answer in time, and is then ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from rootsd.connect.trial import ServerBroken, try_server

_SERVER = """
import json, os, sys
MODE = sys.argv[1]
open(sys.argv[2], "w").write(str(os.getpid()))
print("starting", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        capabilities = {} if MODE == "no tools" else {"tools": {}}
        if MODE == "silent":
            continue
        if MODE == "ends":
            sys.exit("cannot open /x\\x1b[2J")
        if MODE == "ends as node":
            sys.exit("throw it\\n\\nError: no module 'x'\\n    at a\\n\\nNode.js v20.20.2")
        if MODE == "refuses":
            answer = {"error": {"code": -1, "message": "not today"}}
        else:
            answer = {"result": {"capabilities": capabilities}}
    elif method == "tools/list" and MODE != "no tools":
        if MODE == "dies late":
            sys.exit(1)
        print(json.dumps({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}), flush=True)
        answer = {"result": {"tools": []}}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def attempt(tmp_path: Path, mode: str, timeout_s: float = 60.0) -> None:
    server = tmp_path / "server.py"
    server.write_text(_SERVER)
    words = (sys.executable, str(server), mode, str(tmp_path / "pid"))
    try_server(words, os.environ, tmp_path, timeout_s)


@pytest.mark.parametrize("mode", ["works", "no tools"])
def test_a_server_that_answers_works_and_is_ended(tmp_path: Path, mode: str) -> None:
    attempt(tmp_path, mode)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("ends", "cannot open /x\\u{1b}[2J"),
        ("ends as node", "Error: no module 'x'"),
        ("refuses", "not today"),
        ("dies late", "it ended before it answered"),
    ],
)
def test_a_server_that_fails_says_why(tmp_path: Path, mode: str, reason: str) -> None:
    with pytest.raises(ServerBroken) as failure:
        attempt(tmp_path, mode)
    assert str(failure.value) == reason


def test_a_server_that_never_answers_fails_in_time(tmp_path: Path) -> None:
    with pytest.raises(ServerBroken, match="it did not answer in time"):
        attempt(tmp_path, "silent", timeout_s=1.0)


def test_a_program_that_is_missing_fails(tmp_path: Path) -> None:
    with pytest.raises(ServerBroken, match="No such file"):
        try_server((str(tmp_path / "none"),), {}, tmp_path)
