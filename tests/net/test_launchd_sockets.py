"""Sockets from launchd, by a test's own launch_activate_socket: a real foreign function."""

from __future__ import annotations

import ctypes
import errno
from typing import Any

import pytest

from rootsd.net.socket_activation import ACTIVATE_TYPES, launchd_sockets


class FakeLibc:
    """Holds descriptors by name, once each; `freed` are the addresses given back."""

    def __init__(self, error: int = 0, **held: list[int]) -> None:
        self.freed: list[int] = []
        self.given: list[int] = []
        self._arrays: list[Any] = []

        def activate(name: bytes, fds: Any, count: Any) -> int:  # noqa: ANN401
            if error or name.decode() not in held:
                return error or errno.ENOENT
            numbers = held.pop(name.decode())
            array = (ctypes.c_int * len(numbers))(*numbers)
            self._arrays.append(array)  # as malloc(3) would keep it
            fds[0] = ctypes.cast(array, ctypes.POINTER(ctypes.c_int))
            count[0] = len(numbers)
            self.given.append(ctypes.addressof(array))
            return 0

        self.launch_activate_socket = ctypes.CFUNCTYPE(ctypes.c_int, *ACTIVATE_TYPES)(activate)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.freed.append)


def use(monkeypatch: pytest.MonkeyPatch, libc: FakeLibc) -> None:
    monkeypatch.setattr("rootsd.net.socket_activation.ctypes.CDLL", lambda _: libc)


def test_descriptors_are_passed_by_name_and_their_memory_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    libc = FakeLibc(mcp=[7], control=[8, 9])
    use(monkeypatch, libc)
    assert (launchd_sockets("mcp"), launchd_sockets("control")) == ([7], [8, 9])
    assert libc.freed == libc.given
    assert len(libc.freed) == 2


@pytest.mark.parametrize("error", [0, errno.ESRCH])
def test_without_launchd_or_without_such_a_name_there_are_none(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    use(monkeypatch, FakeLibc(error))
    assert launchd_sockets("mcp") == []


def test_any_other_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibc(errno.EALREADY))
    with pytest.raises(OSError, match="launch_activate_socket of mcp") as caught:
        launchd_sockets("mcp")
    assert caught.value.errno == errno.EALREADY
