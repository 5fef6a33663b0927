"""Addresses for socket paths of any length."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rootsd.net.unix_socket import address_of


def test_a_short_path_is_its_own_address() -> None:
    with address_of(b"/run/x.sock") as address:
        assert address == b"/run/x.sock"


@pytest.mark.parametrize("length", [100, 103, 104, 107, 108, 109, 500, 3000])
def test_a_socket_can_be_bound_and_reached_at_any_length(tmp_path: Path, length: int) -> None:
    folder = bytes(tmp_path)
    while len(folder) < length - 120:
        folder += b"/" + b"d" * 100
    folder += b"/" + b"e" * max(1, length - len(folder) - len("/x.sock") - 1)
    os.makedirs(folder)
    path = folder + b"/x.sock"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with address_of(path) as address:
            assert len(address) <= 107
            server.bind(address)
        assert os.path.exists(path)
        server.listen()
        with address_of(path) as address:
            client.connect(address)


def test_a_folder_that_is_missing_is_an_error_at_any_length(tmp_path: Path) -> None:
    path = bytes(tmp_path) + b"/" + b"d" * 150 + b"/x.sock"
    with pytest.raises(FileNotFoundError), address_of(path):
        pass


@pytest.mark.needs("linux")
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 150)
    folder.mkdir()
    before = os.listdir("/proc/self/fd")
    with address_of(bytes(folder / "x.sock")):
        pass
    assert os.listdir("/proc/self/fd") == before
