"""Idle, slow, huge, and churning clients at once, and an honest client among them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import pytest

from rootsd.core.errors import RootsdError
from rootsd.link.connect import connect
from support import flooding_client, naive_server
from support.bridges import INITIALIZE, request
from support.person import Person
from support.polling import until
from support.sizes import Sizes

pytestmark = pytest.mark.needs("linux")

PATIENCE = 60
MOST_LOG_LINES = 100
MOST_RSS_MB = 256
# The daemon's processor time until an honest client is answered. Unlike the wall-clock time, it
# does not depend on the load of the machine. Without turns it was 1,379 in the same flood.
MOST_CPU_MS = 500
# A median of fewer answers says little: the first ones wait for the connections of all attackers.
# tests/net tests the turns themselves.
ENOUGH_ANSWERS = 20


@contextmanager
def _attack(kind: str, path: Path) -> Iterator[None]:
    command = [sys.executable, flooding_client.__file__, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == b"ready\n"
        yield
        assert attacker.poll() is None, "it gave up"
        attacker.stdin.close()


def _is_answered(path: Path, patience: float = PATIENCE) -> bool:
    """Return whether a new client, as a bridge is one, gets its first answer."""
    try:
        with connect(bytes(path), timeout_s=patience) as client, client.makefile("rb") as lines:
            client.settimeout(patience)
            client.sendall(request(1, "initialize", INITIALIZE))
            return b"serverInfo" in lines.readline()
    except (OSError, RootsdError):
        return False


def _rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _cpu_ms(pid: int) -> float:
    """Return the processor time of the daemon's main thread, which serves all clients; proc(5)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def test_an_honest_client_is_answered_through_a_flood(
    person: Person, rootsd_dir: Path, sizes: Sizes
) -> None:
    seconds = sizes.pick(test=1, check=15, soak=45)
    person.rootsd("up", str(person.parent))
    path = rootsd_dir / "run" / "pub" / "mcp.sock"
    pid = person.daemon_pid()
    assert _is_answered(path)
    waits, works = list[float](), list[float]()
    failures = 0
    half_way = 0.0
    with ExitStack() as attackers:
        for kind in flooding_client.ATTACKS:
            attackers.enter_context(_attack(kind, path))
        start = time.monotonic()
        while (now := time.monotonic()) - start < seconds or not waits:
            if not half_way and now - start > seconds / 2:
                half_way = _rss_mb(pid)
            worked = _cpu_ms(pid)
            failures += not _is_answered(path)
            waits.append(time.monotonic() - now)
            works.append(_cpu_ms(pid) - worked)
        rss = _rss_mb(pid)
    wait, longest, work = median(waits) * 1000, max(waits) * 1000, median(works)
    told = f"{len(waits)} answers, median {wait:.0f} ms, longest {longest:.0f} ms"
    print(f"{told}, {work:.0f} ms of work, {failures} failures")  # noqa: T201
    print(f"RSS {half_way:.0f} MB half-way, {rss:.0f} MB at the end")  # noqa: T201
    assert failures == 0
    assert work < MOST_CPU_MS or len(works) < ENOUGH_ANSWERS
    assert rss < MOST_RSS_MB
    assert person.daemon_pid() == pid
    log = (rootsd_dir / "state" / "log" / "daemon.log").read_text().splitlines()
    assert len(log) < MOST_LOG_LINES


def test_control_a_server_without_limits_stops_answering(tmp_path: Path) -> None:
    """The positive control."""
    folder = tmp_path / "pub"
    folder.mkdir(0o700)
    path = folder / "mcp.sock"
    command = [sys.executable, naive_server.__file__, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            assert _is_answered(path)
            with _attack("idle", path):
                assert until(lambda: not _is_answered(path, patience=2))
        finally:
            server.kill()
            server.communicate()
