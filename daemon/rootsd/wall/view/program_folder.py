"""Find the folder that must be shown together with a program, because its libraries lie there.

A person or `rootsd connect` shows this folder behind the wall, read-only.
"""

from __future__ import annotations

import os


def program_folder(program: str, home: str) -> str:
    """Return the folder of the program at an absolute path, or the program itself.

    For a program in `bin`, that is the folder around `bin`. A virtual environment stays what it
    is, although its Python is a link. The home folder and the folders above it are never returned.
    """
    around = os.path.dirname(os.path.dirname(program))
    if os.path.exists(os.path.join(around, "pyvenv.cfg")):
        return around
    real = os.path.realpath(program)
    folder = os.path.dirname(real)
    if os.path.basename(folder) == "bin" and not holds_home(os.path.dirname(folder), home):
        return os.path.dirname(folder)
    return real if holds_home(folder, home) else folder


def holds_home(folder: str, home: str) -> bool:
    """Return whether a folder is the home folder or lies above it."""
    return os.path.join(os.path.realpath(home), "").startswith(os.path.join(folder, ""))
