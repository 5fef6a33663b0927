"""Folders that may be searched and not listed, also for root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from rootsd.disk import reader
from rootsd.disk.reader import open_folder


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, chosen: Callable[[bytes], bool]) -> None:
    """From now on no folder in an open one is opened whose name is `chosen`."""

    def open_some(path: bytes, dir_fd: int | None = None) -> int:
        if dir_fd is not None and chosen(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_folder(path, dir_fd)

    monkeypatch.setattr(reader, "open_folder", open_some)
