"""The confined daemon does all its duties, and the kernel refuses none of its calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.person import HANG_GUARD, Person

pytestmark = [pytest.mark.needs("landlock"), pytest.mark.needs("strace")]

TRACE = ("strace", "-f", "-qq", "-e", "trace=%file,%network,%desc,%process", "-e", "status=failed")
REFUSED = re.compile(r"= -1 E(?:ACCES|PERM)\b")
MCP = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
     "params": {"name": "list_roots", "arguments": {}}},
)  # fmt: skip


def refused_calls(trace: Path) -> list[str]:
    """Those that the kernel refused; not what the helper, who is not confined, may not see."""
    lines = trace.read_text(errors="replace").splitlines()
    return [line for line in lines if REFUSED.search(line) and '"/proc/' not in line]


@contextmanager
def traced_daemon(person: Person, trace: Path) -> Iterator[None]:
    """A daemon in the foreground, each failed call of its threads and helper written down."""
    command = [*TRACE, "-o", str(trace), sys.executable, "-m", "rootsd", "daemon", "--ready-fd"]
    ready, says_ready = os.pipe()
    with subprocess.Popen(
        [*command, str(says_ready)], pass_fds=(says_ready,), env=person.environment()
    ) as daemon:
        os.close(says_ready)
        with os.fdopen(ready) as told:
            assert told.readline() == "ready\n"
        try:
            yield
        finally:
            person.rootsd("down")
            daemon.wait(HANG_GUARD)


def test_no_call_of_the_confined_daemon_is_refused_in_all_its_duties(tmp_path: Path) -> None:
    person, trace = Person(tmp_path), tmp_path / "trace"
    with traced_daemon(person, trace):
        assert json.loads(person.rootsd("status", "--json"))["daemon"]["confined"] == "landlock"
        person.rootsd("parent", "add", str(person.parent))
        one = person.clone("one")
        person.wait_until_listed("one", "pending")
        person.rootsd("approve", "one")
        person.rootsd("show", "one")
        asked = "".join(json.dumps(message) + "\n" for message in MCP)
        done = subprocess.run(
            [sys.executable, "-m", "rootsd", "bridge"], input=asked, capture_output=True,
            text=True, timeout=HANG_GUARD, check=True, env=person.environment(),
        )  # fmt: skip
        assert '"one"' in done.stdout
        shutil.copytree(one, person.parent / "two")
        person.wait_until_listed("two", "pending")
        person.rootsd("deny", "two")
        shutil.rmtree(one)
        person.rootsd("scan")
        person.rootsd("guard", "agents")
        person.rootsd("guard")
        person.rootsd("log")
        person.rootsd("sessions", "--history")
    assert refused_calls(trace) == []
    assert "ENOENT" in trace.read_text(), "nothing was traced"


def test_a_refused_call_would_have_been_seen(tmp_path: Path) -> None:
    """The positive control."""
    (tmp_path / "state").mkdir()
    code = f"""
from rootsd.host.confine import confine
confine([{bytes(tmp_path / "state")!r}])
try:
    open({str(tmp_path / "elsewhere")!r}, "w")
except PermissionError:
    pass
"""
    trace = tmp_path / "trace"
    subprocess.run([*TRACE, "-o", str(trace), sys.executable, "-c", code], check=True)
    assert len(refused_calls(trace)) == 1
