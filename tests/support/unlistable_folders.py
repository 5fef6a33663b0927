"""Folders that may be searched and not listed, even by root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from rootsd.disk import reader
from rootsd.disk.reader import open_folder


def forbid_opening(monkeypatch: pytest.MonkeyPatch, chosen: Callable[[bytes], bool]) -> None:
    """Make every later open of a folder named `chosen` fail."""

    def open_some(path: bytes, dir_fd: int | None = None) -> int:
        if dir_fd is not None and chosen(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_folder(path, dir_fd)

    monkeypatch.setattr(reader, "open_folder", open_some)
