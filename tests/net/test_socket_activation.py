"""Sockets from a launcher: a process that listens, and then becomes the receiver."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rootsd.net import socket_activation
from rootsd.net.socket_activation import BadInheritedSocket, inherited_listeners
from support.socket_activation import hand_over, listening

HANG_GUARD_S = 30

RECEIVER = """
import json, os
from rootsd.core.errors import RootsdError
from rootsd.net.socket_activation import inherited_listeners
try:
    given = inherited_listeners()
except RootsdError as error:
    print(json.dumps({"error": str(error)}))
else:
    for listener in given.values():
        os.set_blocking(listener.socket.fileno(), True)
        listener.socket.accept()[0].sendall(b"hello")
    told = {name: [listener.path.decode(), os.get_inheritable(listener.socket.fileno())]
            for name, listener in given.items()}
    [listener.close() for listener in given.values()]
    print(json.dumps({"given": told, "left": [k for k in os.environ if k.startswith("LISTEN_")]}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pub"
    folder.mkdir(mode=0o700)
    return folder


def receive(names: str, *sockets: socket.socket) -> Any:  # noqa: ANN401
    """What a process says that these sockets are handed to."""
    with hand_over(names, sockets, ["-c", RECEIVER]) as process:
        said, _ = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 0
    return json.loads(said)


def test_sockets_are_taken_by_name_and_keep_their_paths(folder: Path) -> None:
    paths = {"mcp": folder / "m", "control": folder / "c"}
    clients = []
    made = []
    for path in paths.values():
        made.append(listening(path))
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))  # no process accepts it yet, so it waits
        clients.append(client)
    told = receive("mcp:control", *made)
    assert told["given"] == {name: [str(path), False] for name, path in paths.items()}
    assert told["left"] == []
    assert [client.recv(9) for client in clients] == [b"hello", b"hello"]
    assert all(path.is_socket() for path in paths.values())
    for each in (*clients, *made):
        each.close()


@pytest.fixture
def unheard(folder: Path) -> Iterator[socket.socket]:
    with listening(folder / "s") as made:
        yield made


@pytest.mark.parametrize("names", ["", "http", "mcp:control", "mcp:mcp"])
def test_unknown_and_repeated_names_are_refused(unheard: socket.socket, names: str) -> None:
    sockets = [unheard] * (2 if names == "mcp:mcp" else 1)
    said = receive(names, *sockets)["error"]
    assert "FileDescriptorName" not in said
    assert "control, mcp" in said


def test_a_socket_that_does_not_listen_on_a_path_is_refused(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as deaf, socket.socket(socket.AF_INET) as foreign:
        deaf.bind(str(folder / "d"))
        foreign.listen()
        for wrong in (deaf, foreign):
            assert "not a listening unix socket" in receive("mcp", wrong)["error"]
    with Path(os.devnull).open("rb") as file, socket.socket(socket.AF_UNIX) as spare:
        os.dup2(file.fileno(), spare.fileno())
        assert receive("mcp", spare)["error"].startswith("mcp: ")


def test_a_socket_that_others_can_reach_or_without_its_path_is_refused(
    unheard: socket.socket, folder: Path
) -> None:
    for place in (folder / "s", folder):
        before = place.stat().st_mode
        place.chmod(0o755)
        assert "open to other users" in receive("mcp", unheard)["error"]
        place.chmod(before)
    (folder / "s").unlink()
    assert receive("mcp", unheard)["error"].startswith("mcp: ")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "mcp"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "x"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "0"},
    ],
)
def test_sockets_for_another_process_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert inherited_listeners() == {}
    assert not any(name.startswith("LISTEN_") for name in os.environ)


def test_a_descriptor_that_is_not_open_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_activation, "FIRST_FD", 900)
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "1")
    monkeypatch.setenv("LISTEN_FDNAMES", "mcp")
    with pytest.raises(BadInheritedSocket):
        inherited_listeners()


def of_launchd(monkeypatch: pytest.MonkeyPatch, **held: list[int]) -> None:
    """As if this were macOS, and launchd held these."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(socket_activation, "launchd_sockets", lambda name: held.get(name, []))


def test_launchd_passes_sockets_by_name_and_the_rest_is_opened_here(
    unheard: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_launchd(monkeypatch, mcp=[os.dup(unheard.fileno())])
    given = inherited_listeners()
    assert list(given) == ["mcp"]
    with given["mcp"] as listener:
        assert listener.path == os.fsencode(unheard.getsockname())
    assert Path(unheard.getsockname()).is_socket()


def test_the_same_rules_apply_to_launchd_and_its_errors_are_reported(
    unheard: socket.socket, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_launchd(monkeypatch, mcp=[os.dup(unheard.fileno()), 900])
    with pytest.raises(BadInheritedSocket, match="2 sockets called mcp"):
        inherited_listeners()
    (folder / "s").chmod(0o666)
    of_launchd(monkeypatch, control=[os.dup(unheard.fileno())])
    with pytest.raises(BadInheritedSocket, match="open to other users"):
        inherited_listeners()

    def refuse(_: str) -> list[int]:
        raise OSError(errno.EALREADY, "already")

    monkeypatch.setattr(socket_activation, "launchd_sockets", refuse)
    with pytest.raises(BadInheritedSocket, match="already"):
        inherited_listeners()
