"""The daemon as a process: its locks, its signals, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.link.connect import connect
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.service import launcher, start_record
from rootsd.service.launcher import StartFailed
from rootsd.state.store.revisions import REVISIONS_NAME
from rootsd.state.store.session_history import SessionHistoryStore, StoredSession
from support.daemon_process import HANG_GUARD, START, ask, running, running_program
from support.guard_settings import NO_GUARD
from support.notify_socket import supervisor
from support.polling import until
from support.preloaded import Program
from support.repositories import fake_repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path


def configure(rootsd_dir: Path, text: str) -> None:
    (rootsd_dir / "config").mkdir(parents=True, exist_ok=True)
    (rootsd_dir / "config" / "config.toml").write_text(text)


@pytest.mark.parametrize(("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 20)])
def test_a_signal_ends_it_cleanly_and_removes_its_sockets(
    home: Path, rootsd_dir: Path, number: signal.Signals, times: int
) -> None:
    with running(home) as daemon:
        assert (rootsd_dir / "run" / "pub" / "mcp.sock").is_socket()
        for _ in range(times):
            daemon.send_signal(number)
        assert daemon.wait(HANG_GUARD) == 0
    assert not (rootsd_dir / "run" / "pub" / "mcp.sock").exists()
    assert not (rootsd_dir / "run" / "ctl" / "control.sock").exists()


def test_it_refuses_a_second_daemon_and_reloads_a_valid_configuration_at_sighup(
    home: Path, rootsd_dir: Path
) -> None:
    with running(home) as daemon:
        status = json.loads(ask("status", "--json").stdout)
        assert any("helper process could not be started: a test" in t for t in status["degraded"])
        second = Program(f"{START}start(None)", {**os.environ, "HOME": str(home)})
        _, said = second.communicate(HANG_GUARD)
        assert second.returncode != 0
        assert "Busy" in said
        configure(rootsd_dir, f'[[parent]]\npath = "{home / "src"}"\n')
        daemon.send_signal(signal.SIGHUP)
        parents = until(lambda: json.loads(ask("status", "--json").stdout)["parents"])
        assert [parent["path"] for parent in parents] == [str(home / "src")]
        configure(rootsd_dir, "[[parent]\n")
        daemon.send_signal(signal.SIGHUP)
        assert ask("scan").returncode == 0, "the damaged configuration changes nothing"
        daemon.terminate()
        _, log = daemon.communicate(timeout=HANG_GUARD)
        assert daemon.returncode == 0
    assert "config.toml" in log


def is_served() -> bool:
    """Return whether one more connection is answered while the others stay open."""
    client = connect(find_runtime_dir().mcp_socket)
    client.settimeout(HANG_GUARD)
    with suppress(ConnectionError):
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n')
        if client.recv(1) == b"{":
            OPEN.append(client)
            return True
    client.close()
    return False


OPEN: list[socket.socket] = []


@pytest.fixture
def hang_up() -> Iterator[None]:
    """Close the connections that `is_served` left open."""
    yield
    while OPEN:
        OPEN.pop().close()


def test_mcp_connections_are_limited_by_the_configuration_and_by_a_reload(
    home: Path, rootsd_dir: Path, hang_up: None
) -> None:
    configure(rootsd_dir, "[sessions]\nmax_connections_per_process = 2\n")
    with running(home) as daemon:
        assert [is_served() for _ in range(3)] == [True, True, False]
        configure(rootsd_dir, "[sessions]\nmax_connections_per_process = 5\n")
        daemon.send_signal(signal.SIGHUP)
        assert until(is_served)
        assert [is_served() for _ in range(3)] == [True, True, False]


def test_a_connection_limit_above_the_limit_of_open_files_gives_a_warning(
    home: Path, rootsd_dir: Path
) -> None:
    configure(rootsd_dir, "[sessions]\nmax_connections = 2000\n")
    little = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 900))"
    with running(home, little):
        assert "allows 900 open files" in ask("status", "--json").stdout
    with running(home):
        assert "open files" not in ask("status", "--json").stdout


def test_its_supervisor_gets_a_message_for_each_phase_and_none_if_the_socket_is_not_served(
    home: Path, rootsd_dir: Path, tmp_path: Path
) -> None:
    with supervisor(tmp_path) as supervising:
        line = {"NOTIFY_SOCKET": supervising.address, "WATCHDOG_USEC": "100000"}
        with running(home, **line) as daemon, socket.socket(socket.AF_UNIX) as stale:
            assert supervising.hear() == {"READY": "1"}
            assert (rootsd_dir / "run" / "pub" / "mcp.sock").is_socket()
            assert supervising.hear_of("STATUS") == "0 published, 0 pending, 0 connected"
            for _ in range(3):
                assert supervising.hear_of("WATCHDOG") == "1"
            configure(rootsd_dir, "[[parent]\n")  # a failed reload also ends
            for _ in range(2):
                daemon.send_signal(signal.SIGHUP)
                assert int(supervising.hear_of("MONOTONIC_USEC"))
                assert supervising.hear_of("READY") == "1"
            stale.bind(str(home / "stale"))
            (home / "stale").rename(rootsd_dir / "run" / "ctl" / "control.sock")
            assert any("gets no heartbeat" in line for line in daemon.stderr)
            daemon.terminate()
            assert supervising.hear_of("STOPPING") == "1"
            assert daemon.wait(HANG_GUARD) == 0


BROKEN = """
import sys
from rootsd.daemon.main import run
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.helper.client import UnavailableHelper
from rootsd.places.daemon_folders import find_places

