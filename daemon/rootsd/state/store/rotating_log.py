"""Append lines to a log file that is rotated at a size limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rootsd.system.private_files import open_private_file, unusable_error

_OLDER = ".1"


class RotatingLog:
    """Appends to `file`; what went before lies in `file.1`, and is dropped by the next turn.

    One thread at a time, but for `read`. All methods raise NotPrivate where the disk refuses.
    """

    def __init__(self, file: Path, limit: int) -> None:
        """`limit` is the size in bytes after which a generation `is_full`."""
        self._file = file
        self._older = file.with_name(file.name + _OLDER)
        self._limit = limit
        self._fd: int | None = None
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time for a `turn`."""
        return self._size >= self._limit

    def append(self, lines: bytes) -> None:
        """Write whole lines, newline included."""
        try:
            fd = self._open()
            while lines:
                written = os.write(fd, lines)
                self._size += written
                lines = lines[written:]
        except OSError as error:
            raise unusable_error(self._file, error) from error

    def turn(self) -> None:
        """Begin a new generation; the one before the last is dropped."""
        self.close()
        try:
            self._file.replace(self._older)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise unusable_error(self._file, error) from error
        self._size = 0

    def read(self) -> Iterator[bytes]:
        """All lines, oldest first, without their newlines; the last may have been cut short, and
        where a turn comes in between, a generation is missed."""
        for file in (self._older, self._file):
            try:
                with file.open("rb") as lines:
                    for line in lines:
                        yield line.rstrip(b"\n")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise unusable_error(file, error) from error

    def close(self) -> None:
        """Give the file back; the next `append` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            self._fd = open_private_file(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._size = os.fstat(self._fd).st_size
            # Whoever wrote last may have been killed in the middle of a line.
            if self._size and os.pread(self._fd, 1, self._size - 1) != b"\n":
                self._size += os.write(self._fd, b"\n")
        return self._fd
