"""Read the kernel's file handle of an open folder. Only Linux has file handles.

The handle includes the generation of the inode. So it distinguishes a folder from another one that
reuses the inode number. Source: name_to_handle_at(2).
"""

from __future__ import annotations

import ctypes
import struct
import sys

_AT_EMPTY_PATH = 0x1000
_HANDLE_HEADER = struct.Struct("Ii")
_MAX_HANDLE = 128
# Creating an instance of this type costs a tenth of `create_string_buffer`.
_HandleBuffer = ctypes.c_char * (_HANDLE_HEADER.size + _MAX_HANDLE)


if sys.platform == "linux":
    _name_to_handle_at = ctypes.CDLL(None, use_errno=True).name_to_handle_at
    _name_to_handle_at.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
    ]  # fmt: skip

    def file_handle(fd: int) -> bytes | None:
        """Return the type and the bytes of the handle, or None if the file system has none."""
        buffer = _HandleBuffer()
        _HANDLE_HEADER.pack_into(buffer, 0, _MAX_HANDLE, 0)
        mount_id = ctypes.c_int()
        if _name_to_handle_at(fd, b"", buffer, ctypes.byref(mount_id), _AT_EMPTY_PATH) < 0:
            return None
        size, kind = _HANDLE_HEADER.unpack_from(buffer, 0)
        end = _HANDLE_HEADER.size + int(size)
        return struct.pack("i", kind) + buffer.raw[_HANDLE_HEADER.size : end]

else:

    def file_handle(fd: int) -> bytes | None:  # noqa: ARG001
        """Return None."""
        return None