def broken(engine):
    raise ZeroDivisionError("a bug")

DiscoveryEngine.tick = broken
sys.exit(run(find_places(), helper=UnavailableHelper('a test'), ready_fd=None))
"""


def test_a_bug_in_discovery_ends_it_with_an_error_in_the_log(home: Path) -> None:
    daemon = Program(BROKEN, {**os.environ, "HOME": str(home)})
    _, said = daemon.communicate(HANG_GUARD)
    assert daemon.returncode == 1
    assert "ZeroDivisionError: a bug" in said
    assert "CRITICAL a bug ended discovery" in said


def test_a_daemon_started_after_a_down_ends_again(home: Path, rootsd_dir: Path) -> None:
    """A bridge may have started it while `down` looked for a daemon and found none."""
    recipe = start_record.plan_start()
    here = recipe._replace(
        daemon=recipe.daemon[:-1],  # without --detach, the command waits for its end
        environment={**recipe.environment, "HOME": str(home)},
    )
    start_record.save_start_record(here)
    start_record.mark_stopped()
    with pytest.raises(StartFailed, match="stopped by rootsd down"):
        launcher.launch(here, HANG_GUARD)
    with DaemonLock.acquire(rootsd_dir / "state", LockRecord(os.getpid(), "test", {})):
        pass


def test_a_store_keeps_its_guard_and_its_revision_across_restarts(
    home: Path, rootsd_dir: Path
) -> None:
    """The configured guard counts for a new store, and the clock may have been set back."""
    seen, modes = [], []
    for mode in ("terminal", "off", "off"):
        configure(rootsd_dir, NO_GUARD.replace("off", mode))
        with running(home) as daemon:
            seen.append(json.loads(ask("status", "--json").stdout)["revision"])
            modes.append(json.loads(ask("guard", "--json").stdout)["guard"])
            daemon.kill()
        later = int((rootsd_dir / "state" / REVISIONS_NAME).read_text()) + 10**10
        (rootsd_dir / "state" / REVISIONS_NAME).write_text(
            f"{later}"
        )  # as if it were from tomorrow
    assert modes == ["terminal"] * 3
    assert seen[0] > 1
    assert all(later - earlier > 10**10 for earlier, later in pairwise(seen))


def test_the_sdk_is_loaded_only_for_an_mcp_client(home: Path) -> None:
    with running_program(home) as daemon:
        maps = Path(f"/proc/{daemon.pid}/maps")
        if maps.exists():
            assert "pydantic_core" not in maps.read_text()
        assert ask("status").returncode == 0


def test_the_sdk_is_loaded_before_a_client_waits_for_it_if_there_was_ever_one(
    home: Path, rootsd_dir: Path
) -> None:
    """Codex waits about one second for the first answer, and the SDK alone may take longer."""
    (rootsd_dir / "state").mkdir(mode=0o700, parents=True)
    history = SessionHistoryStore(rootsd_dir / "state" / "sessions.db")
    history.save({"a": StoredSession("{}")})
    history.close()
    with running_program(home) as daemon:
        maps = Path(f"/proc/{daemon.pid}/maps")
        if maps.exists():
            assert until(lambda: "pydantic_core" in maps.read_text())
        assert ask("status").returncode == 0


def test_the_next_start_backs_up_decisions_and_withdraws_what_the_configuration_refuses(
    home: Path, rootsd_dir: Path
) -> None:
    for name in ("one", "two"):
        fake_repository(home / "src" / name)
    parent = f"[[parent]]\npath = '{home}/src'\n"
    configure(rootsd_dir, NO_GUARD + parent)
    with running(home) as daemon:
        ask("scan")
        assert ask("approve", "one", "two", "--yes").returncode == 0
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(HANG_GUARD) == 0
    backups = rootsd_dir / "state" / "backups"
    for of_the_guard in backups.glob("*"):
        of_the_guard.unlink()
    configure(rootsd_dir, parent + f"[roots]\nrefuse = ['{home}/src/one']\n")
    with running(home):
        assert len(until(lambda: list(backups.glob("decisions-*.db")))) == 1
        assert ask("ls", "--published", "--paths").stdout == f"{home}/src/two\n"
        refused = ask("approve", "one")
        assert refused.returncode == 1
        assert "the configuration refuses it" in refused.stderr
        configure(rootsd_dir, parent + f"[roots]\nrefuse = ['{home}/src']\n")
        assert ask("parent", "set", f"{home}/src", "--depth", "3").returncode == 78
        configure(rootsd_dir, f"[roots]\nrefuse = ['{home}/src']\n")
        ask("parent", "add", f"{home}")
        assert ask("ls", "--published", "--paths").stdout == ""
